// SPDX-License-Identifier: Apache-2.0
// PTX instructions on f32, f16 and bf16 return the canonical NaN 0x7fffffff or 0x7fff; processors return
// other NaNs. Instructions that treat all NaNs as equal do not need canonical operands. If another operation
// reads such a value (a store, a shuffle, integer arithmetic, the sign of copysign), the NaN is made
// canonical before that operation. Values that are only loaded or moved keep their bits. f64 keeps the
// payloads of its operands, as the processor does; bf16 is made canonical when it is rounded. See
// docs/decisions/0013-nan-bits.md.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "cpu/lower/ssa/passes.hpp"

namespace quern::cpu::lower {
namespace {

using ir::BlockId;
using ir::Inst;
using ir::Op;
using ir::Type;
using ir::Value;

/// The state of a value if it is a NaN. neutral: not known yet, or the value adds no NaN of its own; pending:
/// it must be made canonical before its bits are read; settled: its bits are correct. A value moved from
/// several operands has the greatest of their states.
enum class State : std::uint8_t { neutral, pending, settled };

class Settler {
 public:
  explicit Settler(FunctionBuilder& builder)
      : builder_(builder),
        order_(order_blocks(builder.function)),
        state_(builder.function.insts.size()),
        bound_(builder.function.insts.size(), kUnbounded) {}

  void run() {
    for (const Value value : builder_.prologue) bound_[value] = bound_of(function()[value]);
    for (const BlockId block : order_.blocks)
      for (const Value value : function().blocks[block].insts) bound_[value] = bound_of(function()[value]);
    for (Value value = 0; value < state_.size(); ++value)
      if (!moves(value))
        state_[value] = bound_[value] < kUnbounded ? State::neutral : made(function()[value]);
    for (bool changes = true; changes;) changes = propagate();
    for (const BlockId block : order_.blocks) settle_block(block);
  }

 private:
  ir::Function& function() { return builder_.function; }
  bool moves(Value value) { return ir::has_trait(function()[value].op, 'm'); }

  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();

  /// An upper bound for the magnitude of an f32. A bounded value is no NaN: for example, the argument of an
  /// exponential is clamped before its bits are shifted. Operands defined later, such as those of phis, count
  /// as unbounded.
  double bound_of(const Inst& inst) {
    if (inst.type != Type::f32) return kUnbounded;
    const double bound = rough_bound(inst);
    return bound < 1e38 ? bound : kUnbounded;  // an f32 below this bound is not rounded to infinity
  }
  double rough_bound(const Inst& inst) {
    const auto of = [&](std::size_t index) { return bound_[inst.args[index]]; };
    if (inst.attr.sat) return 1;
    switch (inst.op) {
      case Op::constant: {
        const auto number = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(inst.imm)));
        return std::isfinite(number) ? std::fabs(number) : kUnbounded;
      }
      case Op::s_to_f:
      case Op::u_to_f:
        return 0x1p64;
      case Op::fadd:
      case Op::fsub:
        return of(0) + of(1);
      case Op::fmul:
        return of(0) == 0 || of(1) == 0 ? kUnbounded : of(0) * of(1);
      case Op::ffma:
        return of(0) == 0 || of(1) == 0 ? kUnbounded : of(0) * of(1) + of(2);
      case Op::fneg:
      case Op::fabs:
        return of(0);
      default:
        return kUnbounded;
    }
  }

  /// The state of the result of an instruction that does not only move bits.
  State made(const Inst& inst) {
    if (inst.op == Op::undef) return State::neutral;
    if (inst.op == Op::constant) return is_other_nan(inst) ? State::settled : State::neutral;
    if (inst.type != Type::f32 && inst.type != Type::f16) return State::settled;
    if (inst.attr.sat) return State::neutral;
    if (inst.op == Op::f_to_f) return made_by_conversion(inst);
    if (!ir::has_trait(inst.op, 'n')) return State::settled;
    // Instructions that require the canonical NaN emit it themselves.
    const bool narrow =
        inst.type == Type::f16 && (inst.attr.relu || inst.op == Op::fmin || inst.op == Op::fmax);
    return inst.attr.nan || narrow ? State::settled : State::pending;
  }

  /// True for a constant that, as a number of its width, is a NaN but not the canonical one.
  static bool is_other_nan(const Inst& constant) {
    const bool wide = ir::bit_size(constant.type) == 32;
    const std::uint64_t canonical = wide ? 0x7fffffff : 0x7fff;
    const std::uint64_t size = constant.imm & canonical;
    return size > (wide ? 0x7f800000u : 0x7c00u) && constant.imm != canonical;
  }

  /// Conversions to f16 produce the canonical NaN; f64 and bf16 keep their part of the payload.
  State made_by_conversion(const Inst& inst) {
    const Type from = function()[inst.args[0]].type;
    return inst.type == Type::f32 && (from == Type::f32 || from == Type::f16) ? State::pending
                                                                              : State::settled;
  }

  /// True if the result of `user` is the same for every NaN operand.
  bool is_blind(const Inst& user) {
    if (user.op != Op::f_to_f) return ir::has_trait(user.op, 'f');
    return user.type != Type::f64 && function()[user.args[0]].type != Type::bf16;
  }

  bool propagate() {
    bool changes = false;
    for (const BlockId block : order_.blocks)
      for (const Value value : function().blocks[block].insts) {
        if (!moves(value)) continue;
        const Inst& inst = function()[value];
        State state = state_[value];
        for (const Value arg : inst.args)
          if (inst.op != Op::select || arg != inst.args[0]) state = std::max(state, state_[arg]);
        if (!holds_reals(inst.type)) state = State::settled;
        changes |= std::exchange(state_[value], state) != state;
      }
    return changes;
  }

  /// True for types of registers that hold f32 and f16.
  static bool holds_reals(Type type) {
    return type == Type::f32 || type == Type::f16 || type == Type::i32 || type == Type::i16;
  }

  void settle_block(BlockId block) {
    settled_.clear();
    std::vector<Value> old;
    old.swap(function().blocks[block].insts);
    for (const Value value : old) {
      const Op op = function()[value].op;
      if (ir::has_trait(op, 't')) settle_phis(block);
      if (op != Op::phi) settle_operands(block, value);
      function().blocks[block].insts.push_back(value);
    }
  }

  void settle_operands(BlockId block, Value user) {
    if (is_blind(function()[user]) || state(user) == State::pending) return;
    for (std::size_t i = 0; i < function()[user].args.size(); ++i) {
      const Value arg = function()[user].args[i];
      if (state(arg) == State::pending) {
        const Value settled = settle(block, arg, function()[user].location);
        function()[user].args[i] = settled;
      }
    }
  }

  /// Makes operands canonical that phis of later blocks read at the end of `block`.
  void settle_phis(BlockId block) {
    for (const BlockId successor : function().blocks[block].succs) {
      const ir::Block& to = function().blocks[successor];
      for (std::size_t edge = 0; edge < to.preds.size(); ++edge) {
        if (to.preds[edge] != block) continue;
        for (const Value phi : to.insts) {
          if (function()[phi].op != Op::phi) break;
          const Value arg = function()[phi].args[edge];
          if (state(phi) != State::settled || state(arg) != State::pending) continue;
          const Value settled = settle(block, arg, function()[phi].location);
          function()[phi].args[edge] = settled;
        }
      }
    }
  }

  Value settle(BlockId block, Value value, std::uint32_t location) {
    const auto [known, fresh] = settled_.try_emplace(value, value);
    if (!fresh) return known->second;
    const Type type = function()[value].type;
    const Type real = type == Type::i32 ? Type::f32 : type == Type::i16 ? Type::f16 : type;
    Value number = value;
    if (real != type) {
      const Inst& inst = function()[value];
      const bool cast = inst.op == Op::bitcast && function()[inst.args[0]].type == real;
      number = cast ? inst.args[0] : append(block, Op::bitcast, real, value, location);
    }
    Value settled = append(block, Op::canonical_nan, real, number, location);
    if (real != type) settled = append(block, Op::bitcast, type, settled, location);
    settled_[value] = settled;
    return settled;
  }

  Value append(BlockId block, Op op, Type type, Value operand, std::uint32_t location) {
    return builder_.append(block, {.op = op, .type = type, .args = {operand}, .location = location});
  }

  /// Values that this pass creates are always settled.
  State state(Value value) const { return value < state_.size() ? state_[value] : State::settled; }

  FunctionBuilder& builder_;
  const Order order_;
  std::vector<State> state_;
  std::vector<double> bound_;                 ///< by value
  std::unordered_map<Value, Value> settled_;  ///< the canonical values in the current block
};

}  // namespace

void settle_nan_bits(FunctionBuilder& builder) { Settler(builder).run(); }

}  // namespace quern::cpu::lower
