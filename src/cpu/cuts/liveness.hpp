// SPDX-License-Identifier: Apache-2.0
// Computes which values are read in or after a block. Reading a value also reads the values that its pattern
// refers to (coefficients, the index of an offset32), since its vector is computed from them.
#pragma once

#include <vector>

#include "cpu/analysis/analysis.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::cuts {

struct Liveness {
  std::vector<std::vector<ir::Value>> live_in;  ///< by BlockId, ascending; without the phis of the block
  std::vector<bool> crosses;                    ///< by Value: it is a phi, or read outside its block
};

/// `facts`: the analyses whose patterns are used. `read_at_end`: by BlockId, values that its end reads beside
/// the operands of instructions; may be empty.
Liveness find_liveness(const ir::Function& function, const std::vector<const analysis::Analysis*>& facts,
                       const std::vector<std::vector<ir::Value>>& read_at_end = {});

}  // namespace quern::cpu::cuts
