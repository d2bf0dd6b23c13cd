// SPDX-License-Identifier: Apache-2.0
// Resources that this machine gives the process.
#pragma once

#include <cstdint>
#include <limits>

namespace quern::cpu::engine {

/// Bytes of memory this process may use: the machine's, or less if a control group limits it.
std::uint64_t usable_memory_bytes();

/// Addresses this process may have mapped (`ulimit -v`), and has.
struct AddressLimit {
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t most_bytes = kNone;
  std::uint64_t used_bytes = 0;
  bool limited() const noexcept { return most_bytes != kNone; }
};
AddressLimit address_limit();

/// Processors this process may run on (its affinity mask); at least 1.
std::uint32_t usable_processor_count();

}  // namespace quern::cpu::engine
