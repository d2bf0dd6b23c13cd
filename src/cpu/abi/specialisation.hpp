// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "cpu/abi/warp_size.hpp"

namespace quern::cpu {

enum class Isa : std::uint8_t { baseline, avx2, avx512 };

/// Values of Specialisation::opt_level. Debug: emission and code generation only, as -G asks. Quick: compiled
/// in a third of the time of good code, and slower (docs/decisions/0050-quick-code-first.md).
inline constexpr std::uint8_t kDebugLevel = 0;
inline constexpr std::uint8_t kQuickLevel = 1;
inline constexpr std::uint8_t kGoodLevel = 2;

/// The parameters of a kernel's compilation besides its PTX. Launches with equal values share machine code.
struct Specialisation {
  std::array<std::uint32_t, 3> block{1, 1, 1};  ///< blockDim
  /// True if gridDim.d * blockDim.d < 2^31 in every dimension d: global indices computed in 32 bits do not
  /// wrap.
  bool small_grid = true;
  Isa isa = Isa::avx2;
  bool alone = false;    ///< one worker, and no memory of other processes: no two blocks run at the same time
  bool compact = false;  ///< the device window is compact (abi/state.hpp): every address is checked
  std::uint8_t opt_level = kGoodLevel;
  std::uint8_t gang =
      /// warps in lockstep; 0: as many as are profitable; otherwise as many as given, if possible, for
      /// tests
      0;
  /// Code that runs on any processor with the instruction set and with any number of workers, as in bundles.
  bool portable = false;
  /// For tests: lanes run every loop one after another in which that is possible, whatever it costs.
  bool lanes_in_turn = false;
  /// For tests: masked code begins every loop eagerly in which that is possible.
  bool eager_loops = false;
  bool dispatch = false;  ///< for tests: the dispatcher runs the lanes even if they could be kept together
  friend bool operator==(const Specialisation&, const Specialisation&) = default;

  std::uint32_t threads() const noexcept { return block[0] * block[1] * block[2]; }
  std::uint32_t warps() const noexcept { return (threads() + kWarpSize - 1) / kWarpSize; }
};

}  // namespace quern::cpu
