// SPDX-License-Identifier: Apache-2.0
// Passes over values: folding with facts found by SSA construction, removal of unused instructions, and the
// final numbering.
#include <utility>

#include "cpu/lower/ssa/passes.hpp"
#include "cpu/lower/ssa/phis.hpp"

namespace quern::cpu::lower {
namespace {

using ir::Op;
using ir::Value;

/// True if the instruction may be removed when no operation reads its result. A shuffle has no other effect;
/// lanes that would synchronise at it still do so at the other operations.
bool removable(const ir::Inst& inst) {
  if (inst.op == Op::load) return inst.attr.invariant && !inst.attr.is_volatile;
  if (inst.op == Op::shuffle || inst.op == Op::shuffle_valid) return true;
  return !ir::has_trait(inst.op, 's') && !ir::has_trait(inst.op, 't');
}

}  // namespace

void propagate(FunctionBuilder& builder) {
  Replacements replaced;
  for (const ir::BlockId block : order_blocks(builder.function).blocks) {
    // Iterates by index: folding may add constants, which reallocates the instructions.
    for (const Value value : builder.function.blocks[block].insts) {
      for (Value& arg : builder.function[value].args) arg = replaced.find(arg);
      const ir::Inst inst = builder.function[value];
      if (const Value known = fold(builder, inst); known != ir::kNone) replaced.set(value, known);
    }
  }
  Replacements::apply(replaced, builder.function);
}

void remove_dead(FunctionBuilder& builder) {
  ir::Function& function = builder.function;
  std::vector<bool> needed(function.insts.size());
  std::vector<Value> work;
  const auto need = [&](Value value) {
    if (needed[value]) return;
    needed[value] = true;
    work.push_back(value);
  };
  for (const ir::Block& block : function.blocks) {
    for (const Value value : block.insts) {
      if (!removable(function[value])) need(value);
    }
  }
  std::vector<bool> read(function.insts.size());
  while (!work.empty()) {
    const Value value = work.back();
    work.pop_back();
    for (const Value arg : function[value].args) {
      read[arg] = true;
      need(arg);
    }
  }
  const auto unneeded = [&needed](Value value) { return !needed[value]; };
  for (ir::Block& block : function.blocks) {
    std::erase_if(block.insts, unneeded);
    for (const Value value : block.insts) {
      if (function[value].op == Op::atomic && !read[value]) function[value].attr.unused_result = true;
    }
  }
  std::erase_if(builder.prologue, unneeded);
}

void number_all(FunctionBuilder& builder) {
  ir::Function& old = builder.function;
  auto& entry = old.blocks[0].insts;
  entry.insert(entry.begin(), builder.prologue.begin(), builder.prologue.end());
  builder.prologue.clear();

  const Order order = order_blocks(old);
  std::vector<Value> new_value(old.insts.size(), ir::kNone);
  std::vector<ir::Inst> insts;
  std::vector<ir::Block> blocks;
  for (const ir::BlockId block : order.blocks) {
    ir::Block b = std::move(old.blocks[block]);
    for (Value& value : b.insts) {
      const auto renamed = static_cast<Value>(insts.size());
      new_value[value] = renamed;
      insts.push_back(std::move(old.insts[value]));
      insts.back().block = static_cast<ir::BlockId>(blocks.size());
      value = renamed;
    }
    for (ir::BlockId& pred : b.preds) pred = order.position[pred];
    for (ir::BlockId& succ : b.succs) succ = order.position[succ];
    blocks.push_back(std::move(b));
  }
  for (ir::Inst& inst : insts) {
    for (Value& arg : inst.args) arg = new_value[arg];
  }
  old.insts = std::move(insts);
  old.blocks = std::move(blocks);
}

}  // namespace quern::cpu::lower
