// SPDX-License-Identifier: Apache-2.0
// Lowers "Video Instructions": scalar ones (vadd, vmad, vset, ...) on selected bytes and halves, and SIMD
// ones (vadd2, vset4, ...) on halves or bytes of two words. Intermediate results have 64 bits and are exact.
#include <algorithm>
#include <iterator>

#include "cpu/lower/instructions/fields.hpp"
#include "ptx/selector.hpp"

#include "cpu/lower/instructions/rows.hpp"

namespace quern::cpu::lower {
namespace {

using In = const ptx::Instruction&;
using ir::Icmp;
using ir::Op;
using ir::Type;
using ir::Value;
using M = ptx::Modifier;
using Opcode = ptx::Opcode;

/// The bits of a word that a selector selects.
struct Part {
  std::uint32_t first = 0;
  std::uint32_t bits = 32;
};

Part selected(const ptx::Operand& operand) {
  const auto* reg = operand.as<ptx::RegisterOperand>();
  if (reg == nullptr || reg->component < ptx::kBytes) return {};
  const auto which = static_cast<std::uint32_t>(reg->component);
  return which < ptx::kHalves ? Part{(which - ptx::kBytes) * 8, 8} : Part{(which - ptx::kHalves) * 16, 16};
}

/// The operand without its selector and sign.
ptx::Operand whole(const ptx::Operand& operand) {
  const auto* reg = operand.as<ptx::RegisterOperand>();
  return reg == nullptr ? operand : ptx::Operand{ptx::RegisterOperand{reg->index, false, -1}};
}

bool is_negated(const ptx::Operand& operand) {
  const auto* reg = operand.as<ptx::RegisterOperand>();
  return reg != nullptr && reg->negated;
}

/// Bits of a word as a number of type `to`.
Value extract(Translator& t, Value word, Part part, bool is_signed_type, Type to) {
  const Value shifted = t.emit(Op::lshr, Type::i32, {word, t.constant(Type::i32, part.first)});
  return t.resize(t.resize(shifted, integer_type(part.bits), false), to, is_signed_type);
}

/// partSelectSignExtend of the PTX ISA.
Value source(Translator& t, In in, std::size_t index, bool is_signed_type) {
  const ptx::Operand& operand = t.operand(in, index);
  const Value word = t.read(whole(operand), ptx::Type::b32);
  return extract(t, word, selected(operand), is_signed_type, Type::i64);
}

struct Arithmetic {
  Translator& t;
  Type type;

  Value apply(Op op, Value a, Value b) const { return t.emit(op, type, {a, b}); }
  Value number(std::uint64_t bits) const { return t.constant(type, bits); }
  Value difference(Value a, Value b) const {
    return apply(Op::isub, apply(Op::smax, a, b), apply(Op::smin, a, b));
  }
  /// Rounds ties away from zero if the sum is not negative, otherwise towards minus infinity.
  Value average(Value a, Value b) const {
    const Value sum = apply(Op::iadd, a, b);
    const Value negative = t.resize(t.compare(Icmp::slt, sum, number(0)), type, false);
    const Value up = apply(Op::isub, number(1), negative);
    return t.emit(Op::ashr, type, {apply(Op::iadd, sum, up), t.constant(Type::i32, 1)});
  }
};

enum class Function : std::uint8_t { add, sub, absdiff, min, max, average, set };

Value compare(Translator& t, In in, Value a, Value b) {
  struct Comparison {
    M modifier;
    Icmp how;
  };
  static constexpr Comparison kComparisons[] = {{M::eq, Icmp::eq},  {M::ne, Icmp::ne},  {M::lt, Icmp::slt},
                                                {M::le, Icmp::sle}, {M::gt, Icmp::sgt}, {M::ge, Icmp::sge}};
  const auto row = std::find_if(std::begin(kComparisons), std::end(kComparisons),
                                [&](const Comparison& c) { return in.has(c.modifier); });
  return t.compare(row == std::end(kComparisons) ? Icmp::eq : row->how, a, b);
}

Value compute(const Arithmetic& w, In in, Function function, Value a, Value b) {
  switch (function) {
    case Function::add:
      return w.apply(Op::iadd, a, b);
    case Function::sub:
      return w.apply(Op::isub, a, b);
    case Function::absdiff:
      return w.difference(a, b);
    case Function::min:
      return w.apply(Op::smin, a, b);
    case Function::max:
      return w.apply(Op::smax, a, b);
    case Function::average:
      return w.average(a, b);
    case Function::set:
      break;
  }
  return w.t.resize(compare(w.t, in, a, b), w.type, false);
}

// --- scalar: optSaturate, optSecondaryOp and optMerge of the manual

/// Writes the result of a scalar video instruction from its intermediate result (64 bits).
void finish_scalar(Translator& t, In in, Value result, bool signed_result) {
  const ptx::Operand& destination = t.operand(in, 0);
  const Part part = selected(destination);
  if (in.has(M::sat)) result = clamp_to_bits(t, result, part.bits, signed_result);
  if (in.operands.size() > 3) {
    const Value c = t.read(in, 3, ptx::Type::b32);
    const Value wide = t.resize(c, Type::i64, signed_result);
    if (in.has(M::add)) result = t.emit(Op::iadd, Type::i64, {result, wide});
    if (in.has(M::min)) result = t.emit(Op::smin, Type::i64, {result, wide});
    if (in.has(M::max)) result = t.emit(Op::smax, Type::i64, {result, wide});
    if (part.bits < 32) {
      const Value low = t.resize(result, Type::i32, false);
      const Value merged = t.emit(
          Op::bfi, Type::i32, {low, c, t.constant(Type::i32, part.first), t.constant(Type::i32, part.bits)});
      return t.write(whole(destination), merged);
    }
  }
  if (part.bits < 32) {
    // If there is no c, the rest of the word is zero.
    result = t.emit(Op::and_, Type::i64, {result, t.constant(Type::i64, low_mask(part.bits))});
    result = t.emit(Op::shl, Type::i64, {result, t.constant(Type::i32, part.first)});
  }
  t.write(whole(destination), t.resize(result, Type::i32, false));
}

template <Function function>
void scalar(Translator& t, In in) {
  const Value a = source(t, in, 1, is_signed(in.type(1)));
  const Value b = source(t, in, 2, is_signed(in.type(2)));
  finish_scalar(t, in, compute({t, Type::i64}, in, function, a, b), is_signed(in.type(0)));
}

// vset has no destination type: its result is 0 or 1.
void vset(Translator& t, In in) {
  const Value a = source(t, in, 1, is_signed(in.type(0)));
  const Value b = source(t, in, 2, is_signed(in.type(1)));
  finish_scalar(t, in, compute({t, Type::i64}, in, Function::set, a, b), false);
}

void shift(Translator& t, In in, Op op) {
  Value a = source(t, in, 1, is_signed(in.type(1)));
  const Value b = t.resize(source(t, in, 2, false), Type::i32, false);
  const Value amount = in.has(M::wrap) ? t.emit(Op::and_, Type::i32, {b, t.constant(Type::i32, 31)})
                                       : t.emit(Op::umin, Type::i32, {b, t.constant(Type::i32, 32)});
  if (op == Op::shl && in.has(M::sat)) {
    // A shift by 32 of 32 bits and a sign needs more than 64 bits. So values that the instruction clamps to
    // 32 bits are clamped before a long shift, too.
    const Value far = t.compare(Icmp::uge, amount, t.constant(Type::i32, 16));
    a = t.select(far, clamp_signed(t, a, -(std::int64_t{1} << 20), std::int64_t{1} << 20), a);
  }
  finish_scalar(t, in, t.emit(op, Type::i64, {a, amount}), is_signed(in.type(0)));
}
void vshl(Translator& t, In in) { shift(t, in, Op::shl); }
void vshr(Translator& t, In in) { shift(t, in, Op::ashr); }

// vmad: a * b + c, with a product or c possibly negated, or plus one (.po); then shifted right and clamped.
// The result is signed unless both factors are unsigned and nothing is negated; an unsigned result may need
// all 64 bits.
void vmad(Translator& t, In in) {
  const bool product_negated = is_negated(t.operand(in, 1)) != is_negated(t.operand(in, 2));
  const bool addend_negated = is_negated(t.operand(in, 3));
  const bool unsigned_factors = !is_signed(in.type(1)) && !is_signed(in.type(2));
  const bool signed_result = !unsigned_factors || product_negated || addend_negated;
  const bool wide = selected(t.operand(in, 1)).bits == 32 && selected(t.operand(in, 2)).bits == 32;
  if (unsigned_factors && signed_result && wide)
    return t.refuse("a negated operand with two unsigned factors of 32 bits needs more than 64 bits");
  if (product_negated && addend_negated) return t.refuse("only one of the product and c may be negated");
  const auto apply = [&](Op op, Value x, Value y) { return t.emit(op, Type::i64, {x, y}); };
  Value result =
      apply(Op::imul, source(t, in, 1, is_signed(in.type(1))), source(t, in, 2, is_signed(in.type(2))));
  const Value zero = t.constant(Type::i64, 0);
  Value c = t.resize(t.read(whole(t.operand(in, 3)), ptx::Type::b32), Type::i64, signed_result);
  if (product_negated) result = apply(Op::isub, zero, result);
  if (addend_negated) c = apply(Op::isub, zero, c);
  result = apply(Op::iadd, result, c);
  if (in.has(M::po)) result = apply(Op::iadd, result, t.constant(Type::i64, 1));
  const std::uint32_t scale = in.has(M::shr7) ? 7 : in.has(M::shr15) ? 15 : 0;
  result = t.emit(signed_result ? Op::ashr : Op::lshr, Type::i64, {result, t.constant(Type::i32, scale)});
  if (in.has(M::sat) && signed_result) result = clamp_to_bits(t, result, 32, true);
  if (in.has(M::sat) && !signed_result) result = apply(Op::umin, result, t.constant(Type::i64, low_mask(32)));
  t.write(in, t.resize(result, Type::i32, false));
}

// --- SIMD

/// The bits of a word outside the mask's lanes.
std::uint32_t outside(std::uint32_t mask, unsigned lanes) {
  const unsigned bits = 32 / lanes;
  std::uint32_t result = 0;
  for (unsigned lane = 0; lane < lanes; ++lane)
    if ((mask >> lane & 1) == 0) result |= static_cast<std::uint32_t>(low_mask(bits)) << (lane * bits);
  return result;
}

std::int16_t component_of(const ptx::Operand& operand) {
  const auto* reg = operand.as<ptx::RegisterOperand>();
  return reg == nullptr ? std::int16_t{-1} : reg->component;
}

/// .asel and .bsel: the parts of {b, a} that operand `index` provides for each lane.
std::array<std::uint8_t, 4> sources_of(In in, std::size_t index, unsigned lanes) {
  const auto first = static_cast<unsigned>(index - 1) * lanes;
  return ptx::lane_sources(component_of(in.operands[index]), lanes, first)
      .value_or(std::array<std::uint8_t, 4>{});
}

/// vop2 (lanes of 16 bits) and vop4 (lanes of 8 bits): the results in the lanes of the mask, and those of c
/// in the other lanes. With .add, the sum of the lanes in the mask and c.
void simd(Translator& t, In in, Function function, std::uint32_t bits) {
  const bool sets = function == Function::set;  // vset has no destination type
  const bool signed_result = !sets && is_signed(in.type(0));
  const Arithmetic w{t, Type::i32};
  const unsigned lanes = 32 / bits;
  const Value words[] = {t.read(whole(t.operand(in, 1)), ptx::Type::b32),
                         t.read(whole(t.operand(in, 2)), ptx::Type::b32)};
  const Value c = t.read(in, 3, ptx::Type::b32);
  const std::uint32_t mask = ptx::lane_mask(component_of(t.operand(in, 0)), lanes).value_or(0);
  const auto from_a = sources_of(in, 1, lanes);
  const auto from_b = sources_of(in, 2, lanes);
  const auto part = [&](unsigned source, bool is_signed_type) {
    return extract(t, words[source / lanes], {source % lanes * bits, bits}, is_signed_type, Type::i32);
  };
  Value result = in.has(M::add) ? c : w.apply(Op::and_, c, w.number(outside(mask, lanes)));
  for (unsigned at = 0; at < lanes; ++at) {
    if ((mask >> at & 1) == 0) continue;
    const std::uint32_t first = at * bits;
    const Value x = part(from_a[at], is_signed(in.type(sets ? 0 : 1)));
    const Value y = part(from_b[at], is_signed(in.type(sets ? 1 : 2)));
    Value lane = compute(w, in, function, x, y);
    if (in.has(M::sat)) lane = clamp_to_bits(t, lane, bits, signed_result);
    if (in.has(M::add)) {
      result = w.apply(Op::iadd, result, lane);
    } else {
      const Value cut = w.apply(Op::and_, lane, w.number(low_mask(bits)));
      result = w.apply(Op::or_, result, t.emit(Op::shl, Type::i32, {cut, t.constant(Type::i32, first)}));
    }
  }
  t.write(whole(t.operand(in, 0)), result);
}

template <Function function, std::uint32_t bits>
void simd_row(Translator& t, In in) {
  simd(t, in, function, bits);
}

constexpr Row kRows[] = {
    {Opcode::vadd, Kind::pure, scalar<Function::add>},
    {Opcode::vsub, Kind::pure, scalar<Function::sub>},
    {Opcode::vabsdiff, Kind::pure, scalar<Function::absdiff>},
    {Opcode::vmin, Kind::pure, scalar<Function::min>},
    {Opcode::vmax, Kind::pure, scalar<Function::max>},
    {Opcode::vshl, Kind::pure, vshl},
    {Opcode::vshr, Kind::pure, vshr},
    {Opcode::vmad, Kind::pure, vmad},
    {Opcode::vset, Kind::pure, vset},
    {Opcode::vadd2, Kind::pure, simd_row<Function::add, 16>},
    {Opcode::vsub2, Kind::pure, simd_row<Function::sub, 16>},
    {Opcode::vavrg2, Kind::pure, simd_row<Function::average, 16>},
    {Opcode::vabsdiff2, Kind::pure, simd_row<Function::absdiff, 16>},
    {Opcode::vmin2, Kind::pure, simd_row<Function::min, 16>},
    {Opcode::vmax2, Kind::pure, simd_row<Function::max, 16>},
    {Opcode::vset2, Kind::pure, simd_row<Function::set, 16>},
    {Opcode::vadd4, Kind::pure, simd_row<Function::add, 8>},
    {Opcode::vsub4, Kind::pure, simd_row<Function::sub, 8>},
    {Opcode::vavrg4, Kind::pure, simd_row<Function::average, 8>},
    {Opcode::vabsdiff4, Kind::pure, simd_row<Function::absdiff, 8>},
    {Opcode::vmin4, Kind::pure, simd_row<Function::min, 8>},
    {Opcode::vmax4, Kind::pure, simd_row<Function::max, 8>},
    {Opcode::vset4, Kind::pure, simd_row<Function::set, 8>},
};

}  // namespace

std::span<const Row> video_rows() { return kRows; }

}  // namespace quern::cpu::lower
