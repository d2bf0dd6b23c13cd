// SPDX-License-Identifier: Apache-2.0
// Checks the invariants of the IR. For tests and debug builds.
#include <fmt/format.h>

#include <algorithm>

#include "cpu/lower/lower.hpp"
#include "cpu/lower/passes.hpp"

namespace quern::cpu::lower {
namespace {

using ir::BlockId;
using ir::Op;
using ir::Type;
using ir::Value;

class Verifier {
 public:
  Verifier(const ir::Module& module, const ir::Function& function, Diagnostics& errors)
      : module_(module), function_(function), errors_(errors) {}

  void run() {
    if (function_.blocks.empty()) return fail("the function has no blocks");
    if (!function_.blocks[0].preds.empty()) fail("the entry has predecessors");
    place_values();
    for (BlockId block = 0; block < function_.blocks.size(); ++block) check_edges(block);
    if (!errors_.empty()) return;
    order_ = order_blocks(function_);
    nest_ = find_loops(function_, order_);
    for (BlockId block = 0; block < function_.blocks.size(); ++block) check_block(block);
  }

 private:
  void fail(const std::string& what) {
    errors_.push_back(
        {.code = "ir-invalid", .message = fmt::format("function '{}': {}", function_.name, what)});
  }
  void fail(Value value, const std::string& what) {
    fail(fmt::format("%{} ({}): {}", value, ir::name(function_[value].op), what));
  }

  void place_values() {
    position_.assign(function_.insts.size(), ir::kNone);
    for (BlockId block = 0; block < function_.blocks.size(); ++block) {
      const auto& insts = function_.blocks[block].insts;
      for (std::uint32_t i = 0; i < insts.size(); ++i) {
        if (insts[i] >= function_.insts.size())
          return fail(fmt::format("block{} names a value that is not there", block));
        if (position_[insts[i]] != ir::kNone) fail(insts[i], "stands in two places");
        position_[insts[i]] = i;
        if (function_[insts[i]].block != block) fail(insts[i], "says that it is in another block");
      }
    }
  }

  void check_edges(BlockId block) {
    const ir::Block& b = function_.blocks[block];
    const auto count = [](const std::vector<BlockId>& list, BlockId wanted) {
      return std::count(list.begin(), list.end(), wanted);
    };
    for (const BlockId succ : b.succs) {
      if (succ >= function_.blocks.size())
        return fail(fmt::format("block{} has a successor that is not there", block));
      if (count(b.succs, succ) != count(function_.blocks[succ].preds, block)) {
        fail(fmt::format("block{} and its successor block{} disagree", block, succ));
      }
      if (b.succs.size() > 1 && function_.blocks[succ].preds.size() > 1) {
        fail(fmt::format("the edge from block{} to block{} is critical", block, succ));
      }
    }
    for (const BlockId pred : b.preds) {
      if (pred >= function_.blocks.size() || count(function_.blocks[pred].succs, block) == 0) {
        fail(fmt::format("block{} has a predecessor that does not lead to it", block));
      }
    }
  }

  void check_block(BlockId block) {
    const ir::Block& b = function_.blocks[block];
    if (order_.position[block] == ir::kNone) return fail(fmt::format("block{} is not reachable", block));
    if (b.insts.empty() || !ir::has_trait(function_[b.insts.back()].op, 't'))
      return fail(fmt::format("block{} has no terminator", block));
    bool phis = true;
    for (const Value value : b.insts) {
      const ir::Inst& inst = function_[value];
      if (inst.op == Op::phi && !phis) fail(value, "a phi stands behind other instructions");
      phis = phis && inst.op == Op::phi;
      if (ir::has_trait(inst.op, 't') && value != b.insts.back())
        fail(value, "a terminator stands inside its block");
      check_operands(value, block);
      check_types(value);
    }
    check_successor_count(b);
    check_loop(block);
  }

  void check_successor_count(const ir::Block& b) {
    const Value last = b.insts.back();
    const Op op = function_[last].op;
    const std::size_t count = b.succs.size();
    const bool fits = op == Op::br          ? count == 1
                      : op == Op::cond_br   ? count == 2
                      : op == Op::switch_br ? count > 0
                                            : count == 0;
    if (!fits) fail(last, fmt::format("has {} successors", count));
  }

  void check_loop(BlockId block) {
    const auto& preds = function_.blocks[block].preds;
    const auto latches = std::count_if(preds.begin(), preds.end(),
                                       [&](BlockId pred) { return order_.dominates(block, pred); });
    if (latches != 0 && (latches != 1 || preds.size() != 2))
      fail(fmt::format("the loop of block{} is not in simplified form", block));
  }

  void check_operands(Value value, BlockId block) {
    const ir::Inst& inst = function_[value];
    const bool phi = inst.op == Op::phi;
    const auto& preds = function_.blocks[block].preds;
    if (phi && inst.args.size() != preds.size())
      return fail(value, "has not one operand for each predecessor");
    if (const int arity = ir::arity(inst.op);
        arity >= 0 && static_cast<std::size_t>(arity) != inst.args.size()) {
      return fail(value, fmt::format("has {} operands instead of {}", inst.args.size(), arity));
    }
    for (std::size_t i = 0; i < inst.args.size(); ++i) {
      const Value arg = inst.args[i];
      if (arg >= function_.insts.size() || position_[arg] == ir::kNone)
        return fail(value, "has an operand that is not there");
      const BlockId at = phi ? preds[i] : block;
      const BlockId definition = function_[arg].block;
      const bool before =
          definition != at ? order_.dominates(definition, at) : phi || position_[arg] < position_[value];
      if (!before) fail(value, fmt::format("is not dominated by its operand %{}", arg));
      const std::uint32_t loop = nest_.innermost[definition];
      if (loop != ir::kNone && !nest_.contains(loop, at))
        fail(value, fmt::format("reads %{} outside its loop", arg));
    }
  }

  Type type(const ir::Inst& inst, std::size_t index) const { return function_[inst.args[index]].type; }

  /// Operands from `first` on are of the instruction's own type.
  bool same_types(const ir::Inst& inst, std::size_t first, std::size_t count) const {
    for (std::size_t i = first; i < first + count; ++i) {
      if (type(inst, i) != inst.type) return false;
    }
    return true;
  }

  void check_types(Value value) {
    const ir::Inst& inst = function_[value];
    if (!types_fit(inst)) {
      std::string types;
      for (std::size_t i = 0; i < inst.args.size(); ++i) types += fmt::format(" {}", ir::name(type(inst, i)));
      fail(value, fmt::format("of type {} has operands of types{}", ir::name(inst.type), types));
    }
  }

  bool types_fit(const ir::Inst& inst) const {
    const bool integer = !ir::is_float(inst.type) && inst.type != Type::none;
    const auto bits = [](Type t) { return ir::bit_size(t); };
    switch (inst.op) {
      case Op::phi:
        return same_types(inst, 0, inst.args.size());
      case Op::iadd:
      case Op::isub:
      case Op::imul:
      case Op::imulhi_s:
      case Op::imulhi_u:
      case Op::sdiv:
      case Op::udiv:
      case Op::srem:
      case Op::urem:
      case Op::smin:
      case Op::smax:
      case Op::umin:
      case Op::umax:
      case Op::iadd_sat:
      case Op::isub_sat:
      case Op::and_:
      case Op::or_:
      case Op::xor_:
        return integer && same_types(inst, 0, 2);
      case Op::iabs:
      case Op::brev:
        return integer && same_types(inst, 0, 1);
      case Op::shl:
      case Op::lshr:
      case Op::ashr:
        return integer && same_types(inst, 0, 1) && type(inst, 1) == Type::i32;
      case Op::bfe:
        return integer && same_types(inst, 0, 1) && type(inst, 1) == Type::i32 && type(inst, 2) == Type::i32;
      case Op::bfi:
        return integer && same_types(inst, 0, 2) && type(inst, 2) == Type::i32 && type(inst, 3) == Type::i32;
      case Op::funnel_l:
      case Op::funnel_r:
      case Op::prmt:
      case Op::lop3:
        return inst.type == Type::i32 && same_types(inst, 0, 3);
      case Op::popc:
      case Op::clz:
      case Op::bfind:
        return inst.type == Type::i32 && !ir::is_float(type(inst, 0));
      case Op::add_carry:
        return integer && same_types(inst, 0, 2) && type(inst, 2) == Type::i1;
      case Op::carry_of_add:
        return inst.type == Type::i1 && type(inst, 0) == type(inst, 1) && type(inst, 2) == Type::i1;
      case Op::icmp:
        return inst.type == Type::i1 && type(inst, 0) == type(inst, 1) && !ir::is_float(type(inst, 0));
      case Op::fcmp:
        return inst.type == Type::i1 && type(inst, 0) == type(inst, 1) && ir::is_float(type(inst, 0));
      case Op::select:
        return type(inst, 0) == Type::i1 && same_types(inst, 1, 2);
      case Op::fadd:
      case Op::fsub:
      case Op::fmul:
      case Op::fdiv:
      case Op::fmin:
      case Op::fmax:
      case Op::copysign:
        return ir::is_float(inst.type) && same_types(inst, 0, 2);
      case Op::ffma:
        return ir::is_float(inst.type) && same_types(inst, 0, 3);
      case Op::fsqrt:
      case Op::frcp:
      case Op::fneg:
      case Op::fabs:
      case Op::canonical_nan:
        return ir::is_float(inst.type) && same_types(inst, 0, 1);
      case Op::approx:
        return ir::is_float(inst.type) && same_types(inst, 0, inst.args.size());
      case Op::trunc:
        return integer && !ir::is_float(type(inst, 0)) && bits(inst.type) < bits(type(inst, 0));
      case Op::zext:
      case Op::sext:
        return integer && !ir::is_float(type(inst, 0)) && bits(inst.type) > bits(type(inst, 0));
      case Op::bitcast:
        return bits(inst.type) == bits(type(inst, 0));
      case Op::f_to_s:
      case Op::f_to_u:
        return integer && ir::is_float(type(inst, 0));
      case Op::s_to_f:
      case Op::u_to_f:
        return ir::is_float(inst.type) && !ir::is_float(type(inst, 0));
      case Op::f_to_f:
        return ir::is_float(inst.type) && ir::is_float(type(inst, 0));
      case Op::saturate_s:
      case Op::saturate_u:
        return integer && bits(inst.type) < bits(type(inst, 0));
      case Op::load:
        return inst.type != Type::none && type(inst, 0) == Type::i64;
      case Op::store:
        return type(inst, 0) == Type::i64 && inst.args.size() == std::size_t{inst.attr.count} + 1;
      case Op::atomic:
        return type(inst, 0) == Type::i64 && same_types(inst, 1, inst.args.size() - 1);
      case Op::to_generic:
      case Op::from_generic:
        return inst.type == Type::i64 && type(inst, 0) == Type::i64;
      case Op::cond_br:
        return type(inst, 0) == Type::i1;
      case Op::switch_br:
        return type(inst, 0) == Type::i32;
      case Op::call:
        return inst.imm < module_.functions.size() && call_fits(inst);
      case Op::symbol:
        return inst.type == Type::i64 && inst.imm < module_.symbols.size();
      default:
        return true;
    }
  }

  bool call_fits(const ir::Inst& inst) const {
    const auto& types = module_.functions[inst.imm].argument_types;
    if (types.size() != inst.args.size()) return false;
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (types[i] != type(inst, i)) return false;
    }
    return true;
  }

  const ir::Module& module_;
  const ir::Function& function_;
  Diagnostics& errors_;
  std::vector<std::uint32_t> position_;
  Order order_;
  LoopNest nest_;
};

}  // namespace

Expected<void> verify(const ir::Module& module) {
  Diagnostics errors;
  for (const ir::Function& function : module.functions) Verifier(module, function, errors).run();
  if (!errors.empty()) return errors;
  return {};
}

}  // namespace quern::cpu::lower
