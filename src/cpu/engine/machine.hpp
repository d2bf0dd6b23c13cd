// SPDX-License-Identifier: Apache-2.0
// What this machine gives the process.
#pragma once

#include <cstdint>

namespace quern::cpu::engine {

/// Bytes of memory this process may use: the machine's, or less where a control group says so.
std::uint64_t usable_memory_bytes();

/// Processors this process may run on (its affinity mask); at least 1.
std::uint32_t usable_processor_count();

}  // namespace quern::cpu::engine
