// SPDX-License-Identifier: Apache-2.0
// Limits of a thread and a block that several components use. Source of the first two: NVIDIA, "CUDA C++
// Programming Guide", section "Technical Specifications per Compute Capability", and "PTX ISA", section
// "Parallel Synchronization and Communication Instructions: bar".
#pragma once

#include <cstdint>

namespace quern::cpu::ir {

/// Static shared memory of a block on all current GPUs; ptxas rejects more.
inline constexpr std::uint32_t kMaxStaticSharedBytes = 48 * 1024;
/// Local memory of a thread on all current GPUs.
inline constexpr std::uint32_t kMaxThreadLocalBytes = 512 * 1024;
/// Barriers of a block, numbered from 0.
inline constexpr std::uint32_t kBarriers = 16;
/// The local memory of a thread for called functions. It allows much deeper recursion than a GPU by default.
inline constexpr std::uint32_t kCalledStackBytes = 128 * 1024;

}  // namespace quern::cpu::ir
