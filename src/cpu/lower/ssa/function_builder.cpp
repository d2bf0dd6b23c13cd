// SPDX-License-Identifier: Apache-2.0
#include "cpu/lower/ssa/function_builder.hpp"

#include <algorithm>
#include <utility>

namespace quern::cpu::lower {
namespace {

std::uint64_t key_of(std::uint32_t block, std::uint32_t variable) {
  return (std::uint64_t{block} << 32) | variable;
}

}  // namespace

std::size_t ValueMap::slot_of(std::uint64_t key) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> 20) & mask;
  while (slots_[slot].key != key && slots_[slot].key != kEmpty) slot = (slot + 1) & mask;
  return slot;
}

ir::Value ValueMap::find(std::uint32_t block, std::uint32_t variable) const noexcept {
  return slots_.empty() ? ir::kNone : slots_[slot_of(key_of(block, variable))].value;
}

void ValueMap::set(std::uint32_t block, std::uint32_t variable, ir::Value value) {
  if ((count_ + 1) * 2 > slots_.size()) grow();
  const std::uint64_t key = key_of(block, variable);
  Slot& slot = slots_[slot_of(key)];
  if (slot.key == kEmpty) ++count_;
  slot = {key, value};
}

void ValueMap::grow() {
  std::vector<Slot> old(std::max<std::size_t>(64, slots_.size() * 2));
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.key != kEmpty) slots_[slot_of(slot.key)] = slot;
  }
}

ir::BlockId FunctionBuilder::new_block() {
  function.blocks.emplace_back();
  live_ins.emplace_back();
  return static_cast<ir::BlockId>(function.blocks.size() - 1);
}

void FunctionBuilder::connect(ir::BlockId from, ir::BlockId to) {
  function.blocks[from].succs.push_back(to);
  function.blocks[to].preds.push_back(from);
}

void FunctionBuilder::redirect(ir::BlockId from, std::size_t successor, ir::BlockId to) {
  ir::BlockId& target = function.blocks[from].succs[successor];
  auto& preds = function.blocks[target].preds;
  preds.erase(std::find(preds.begin(), preds.end(), from));
  target = to;
  function.blocks[to].preds.push_back(from);
}

ir::Value FunctionBuilder::append(ir::BlockId block, ir::Inst inst) {
  const auto value = static_cast<ir::Value>(function.insts.size());
  if (block != ir::kNone) {
    inst.block = block;
    function.blocks[block].insts.push_back(value);
  }
  function.insts.push_back(std::move(inst));
  return value;
}

Variable FunctionBuilder::new_variable(ir::Type type) {
  variable_types.push_back(type);
  return static_cast<Variable>(variable_types.size() - 1);
}

ir::Value FunctionBuilder::read(Variable variable, ir::BlockId block) {
  if (const ir::Value known = definitions.find(block, variable); known != ir::kNone) return known;
  const ir::Type type = variable_types[variable];
  if (block == 0) return nullary(ir::Op::undef, type, 0);
  const ir::Value phi = append(ir::kNone, {.op = ir::Op::phi, .type = type, .block = block});
  live_ins[block].push_back({variable, phi});
  definitions.set(block, variable, phi);
  return phi;
}

ir::Value FunctionBuilder::nullary(ir::Op op, ir::Type type, std::uint64_t imm) {
  const std::uint32_t kind = (static_cast<std::uint32_t>(op) << 8) | static_cast<std::uint32_t>(type);
  const bool narrow = imm <= 0xffffffffu;
  if (narrow) {
    if (const ir::Value known = nullary_by_type_.find(kind, static_cast<std::uint32_t>(imm));
        known != ir::kNone)
      return known;
  } else {
    for (const ir::Value known : wide_nullaries_) {
      if (function[known].op == op && function[known].type == type && function[known].imm == imm)
        return known;
    }
  }
  const ir::Value value = append(ir::kNone, {.op = op, .type = type, .imm = imm, .block = 0});
  prologue.push_back(value);
  if (narrow) nullary_by_type_.set(kind, static_cast<std::uint32_t>(imm), value);
  // Wide constants are searched linearly, so the list is kept short. A constant that is not found is only
  // duplicated.
  if (!narrow && wide_nullaries_.size() < 64) wide_nullaries_.push_back(value);
  return value;
}

ir::Value FunctionBuilder::constant(ir::Type type, std::uint64_t bits) {
  return nullary(ir::Op::constant, type, bits & low_mask(ir::bit_size(type)));
}

}  // namespace quern::cpu::lower
