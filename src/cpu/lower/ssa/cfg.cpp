// SPDX-License-Identifier: Apache-2.0
// Establishes properties of the control flow graph that later stages require.
#include <algorithm>

#include "cpu/lower/ssa/passes.hpp"

namespace quern::cpu::lower {
namespace {

using ir::BlockId;

/// The source location of a block's first instruction, for branches that a pass adds before it.
std::uint32_t first_location(const ir::Function& function, BlockId block) {
  for (const ir::Value value : function.blocks[block].insts) {
    if (function[value].location != ir::kNone) return function[value].location;
  }
  return ir::kNone;
}

/// Creates a block that only branches to `target`; the caller makes it a successor of another block.
BlockId new_forwarder(FunctionBuilder& builder, BlockId target) {
  const BlockId block = builder.new_block();
  builder.append(block, {.op = ir::Op::br, .location = first_location(builder.function, target)});
  builder.connect(block, target);
  return block;
}

/// Redirects the edges into `target` whose source is in `sources` to one new forwarder.
void gather_edges(FunctionBuilder& builder, BlockId target, const std::vector<BlockId>& sources) {
  const BlockId forwarder = new_forwarder(builder, target);
  for (const BlockId source : sources) {
    auto& succs = builder.function.blocks[source].succs;
    for (std::size_t i = 0; i < succs.size(); ++i) {
      if (builder.function.blocks[source].succs[i] == target) builder.redirect(source, i, forwarder);
    }
  }
}

void simplify_loop(FunctionBuilder& builder, BlockId header, const Order& order) {
  std::vector<BlockId> entering;
  std::vector<BlockId> latches;
  for (const BlockId pred : builder.function.blocks[header].preds) {
    (order.dominates(header, pred) ? latches : entering).push_back(pred);
  }
  if (latches.empty()) return;
  if (latches.size() > 1) gather_edges(builder, header, latches);
  if (entering.size() > 1 ||
      (entering.size() == 1 && builder.function.blocks[entering[0]].succs.size() > 1)) {
    gather_edges(builder, header, entering);
  }
}

}  // namespace

void drop_unreachable(FunctionBuilder& builder) {
  ir::Function& function = builder.function;
  const Order order = order_blocks(function);
  for (BlockId block = 0; block < function.blocks.size(); ++block) {
    ir::Block& b = function.blocks[block];
    if (order.position[block] == ir::kNone) {
      b = {};
      builder.live_ins[block].clear();
    } else {
      std::erase_if(b.preds, [&order](BlockId pred) { return order.position[pred] == ir::kNone; });
    }
  }
}

void simplify_loops(FunctionBuilder& builder) {
  const Order order = order_blocks(builder.function);
  for (const BlockId block : order.blocks) simplify_loop(builder, block, order);
}

void split_critical_edges(FunctionBuilder& builder) {
  const auto count = static_cast<BlockId>(builder.function.blocks.size());
  for (BlockId block = 0; block < count; ++block) {
    const std::size_t successors = builder.function.blocks[block].succs.size();
    for (std::size_t i = 0; successors > 1 && i < successors; ++i) {
      const BlockId to = builder.function.blocks[block].succs[i];
      if (builder.function.blocks[to].preds.size() > 1)
        builder.redirect(block, i, new_forwarder(builder, to));
    }
  }
}

void merge_chains(FunctionBuilder& builder) {
  ir::Function& function = builder.function;
  for (const BlockId block : order_blocks(function).blocks) {
    while (function.blocks[block].succs.size() == 1) {
      const BlockId next = function.blocks[block].succs[0];
      if (next == block || function.blocks[next].preds.size() != 1) break;
      ir::Block& into = function.blocks[block];
      ir::Block& from = function.blocks[next];
      into.insts.pop_back();  // the br
      for (const ir::Value value : from.insts) function[value].block = block;
      into.insts.insert(into.insts.end(), from.insts.begin(), from.insts.end());
      into.succs = from.succs;
      for (const BlockId successor : into.succs) {
        auto& preds = function.blocks[successor].preds;
        std::replace(preds.begin(), preds.end(), next, block);
      }
      from = {};
    }
  }
}

}  // namespace quern::cpu::lower
