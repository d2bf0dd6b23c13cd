// SPDX-License-Identifier: Apache-2.0
// The edges from a block to its successors: the operands of phis on an edge, and the lanes that take it.
#pragma once

#include "cpu/emit/warp/values.hpp"

namespace quern::cpu::emit {

class Edges : private BodyPart {
 public:
  Edges(BodyState& body, Values& values) : BodyPart(body), values_(values) {}

  /// The phis of successor `successor_index` of `block`, each with its operand on that edge.
  std::vector<std::pair<ir::Value, ir::Value>> phi_operands(ir::BlockId block,
                                                            unsigned successor_index) const;
  /// By successor of a cond_br or switch_br: the lanes of `among` that take that edge. Lanes without a case
  /// take the last one.
  std::vector<llvm::Value*> lanes_by_edge(ir::BlockId block, llvm::Value* among);
  /// True if other lanes may already wait at `successor` when `block` sends its lanes there. False for a
  /// loop's header (all lanes in a loop are in the same iteration), and if `block` is the first of all
  /// predecessors. Always true if lanes leave a loop in different iterations.
  bool must_blend(const analysis::Analysis& facts, ir::BlockId block, ir::BlockId successor) const;
  /// The indices of all successors of `block`.
  std::vector<unsigned> all(ir::BlockId block) const;

 private:
  Values& values_;
};

}  // namespace quern::cpu::emit
