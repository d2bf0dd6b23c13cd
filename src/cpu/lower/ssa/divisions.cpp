// SPDX-License-Identifier: Apache-2.0
// NVRTC divides 64-bit integers in 32 bits where both fit:
//
//   test:    narrow = ((a | b) & 0xffffffff00000000) == 0;  cond_br narrow, short, long
//   short:   s = zext(udiv(trunc a, trunc b));  br after
//   long:    l = sdiv(a, b);                    br after
//   after:   q = phi(s, l)
//
// If the program needs the remainder as well, `after` has a second phi: of a - l * b, and of the same in 32
// bits.
//
// On the CPU device the lanes of a warp would part, and the emitter makes that choice anyway, for all lanes
// at once (emit/operations/integer.cpp).
#include <algorithm>
#include <optional>
#include <vector>

#include "cpu/ir/divisions.hpp"
#include "cpu/lower/ssa/passes.hpp"
#include "cpu/lower/ssa/phis.hpp"

namespace quern::cpu::lower {
namespace {

using ir::BlockId;
using ir::Op;
using ir::Value;

struct Operands {
  Value a, b;
};

struct Diamond {
  BlockId test, narrow, wide, after;
};

class Matcher {
 public:
  explicit Matcher(const ir::Function& function) : function_(function) {}

  /// The blocks, if `test` ends in the choice.
  std::optional<Diamond> diamond(BlockId test) const {
    const ir::Block& block = function_.blocks[test];
    if (block.succs.size() != 2 || block.insts.empty()) return std::nullopt;
    const ir::Inst& condition = function_[function_[block.insts.back()].args[0]];
    if (condition.op != Op::icmp) return std::nullopt;
    const bool equal = condition.attr.icmp == ir::Icmp::eq;
    if (!equal && condition.attr.icmp != ir::Icmp::ne) return std::nullopt;
    const Diamond found{.test = test,
                        .narrow = block.succs[equal ? 0 : 1],
                        .wide = block.succs[equal ? 1 : 0],
                        .after = only_successor(block.succs[0])};
    if (found.after == ir::kNone || only_successor(found.wide) != found.after || !leads_from(test, found))
      return std::nullopt;
    const std::optional<Operands> tested = tested_operands(condition);
    if (!tested || !has_only_phis_of(found, *tested)) return std::nullopt;
    return found;
  }

  /// The result in 64 bits that a phi of `after` stands for.
  Value wide_result(const Diamond& found, Value phi) const {
    return function_[phi].args[index_of(found.after, found.wide)];
  }
  std::size_t index_of(BlockId block, BlockId pred) const {
    const auto& preds = function_.blocks[block].preds;
    return preds[0] == pred ? 0 : 1;
  }

 private:
  BlockId only_successor(BlockId block) const {
    const auto& succs = function_.blocks[block].succs;
    return succs.size() == 1 ? succs[0] : ir::kNone;
  }

  bool leads_from(BlockId test, const Diamond& found) const {
    const auto only = [&](BlockId block) {
      const auto& preds = function_.blocks[block].preds;
      return preds.size() == 1 && preds[0] == test;
    };
    return found.narrow != found.wide && only(found.narrow) && only(found.wide) &&
           only_successor(found.narrow) == found.after && function_.blocks[found.after].preds.size() == 2;
  }

  bool is_constant(Value value, std::uint64_t number) const {
    return function_[value].op == Op::constant && function_[value].imm == number;
  }

  /// The operands of a test whether both, or the only one that is not widened, are less than 2^32.
  std::optional<Operands> tested_operands(const ir::Inst& condition) const {
    const ir::Inst& high = function_[condition.args[0]];
    if (!is_constant(condition.args[1], 0) || high.op != Op::and_ || high.type != ir::Type::i64 ||
        !is_constant(high.args[1], 0xffffffff00000000u))
      return std::nullopt;
    const ir::Inst& both = function_[high.args[0]];
    if (both.op != Op::or_) return Operands{high.args[0], high.args[0]};
    return Operands{both.args[0], both.args[1]};
  }

  bool is_widened(Value value, Op by) const {
    const ir::Inst& inst = function_[value];
    return inst.op == by && function_[inst.args[0]].type == ir::Type::i32;
  }

  bool is_low_half(Value value, Value of) const {
    const ir::Inst& inst = function_[value];
    return (inst.op == Op::trunc && inst.type == ir::Type::i32 && inst.args[0] == of) ||
           ((is_widened(of, Op::zext) || is_widened(of, Op::sext)) && function_[of].args[0] == value);
  }

  /// True if `narrow` computes in 32 bits what `wide` computes in 64.
  bool is_same_division(const ir::Inst& narrow, const ir::Inst& wide, const Operands& of) const {
    const Value a = wide.args[0], b = wide.args[1];
    const auto fits = [&](Value value) {
      return value == of.a || value == of.b || is_widened(value, Op::zext);
    };
    return fits(a) && fits(b) && narrow.op == (ir::is_remainder(wide.op) ? Op::urem : Op::udiv) &&
           is_low_half(narrow.args[0], a) && is_low_half(narrow.args[1], b);
  }

  /// The same of a - a / b * b.
  bool is_same_rest(const ir::Inst& narrow, const ir::Inst& wide, const Operands& of) const {
    const Value in_32 = ir::divided_for(function_, narrow), in_64 = ir::divided_for(function_, wide);
    return in_32 != ir::kNone && in_64 != ir::kNone &&
           is_same_division(function_[in_32], function_[in_64], of);
  }

  /// True if all phis of `after` are results of the division, and the sides have no other effect.
  bool has_only_phis_of(const Diamond& found, const Operands& tested) const {
    for (const BlockId side : {found.narrow, found.wide})
      for (const Value value : function_.blocks[side].insts)
        if (function_[value].op != Op::br && !ir::has_trait(function_[value].op, 'p')) return false;
    const std::vector<Value> phis = phis_of(function_, found.after);
    return !phis.empty() && std::ranges::all_of(phis, [&](Value phi) {
      const ir::Inst& wide = function_[wide_result(found, phi)];
      const ir::Inst& extended = function_[function_[phi].args[index_of(found.after, found.narrow)]];
      if (extended.op != Op::zext) return false;
      const ir::Inst& narrow = function_[extended.args[0]];
      return ir::is_division(wide.op) ? is_same_division(narrow, wide, tested)
                                      : is_same_rest(narrow, wide, tested);
    });
  }

  const ir::Function& function_;
};

}  // namespace

void join_divisions(FunctionBuilder& builder) {
  ir::Function& function = builder.function;
  const Matcher matcher(function);
  Replacements replaced;
  for (BlockId test = 0; test < function.blocks.size(); ++test) {
    const std::optional<Diamond> found = matcher.diamond(test);
    if (!found) continue;
    ir::Block& after = function.blocks[found->after];
    const std::vector<Value> phis = phis_of(function, found->after);
    for (const Value phi : phis) replaced.set(phi, matcher.wide_result(*found, phi));
    after.insts.erase(after.insts.begin(), after.insts.begin() + static_cast<std::ptrdiff_t>(phis.size()));
    after.preds = {found->wide};
    function.blocks[found->narrow] = {};
    ir::Block& block = function.blocks[test];
    ir::Inst& branch = function[block.insts.back()];
    branch.op = Op::br;
    branch.args.clear();
    block.succs = {found->wide};
  }
  Replacements::apply(replaced, function);
}

}  // namespace quern::cpu::lower
