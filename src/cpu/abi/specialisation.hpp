// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "cpu/abi/warp_size.hpp"

namespace quern::cpu {

enum class Isa : std::uint8_t { baseline, avx2, avx512 };

/// The parameters of a kernel's compilation beside its PTX. Two launches with equal values share machine
/// code.
struct Specialisation {
  std::array<std::uint32_t, 3> block{1, 1, 1};  ///< blockDim
  /// gridDim.d * blockDim.d < 2^31 in every dimension d: global indices computed in 32 bits do not wrap.
  bool small_grid = true;
  Isa isa = Isa::avx2;
  bool alone = false;          ///< the device has one worker: no two blocks run at the same time
  bool compact = false;        ///< the device window is compact (abi/state.hpp): every address is checked
  std::uint8_t opt_level = 2;  ///< 0: emission and codegen only
  std::uint8_t gang =
      0;  ///< warps in lockstep: 0: as many as are profitable; else this many if possible, for tests
  /// Code for any processor that has the instruction set, and for any number of workers: that of bundles.
  bool portable = false;
  bool dispatch = false;  ///< run the lanes by the dispatcher though they could be kept together, for tests
  friend bool operator==(const Specialisation&, const Specialisation&) = default;

  std::uint32_t threads() const noexcept { return block[0] * block[1] * block[2]; }
  std::uint32_t warps() const noexcept { return (threads() + kWarpSize - 1) / kWarpSize; }
};

}  // namespace quern::cpu
