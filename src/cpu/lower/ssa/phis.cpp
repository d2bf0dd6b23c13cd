// SPDX-License-Identifier: Apache-2.0
#include "cpu/lower/ssa/phis.hpp"

#include <algorithm>

namespace quern::cpu::lower {
namespace {

using ir::Value;

/// The only value other than the phi itself among its operands, or kNone if there are two.
Value only_operand(FunctionBuilder& builder, Value phi, Replacements& replaced) {
  Value only = ir::kNone;
  for (const Value arg : builder.function[phi].args) {
    const Value value = replaced.find(arg);
    if (value == phi || value == only) continue;
    if (only != ir::kNone) return ir::kNone;
    only = value;
  }
  return only == ir::kNone ? builder.nullary(ir::Op::undef, builder.function[phi].type, 0) : only;
}

}  // namespace

void Replacements::set(Value value, Value by) {
  if (value >= to_.size()) to_.resize(value + 1, ir::kNone);
  to_[value] = by;
}

Value Replacements::find(Value value) {
  Value root = value;
  while (root < to_.size() && to_[root] != ir::kNone) root = to_[root];
  while (value != root) {
    const Value next = to_[value];
    to_[value] = root;
    value = next;
  }
  return root;
}

void Replacements::apply(Replacements& replacements, ir::Function& function) {
  for (ir::Inst& inst : function.insts) {
    for (Value& arg : inst.args) arg = replacements.find(arg);
  }
}

std::vector<ir::Value> phis_of(const ir::Function& function, ir::BlockId block) {
  std::vector<ir::Value> phis = function.blocks[block].insts;
  const auto is_phi = [&](ir::Value value) { return function[value].op == ir::Op::phi; };
  phis.erase(std::ranges::find_if_not(phis, is_phi), phis.end());
  return phis;
}

void remove_trivial_phis(FunctionBuilder& builder, const std::vector<Value>& phis, Replacements& replaced) {
  std::vector<std::vector<Value>> users(builder.function.insts.size());
  for (const Value phi : phis) {
    for (const Value arg : builder.function[phi].args) {
      if (builder.function[arg].op == ir::Op::phi) users[arg].push_back(phi);
    }
  }
  // The first phis come first. In the other order, the users of a whole chain of phis would gather at each
  // phi of the chain.
  std::vector<Value> work(phis.rbegin(), phis.rend());
  while (!work.empty()) {
    const Value phi = work.back();
    work.pop_back();
    if (replaced.find(phi) != phi) continue;
    const Value only = only_operand(builder, phi, replaced);
    if (only == ir::kNone) continue;
    replaced.set(phi, only);
    work.insert(work.end(), users[phi].begin(), users[phi].end());
    // Users of the replaced phi now depend on `only`. If `only` is a phi that is removed later, they must be
    // visited again.
    if (only < users.size() && builder.function[only].op == ir::Op::phi) {
      users[only].insert(users[only].end(), users[phi].begin(), users[phi].end());
    }
  }
}

}  // namespace quern::cpu::lower
