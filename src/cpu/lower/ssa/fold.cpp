// SPDX-License-Identifier: Apache-2.0
// Folds identities and integer constants. Contains only simplifications that make the IR shorter to read and
// analyse; LLVM does the rest.
#include <array>
#include <optional>

#include "cpu/ir/fold.hpp"
#include "cpu/lower/ssa/function_builder.hpp"

namespace quern::cpu::lower {
namespace {

using ir::Op;
using ir::Value;

struct Folder {
  FunctionBuilder& builder;
  const ir::Inst& inst;

  const ir::Inst& operand(std::size_t index) const { return builder.function[inst.args[index]]; }
  std::optional<std::uint64_t> number(std::size_t index) const {
    if (operand(index).op != Op::constant) return std::nullopt;
    return operand(index).imm;
  }
  Value constant(std::uint64_t bits) const { return builder.constant(inst.type, bits); }

  Value conversion() const {
    const ir::Inst& from = operand(0);
    const std::uint32_t from_bits = ir::bit_size(from.type);
    if (from.type == inst.type) return inst.args[0];
    if (from.op == Op::undef) return builder.nullary(Op::undef, inst.type, 0);
    if (const auto bits = number(0)) {
      return constant(inst.op == Op::sext ? static_cast<std::uint64_t>(ir::sign_extend(*bits, from_bits))
                                          : *bits);
    }
    const bool undone = (inst.op == Op::bitcast && from.op == Op::bitcast) ||
                        (inst.op == Op::trunc && (from.op == Op::zext || from.op == Op::sext));
    if (undone && builder.function[from.args[0]].type == inst.type) return from.args[0];
    return ir::kNone;
  }

  /// a op 0, a op 1, a op all ones, if b is known.
  Value identity(std::uint64_t b) const {
    const std::uint64_t ones = low_mask(ir::bit_size(inst.type));
    switch (inst.op) {
      case Op::iadd:
      case Op::isub:
      case Op::or_:
      case Op::shl:
      case Op::lshr:
      case Op::ashr:
        return b == 0 ? inst.args[0] : ir::kNone;
      case Op::imul:
        return b == 1 ? inst.args[0] : b == 0 ? constant(0) : ir::kNone;
      case Op::and_:
        return b == ones ? inst.args[0] : b == 0 ? constant(0) : ir::kNone;
      case Op::xor_: {
        if (b == 0) return inst.args[0];
        const ir::Inst& inner = operand(0);
        if (inner.op != Op::xor_ || !builder.is_constant(inner.args[1])) return ir::kNone;
        return builder.function[inner.args[1]].imm == b ? inner.args[0] : ir::kNone;
      }
      default:
        return ir::kNone;
    }
  }

  Value binary() const {
    const auto a = number(0);
    const auto b = number(1);
    if (inst.op == Op::iadd && operand(0).op == Op::local_address && b) {
      return builder.nullary(Op::local_address, inst.type, operand(0).imm + *b);
    }
    const std::uint32_t width = ir::bit_size(operand(0).type);
    if (a && b) {
      const std::array<std::uint64_t, 2> known{*a, *b};
      if (const auto result = ir::fold(inst, width, known)) return constant(*result);
    }
    if (b) return identity(*b);
    const bool commutes = inst.op == Op::iadd || inst.op == Op::imul || inst.op == Op::and_ ||
                          inst.op == Op::or_ || inst.op == Op::xor_;
    if (!a || !commutes) return ir::kNone;
    ir::Inst swapped = inst;
    std::swap(swapped.args[0], swapped.args[1]);
    return Folder{builder, swapped}.identity(*a);
  }

  Value select() const {
    if (inst.args[1] == inst.args[2]) return inst.args[1];
    const auto condition = number(0);
    return condition ? inst.args[*condition != 0 ? 1 : 2] : ir::kNone;
  }

  /// Folds to_generic of from_generic and the reverse, for the same space.
  Value round_trip(Op inverse) const {
    const ir::Inst& inner = operand(0);
    return inner.op == inverse && inner.attr.space == inst.attr.space ? inner.args[0] : ir::kNone;
  }
};

}  // namespace

ir::Value fold(FunctionBuilder& builder, const ir::Inst& inst) {
  const Folder folder{builder, inst};
  switch (inst.op) {
    case Op::trunc:
    case Op::zext:
    case Op::sext:
    case Op::bitcast:
      return folder.conversion();
    case Op::iadd:
    case Op::isub:
    case Op::imul:
    case Op::and_:
    case Op::or_:
    case Op::xor_:
    case Op::shl:
    case Op::lshr:
    case Op::ashr:
    case Op::icmp:
      return folder.binary();
    case Op::select:
      return folder.select();
    case Op::to_generic:
      return folder.round_trip(Op::from_generic);
    case Op::from_generic:
      return folder.round_trip(Op::to_generic);
    default:
      return ir::kNone;
  }
}

}  // namespace quern::cpu::lower
