// SPDX-License-Identifier: Apache-2.0
// Finds the lanes for which a condition holds, where they are the same in every warp of a block in which it
// holds for any: lane 0 for `tid == 0`, whatever else must hold. Pure; no LLVM.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/abi/specialisation.hpp"
#include "cpu/analysis/analysis.hpp"
#include "cpu/cuts/thread_values.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::cuts {

class KnownLanes {
 public:
  /// `patterns`: those of the version that asks.
  KnownLanes(const ir::Function& function, const std::vector<analysis::LanePattern>& patterns,
             const Specialisation& specialisation)
      : function_(function), patterns_(patterns), threads_(function, specialisation) {}

  /// The lanes of a warp in which the condition is `outcome`, if there is any, as bits. 0: they are not
  /// known, or there are none in any warp.
  std::uint32_t find(ir::Value condition, bool outcome);

 private:
  struct Lanes {
    std::uint32_t within = 0;  ///< there are no others
    bool exact = false;        ///< all of these or none
  };

  Lanes lanes_of(ir::Value condition, bool outcome, unsigned depth);
  static Lanes of_threads(const std::vector<std::uint64_t>& bits, bool outcome);

  const ir::Function& function_;
  const std::vector<analysis::LanePattern>& patterns_;
  ThreadValues threads_;
};

}  // namespace quern::cpu::cuts
