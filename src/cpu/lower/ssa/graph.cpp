// SPDX-License-Identifier: Apache-2.0
// Orders, dominators and natural loops of a control-flow graph.
#include <algorithm>

#include "cpu/lower/ssa/passes.hpp"

namespace quern::cpu::lower {
namespace {

std::vector<ir::BlockId> postorder(const ir::Function& function) {
  std::vector<ir::BlockId> result;
  std::vector<bool> seen(function.blocks.size());
  struct Step {
    ir::BlockId block;
    std::size_t next;
  };
  std::vector<Step> stack{{0, 0}};
  seen[0] = true;
  while (!stack.empty()) {
    Step& top = stack.back();
    const auto& succs = function.blocks[top.block].succs;
    // Visit the last successor first, so that the first successor comes first in the reversed order.
    if (top.next < succs.size()) {
      const ir::BlockId to = succs[succs.size() - 1 - top.next++];
      if (!seen[to]) {
        seen[to] = true;
        stack.push_back({to, 0});
      }
    } else {
      result.push_back(top.block);
      stack.pop_back();
    }
  }
  return result;
}

}  // namespace

bool Order::dominates(ir::BlockId a, ir::BlockId b) const {
  while (position[b] > position[a]) b = idom[b];
  return a == b;
}

// Source of the method: Cooper, Harvey, Kennedy: "A Simple, Fast Dominance Algorithm".
Order order_blocks(const ir::Function& function) {
  Order order;
  order.blocks = postorder(function);
  std::reverse(order.blocks.begin(), order.blocks.end());
  order.position.assign(function.blocks.size(), ir::kNone);
  for (std::uint32_t i = 0; i < order.blocks.size(); ++i) order.position[order.blocks[i]] = i;
  order.idom.assign(function.blocks.size(), ir::kNone);
  order.idom[0] = 0;
  const auto common = [&order](ir::BlockId a, ir::BlockId b) {
    while (a != b) {
      while (order.position[a] > order.position[b]) a = order.idom[a];
      while (order.position[b] > order.position[a]) b = order.idom[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const ir::BlockId block : order.blocks) {
      if (block == 0) continue;
      ir::BlockId dominator = ir::kNone;
      for (const ir::BlockId pred : function.blocks[block].preds) {
        if (order.position[pred] == ir::kNone || order.idom[pred] == ir::kNone) continue;
        dominator = dominator == ir::kNone ? pred : common(pred, dominator);
      }
      if (order.idom[block] == dominator) continue;
      order.idom[block] = dominator;
      changed = true;
    }
  }
  return order;
}

bool LoopNest::contains(std::uint32_t loop, ir::BlockId block) const {
  for (std::uint32_t at = innermost[block]; at != ir::kNone; at = loops[at].parent) {
    if (at == loop) return true;
  }
  return false;
}

// Headers are processed innermost first (last in reverse postorder first). So a block's first loop is its
// innermost, and a loop found while walking back from a latch becomes a child. Each block is visited once for
// each nesting level.
LoopNest find_loops(const ir::Function& function, const Order& order) {
  LoopNest nest;
  nest.innermost.assign(function.blocks.size(), ir::kNone);
  for (auto header = order.blocks.rbegin(); header != order.blocks.rend(); ++header) {
    std::vector<ir::BlockId> work;
    for (const ir::BlockId pred : function.blocks[*header].preds) {
      if (order.position[pred] != ir::kNone && order.dominates(*header, pred)) work.push_back(pred);
    }
    if (work.empty()) continue;
    const auto index = static_cast<std::uint32_t>(nest.loops.size());
    nest.loops.push_back({*header, ir::kNone});
    nest.innermost[*header] = index;
    while (!work.empty()) {
      const ir::BlockId block = work.back();
      work.pop_back();
      std::uint32_t outer = nest.innermost[block];
      if (outer == ir::kNone) {
        nest.innermost[block] = index;
        for (const ir::BlockId pred : function.blocks[block].preds) work.push_back(pred);
        continue;
      }
      while (outer != index && nest.loops[outer].parent != ir::kNone) outer = nest.loops[outer].parent;
      if (outer == index) continue;
      nest.loops[outer].parent = index;
      for (const ir::BlockId pred : function.blocks[nest.loops[outer].header].preds) {
        if (nest.innermost[pred] == ir::kNone || !nest.contains(outer, pred)) work.push_back(pred);
      }
    }
  }
  return nest;
}

}  // namespace quern::cpu::lower
