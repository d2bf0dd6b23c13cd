// SPDX-License-Identifier: Apache-2.0
// The structure of the control flow graph: dominators, loops, the order of blocks, and branch targets that
// only end.
#pragma once

#include <vector>

#include "cpu/analysis/analysis.hpp"
#include "cpu/analysis/graph.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::analysis {

/// Facts about one function that the passes of this component share, in addition to the public Analysis.
struct Structure {
  Graph graph{0};  ///< the reachable blocks, with an edge for each successor
  std::vector<ir::BlockId> rpo;
  /// By block: a lane that reaches it ends without a further effect that others could observe.
  std::vector<bool> ends_at_once;
  /// By block: one edge enters it, and the blocks that it dominates only end, without a barrier.
  std::vector<bool> ends_alone;
};

/// Computes order, position, idom, ipostdom, loops (except `divergent`) and loop_of. Error: irreducible
/// control flow; with `any_graph`, it is marked instead, and there are no loops.
Expected<Structure> find_structure(const ir::Function& function, Analysis& analysis, bool any_graph = false);

bool dominates(const Analysis& analysis, ir::BlockId above, ir::BlockId below);

/// Dominance queries in constant time.
class Dominance {
 public:
  Dominance() = default;
  explicit Dominance(const Analysis& analysis);
  bool dominates(ir::BlockId above, ir::BlockId below) const {
    return first_[above] <= first_[below] && first_[below] < end_[above];
  }

 private:
  // By block: the range, in preorder, of the blocks that it dominates.
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> end_;
};

bool loop_contains(const Analysis& analysis, std::uint32_t loop, ir::BlockId block);
/// True if lanes may leave a loop that contains `from` but not `to` in different iterations.
bool leaves_divergent_loop(const Analysis& analysis, ir::BlockId from, ir::BlockId to);

/// True if lanes that branch from `from` to `to` end before the other lanes continue, and never reconverge
/// with them. Also true for both sides of a branch that ends the function.
bool edge_ends(const Analysis& analysis, const Structure& structure, ir::BlockId from, ir::BlockId to);

/// The successors of a block, each list in their order.
struct Sides {
  std::vector<ir::BlockId> ending;
  std::vector<ir::BlockId> going_on;
};
Sides sides_of(const Analysis& analysis, const Structure& structure, ir::BlockId block);

}  // namespace quern::cpu::analysis
