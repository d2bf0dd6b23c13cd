// SPDX-License-Identifier: Apache-2.0
// The limits of compute capability 8.9, as the device reports and enforces them, whatever compute capability
// it has. Source: NVIDIA, "CUDA C++
// Programming Guide", section "Technical Specifications per Compute Capability".
#pragma once

#include <cstdint>

#include "cpu/abi/limits.hpp"

namespace quern::cpu::device {

inline constexpr int kDriverVersion = 13040;
inline constexpr std::uint32_t kDefaultComputeCapability = 89;
inline constexpr std::uint32_t kMaxThreadsPerBlock = 1024;
inline constexpr std::uint32_t kMaxBlock[3] = {1024, 1024, 64};
inline constexpr std::uint32_t kMaxGrid[3] = {2147483647, 65535, 65535};
inline constexpr std::uint32_t kStaticSharedBytes = ir::kMaxStaticSharedBytes;
inline constexpr std::uint32_t kOptInSharedBytes = 99 * 1024;
inline constexpr std::uint32_t kSharedPerSmBytes = 100 * 1024;
inline constexpr std::uint32_t kReservedSharedBytes = 1024;  ///< of a block, for the system
inline constexpr std::uint32_t kRegistersPerSm = 65536;
inline constexpr std::uint32_t kConstantBytes = 64 * 1024;
/// Lower numbers go first; the range is that of NVIDIA's devices.
inline constexpr int kLeastStreamPriority = 0;
inline constexpr int kGreatestStreamPriority = -5;

}  // namespace quern::cpu::device
