// SPDX-License-Identifier: Apache-2.0
// The number of lanes of a warp. Helpers that emitted code calls include this file too.
#pragma once

#include <cstdint>

namespace quern::cpu {

/// PTX's WARP_SZ. PTX ISA, section "Predefined Constants".
inline constexpr std::uint32_t kWarpSize = 32;

}  // namespace quern::cpu
