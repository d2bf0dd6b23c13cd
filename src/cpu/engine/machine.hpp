// SPDX-License-Identifier: Apache-2.0
// The resources that this machine provides to the process.
#pragma once

#include <cstdint>
#include <limits>

namespace quern::cpu::engine {

/// Memory that this process may use, in bytes: that of the machine, or less if a control group limits it.
std::uint64_t usable_memory_bytes();

/// The addresses that this process may map (`ulimit -v`), and those that it has mapped.
struct AddressLimit {
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t most_bytes = kNone;
  std::uint64_t used_bytes = 0;
  bool limited() const noexcept { return most_bytes != kNone; }
};
AddressLimit address_limit();

/// The number of processors on which this process may run (its affinity mask); at least 1.
std::uint32_t usable_processor_count();

}  // namespace quern::cpu::engine
