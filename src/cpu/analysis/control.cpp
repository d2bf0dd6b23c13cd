// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/control.hpp"

#include <utility>

#include "cpu/analysis/regions.hpp"

namespace quern::cpu::analysis {
namespace {

/// Computes control dependence within one iteration of each loop (an inner loop is one step), and from
/// leaving a loop before other lanes do. Branch targets that only end do not count: their lanes are not live
/// when the others continue.
class ControlDependence {
 public:
  ControlDependence(const Structure& structure, Analysis& analysis)
      : structure_(structure),
        analysis_(analysis),
        ending_(structure.graph.size()),
        regions_(find_regions(analysis, going_on())),
        children_(dominator_children(analysis.idom, structure.rpo)) {
    std::vector<Node> nodes;
    for (Node node = 0; node < regions_.graph.size(); ++node) nodes.push_back(node);
    ipostdom_ = immediate_post_dominators(regions_.graph, nodes);
  }

  void run() {
    for (const ir::BlockId block : structure_.rpo) {
      if (analysis_.divergent_branch[block]) spread(block);
      if (structure_.ends_at_once[block]) analysis_.divergent_control[block] = true;
    }
    while (!work_.empty()) {
      const ir::BlockId block = work_.back();
      work_.pop_back();
      spread(block);
      const std::uint32_t loop = analysis_.loop_of[block];
      if (loop != ir::kNone && analysis_.loops[loop].header == block)
        mark_dependents(regions_.node_of_loop(loop));
    }
  }

 private:
  /// Returns the successors without those that only end (all successors if all only end). Stores the others
  /// in ending_.
  std::vector<std::vector<ir::BlockId>> going_on() {
    std::vector<std::vector<ir::BlockId>> result(structure_.graph.size());
    for (const ir::BlockId from : structure_.rpo) {
      Sides sides = sides_of(analysis_, structure_, from);
      if (sides.going_on.empty()) std::swap(sides.going_on, sides.ending);
      ending_[from] = std::move(sides.ending);
      result[from] = std::move(sides.going_on);
    }
    return result;
  }

  void mark(ir::BlockId block) {
    if (analysis_.divergent_control[block]) return;
    analysis_.divergent_control[block] = true;
    work_.push_back(block);
  }
  void mark_node(Node node) {
    if (!regions_.is_loop(node)) return mark(node);
    for (const ir::BlockId block : analysis_.loops[node - regions_.first_loop].blocks) mark(block);
  }
  void mark_dependents(Node branch) {
    for (const Node to : regions_.graph.succs[branch])
      for (Node node = to; node != ipostdom_[branch] && node != kNoNode && node != regions_.end;
           node = ipostdom_[node])
        mark_node(node);
  }
  /// Marks the blocks and values that depend on which lanes take which edge of `block`.
  void spread(ir::BlockId block) {
    mark_dependents(block);
    for (const ir::BlockId side : ending_[block]) mark_dominated(side);
    for (const ir::BlockId to : structure_.graph.succs[block]) {
      if (edge_ends(analysis_, structure_, block, to)) continue;
      for (std::uint32_t loop = analysis_.loop_of[block]; !loop_contains(analysis_, loop, to);
           loop = analysis_.loops[loop].parent)
        mark_node(regions_.node_of_loop(loop));
    }
  }
  void mark_dominated(ir::BlockId top) {
    std::vector<ir::BlockId> inside{top};
    while (!inside.empty()) {
      const ir::BlockId block = inside.back();
      inside.pop_back();
      mark(block);
      inside.insert(inside.end(), children_[block].begin(), children_[block].end());
    }
  }

  const Structure& structure_;
  Analysis& analysis_;
  std::vector<std::vector<ir::BlockId>> ending_;  ///< by block: successors that end while others continue
  Regions regions_;
  std::vector<std::vector<Node>> children_;  ///< in the dominator tree
  std::vector<Node> ipostdom_;               ///< by node of regions_
  std::vector<ir::BlockId> work_;
};

}  // namespace

void find_divergent_control(const ir::Function& function, const Structure& structure, Analysis& analysis) {
  // Only some lanes may call a function.
  analysis.divergent_control.assign(structure.graph.size(), !function.kernel);
  if (function.kernel) ControlDependence(structure, analysis).run();
}

}  // namespace quern::cpu::analysis
