// SPDX-License-Identifier: Apache-2.0
// Replaces values, and removes unnecessary phis.
#pragma once

#include <vector>

#include "cpu/lower/ssa/function_builder.hpp"

namespace quern::cpu::lower {

/// Maps values to their replacements during a pass. Follows chains of replacements and shortens them.
class Replacements {
 public:
  void set(ir::Value value, ir::Value by);
  ir::Value find(ir::Value value);
  /// Rewrites the operands of every instruction.
  static void apply(Replacements& replacements, ir::Function& function);

 private:
  std::vector<ir::Value> to_;
};

std::vector<ir::Value> phis_of(const ir::Function& function, ir::BlockId block);

/// Replaces each of `phis` whose operands are all one value (or the phi itself) by that value, until there is
/// no such phi.
void remove_trivial_phis(FunctionBuilder& builder, const std::vector<ir::Value>& phis,
                         Replacements& replaced);

}  // namespace quern::cpu::lower
