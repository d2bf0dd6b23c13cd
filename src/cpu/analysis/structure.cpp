// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/structure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cpu/analysis/regions.hpp"
#include "cpu/analysis/source_location.hpp"

namespace quern::cpu::analysis {
namespace {

Graph reachable_graph(const ir::Function& function) {
  Graph all(function.blocks.size());
  for (ir::BlockId from = 0; from < function.blocks.size(); ++from)
    for (const ir::BlockId to : function.blocks[from].succs) all.edge(from, to);
  Graph graph(all.size());
  for (const Node from : reverse_postorder(all, 0))
    for (const Node to : all.succs[from]) graph.edge(from, to);
  return graph;
}

std::string line_of_block(const ir::Function& function, ir::BlockId block) {
  return line_of(function, located_value(function, block));
}

/// Checks that the target of a retreating edge dominates its source. Otherwise the cycle has more than one
/// entry.
Expected<void> check_reducible(const ir::Function& function, const Structure& structure,
                               const Analysis& analysis) {
  for (const ir::BlockId from : structure.rpo) {
    for (const ir::BlockId to : structure.graph.succs[from]) {
      if (analysis.position[to] > analysis.position[from] || dominates(analysis, to, from)) continue;
      return unsupported(
          function, located_value(function, from),
          fmt::format("kernel '{}': the jump from {} to {} goes into the middle of a loop "
                      "(irreducible control flow), "
                      "where the lanes of a warp cannot be kept together",
                      function.name, line_of_block(function, from), line_of_block(function, to)),
          "Enter the loop only at its head: replace the goto by a loop with conditions.");
    }
  }
  return {};
}

/// Finds natural loops, inner before outer; the index of a parent is known then.
class LoopFinder {
 public:
  LoopFinder(const Structure& structure, const Analysis& analysis)
      : structure_(structure), analysis_(analysis), loop_of_(structure.graph.size(), ir::kNone) {}

  void run(Analysis& result) {
    for (auto header = structure_.rpo.rbegin(); header != structure_.rpo.rend(); ++header) collect(*header);
    // Renumbers so that outer loops come first: headers were visited in reverse.
    const auto renumber = [&](std::uint32_t loop) {
      return loop == ir::kNone ? ir::kNone : static_cast<std::uint32_t>(loops_.size()) - 1 - loop;
    };
    std::reverse(loops_.begin(), loops_.end());
    for (Loop& loop : loops_) loop.parent = renumber(loop.parent);
    for (std::uint32_t& loop : loop_of_) loop = renumber(loop);
    result.loops = std::move(loops_);
    result.loop_of = std::move(loop_of_);
  }

 private:
  void collect(ir::BlockId header) {
    std::vector<ir::BlockId> stack;
    for (const ir::BlockId pred : structure_.graph.preds[header])
      if (dominates(analysis_, header, pred)) stack.push_back(pred);
    if (stack.empty()) return;
    const auto self = static_cast<std::uint32_t>(loops_.size());
    loops_.emplace_back().header = header;
    loop_of_[header] = self;
    while (!stack.empty()) {
      ir::BlockId block = stack.back();
      stack.pop_back();
      const std::uint32_t outermost = outermost_of(block);
      if (outermost == self) continue;
      if (outermost == ir::kNone) {
        loop_of_[block] = self;
      } else {
        loops_[outermost].parent = self;
        block = loops_[outermost].header;
      }
      for (const ir::BlockId pred : structure_.graph.preds[block]) stack.push_back(pred);
    }
  }
  std::uint32_t outermost_of(ir::BlockId block) const {
    std::uint32_t loop = loop_of_[block];
    while (loop != ir::kNone && loops_[loop].parent != ir::kNone) loop = loops_[loop].parent;
    return loop;
  }

  const Structure& structure_;
  const Analysis& analysis_;
  std::vector<Loop> loops_;
  std::vector<std::uint32_t> loop_of_;
};

/// `known`: the result for the successors.
bool ends_at_once(const ir::Function& function, const ir::Block& block, const std::vector<bool>& known) {
  const ir::Op last = function[block.insts.back()].op;
  const bool ends =
      last == ir::Op::ret || last == ir::Op::exit || (last == ir::Op::br && known[block.succs[0]]);
  return ends && std::all_of(block.insts.begin(), block.insts.end(), [&](ir::Value value) {
           return value == block.insts.back() || ir::has_trait(function[value].op, 'p');
         });
}

/// For each block, computes the depth of the smallest subtree of the dominator tree that contains the targets
/// of all edges from the block's subtree. The block's subtree is closed if that is its own depth. Edges to
/// blocks that end at once do not count; a barrier counts as an edge to everywhere.
void find_ends(const ir::Function& function, Structure& structure, const Analysis& analysis) {
  const std::size_t count = structure.graph.size();
  structure.ends_at_once.assign(count, false);
  structure.ends_alone.assign(count, false);
  std::vector<std::uint32_t> depth(count, 0);
  for (const ir::BlockId block : structure.rpo) {
    if (analysis.idom[block] != ir::kNone) depth[block] = depth[analysis.idom[block]] + 1;
  }
  std::vector<std::uint32_t> reach(count, ir::kNone);
  for (auto at = structure.rpo.rbegin(); at != structure.rpo.rend(); ++at) {
    const ir::BlockId block = *at;
    structure.ends_at_once[block] = ends_at_once(function, function.blocks[block], structure.ends_at_once);
    std::uint32_t& low = reach[block];
    for (const ir::BlockId to : structure.graph.succs[block]) {
      if (structure.ends_at_once[to]) continue;
      const bool back = dominates(analysis, to, block);
      low = std::min(low, back ? depth[to] : depth[analysis.idom[to]]);
    }
    for (const ir::Value value : function.blocks[block].insts)
      if (ir::is_barrier(function[value].op)) low = 0;
    structure.ends_alone[block] =
        low >= depth[block] && depth[block] > 0 && structure.graph.preds[block].size() == 1;
    const ir::BlockId up = analysis.idom[block];
    if (up != ir::kNone) reach[up] = std::min(reach[up], low);
  }
}

/// Orders the blocks region by region. Walking the dominator tree of a region, with children in topological
/// order, keeps the blocks that one block dominates together.
class BlockOrder {
 public:
  BlockOrder(const Structure& structure, const Analysis& analysis)
      : analysis_(analysis), regions_(find_regions(analysis, targets(structure, analysis))) {
    const std::vector<Node> rpo = reverse_postorder(regions_.graph, regions_.root);
    children_ = dominator_children(immediate_dominators(regions_.graph, rpo), rpo);
  }

  std::vector<ir::BlockId> run() {
    emit_region(0);
    return std::move(order_);
  }

 private:
  /// Successors that only end come first, so that their lanes have ended when the others continue.
  static std::vector<std::vector<ir::BlockId>> targets(const Structure& structure, const Analysis& analysis) {
    std::vector<std::vector<ir::BlockId>> result(structure.graph.size());
    for (const ir::BlockId from : structure.rpo) {
      Sides sides = sides_of(analysis, structure, from);
      result[from] = std::move(sides.ending);
      result[from].insert(result[from].end(), sides.going_on.begin(), sides.going_on.end());
    }
    return result;
  }
  void emit_region(ir::BlockId entry) {
    std::vector<Node> stack{entry};
    while (!stack.empty()) {
      const Node node = stack.back();
      stack.pop_back();
      if (regions_.is_loop(node)) {
        emit_region(analysis_.loops[node - regions_.first_loop].header);
      } else if (node != regions_.end) {
        order_.push_back(node);
      }
      stack.insert(stack.end(), children_[node].rbegin(), children_[node].rend());
    }
  }

  const Analysis& analysis_;
  Regions regions_;
  std::vector<std::vector<Node>> children_;  ///< children of each node in the dominator trees of the regions
  std::vector<ir::BlockId> order_;
};

void set_positions(Analysis& analysis, const std::vector<ir::BlockId>& order) {
  analysis.position.assign(analysis.position.size(), ir::kNone);
  for (std::size_t i = 0; i < order.size(); ++i) analysis.position[order[i]] = static_cast<std::uint32_t>(i);
}

}  // namespace

Expected<Structure> find_structure(const ir::Function& function, Analysis& analysis, bool any_graph) {
  Structure structure;
  structure.graph = reachable_graph(function);
  structure.rpo = reverse_postorder(structure.graph, 0);
  analysis.idom = immediate_dominators(structure.graph, structure.rpo);
  analysis.ipostdom = immediate_post_dominators(structure.graph, structure.rpo);
  analysis.position.resize(function.blocks.size());
  set_positions(analysis, structure.rpo);
  if (Expected<void> reducible = check_reducible(function, structure, analysis); !reducible) {
    if (!any_graph) return std::move(reducible).errors();
    analysis.irreducible = true;
    analysis.order = structure.rpo;
    analysis.loop_of.assign(function.blocks.size(), ir::kNone);
    structure.ends_at_once.assign(function.blocks.size(), false);
    structure.ends_alone.assign(function.blocks.size(), false);
    return structure;
  }
  LoopFinder(structure, analysis).run(analysis);
  find_ends(function, structure, analysis);
  analysis.order = BlockOrder(structure, analysis).run();
  set_positions(analysis, analysis.order);
  for (const ir::BlockId block : analysis.order)
    for (std::uint32_t loop = analysis.loop_of[block]; loop != ir::kNone; loop = analysis.loops[loop].parent)
      analysis.loops[loop].blocks.push_back(block);
  return structure;
}

bool dominates(const Analysis& analysis, ir::BlockId above, ir::BlockId below) {
  while (below != above && analysis.position[below] > analysis.position[above]) below = analysis.idom[below];
  return below == above;
}

Dominance::Dominance(const Analysis& analysis)
    : first_(analysis.idom.size(), 0), end_(analysis.idom.size(), 0) {
  std::vector<std::uint32_t> size(analysis.idom.size(), 1);
  for (std::size_t i = analysis.order.size(); i-- > 1;)
    size[analysis.idom[analysis.order[i]]] += size[analysis.order[i]];
  std::vector<std::uint32_t> next(analysis.idom.size(), 0);
  for (const ir::BlockId block : analysis.order) {
    const ir::BlockId above = analysis.idom[block];
    if (above != ir::kNone) first_[block] = std::exchange(next[above], next[above] + size[block]);
    end_[block] = first_[block] + size[block];
    next[block] = first_[block] + 1;
  }
}

bool loop_contains(const Analysis& analysis, std::uint32_t loop, ir::BlockId block) {
  if (loop == ir::kNone) return true;
  std::uint32_t inner = analysis.loop_of[block];
  while (inner != ir::kNone && inner != loop) inner = analysis.loops[inner].parent;
  return inner == loop;
}

bool leaves_divergent_loop(const Analysis& analysis, ir::BlockId from, ir::BlockId to) {
  for (std::uint32_t loop = analysis.loop_of[from]; !loop_contains(analysis, loop, to);
       loop = analysis.loops[loop].parent)
    if (analysis.loops[loop].divergent) return true;
  return false;
}

bool edge_ends(const Analysis& analysis, const Structure& structure, ir::BlockId from, ir::BlockId to) {
  if (structure.ends_at_once[to]) return true;
  // Lanes that leave a loop continue only after the loop, so their side effects would be too late.
  return structure.ends_alone[to] && loop_contains(analysis, analysis.loop_of[from], to);
}

Sides sides_of(const Analysis& analysis, const Structure& structure, ir::BlockId block) {
  Sides sides;
  for (const ir::BlockId to : structure.graph.succs[block])
    (edge_ends(analysis, structure, block, to) ? sides.ending : sides.going_on).push_back(to);
  return sides;
}

}  // namespace quern::cpu::analysis
