// SPDX-License-Identifier: Apache-2.0
// Lowers szext, bmsk, fns ("Integer Arithmetic Instructions") and cvt.pack ("Data Movement and Conversion
// Instructions: cvt.pack") as sequences of simpler operations.
#include "cpu/lower/instructions/fields.hpp"

#include <fmt/format.h>

#include "cpu/lower/instructions/rows.hpp"

namespace quern::cpu::lower {

using In = const ptx::Instruction&;
using ir::Icmp;
using ir::Op;
using ir::Type;
using ir::Value;
using M = ptx::Modifier;

namespace {

/// Short names for 32-bit arithmetic.
struct Words {
  Translator& t;

  Value number(std::uint64_t bits) const { return t.constant(Type::i32, bits); }
  Value apply(Op op, Value a, Value b) const { return t.emit(op, Type::i32, {a, b}); }
  Value ones_from(Value position) const { return apply(Op::shl, number(~std::uint64_t{0}), position); }
  Value beyond_31(Value a) const { return t.compare(Icmp::ugt, a, number(31)); }
};

// szext: zero- or sign-extends the low b bits of a. .wrap takes b modulo 32; .clamp treats widths above 31 as
// 32.
void szext(Translator& t, In in) {
  const Words w{t};
  const Value a = t.read(in, 1, in.type());
  const Value b = t.read(in, 2, ptx::Type::u32);
  const Value width = w.apply(Op::and_, b, w.number(31));
  const Value unused = w.apply(Op::and_, w.apply(Op::isub, w.number(32), width), w.number(31));
  const Value top = w.apply(Op::shl, a, unused);
  const Op extend = is_signed(in.type()) ? Op::ashr : Op::lshr;
  const Value none = t.compare(Icmp::eq, width, w.number(0));
  Value result = t.select(none, w.number(0), w.apply(extend, top, unused));
  if (in.has(M::clamp)) result = t.select(w.beyond_31(b), a, result);
  t.write(in, result, is_signed(in.type()));
}

// bmsk: sets b bits from position a on. .wrap takes both modulo 32; .clamp ends the mask at bit 31.
void bmsk(Translator& t, In in) {
  const Words w{t};
  const Value a = t.read(in, 1, ptx::Type::u32);
  const Value b = t.read(in, 2, ptx::Type::u32);
  const Value position = w.apply(Op::and_, a, w.number(31));
  const Value width = w.apply(Op::and_, b, w.number(31));
  // A shift by 32 or more gives 0, so the mask then has no upper end.
  Value above = w.ones_from(w.apply(Op::iadd, position, width));
  Value from = w.ones_from(position);
  if (in.has(M::clamp)) {
    from = t.select(w.beyond_31(a), w.number(0), from);
    above = t.select(w.beyond_31(b), w.number(0), above);
  }
  t.write(in, w.apply(Op::and_, from, t.logical_not(above)));
}

/// Position of the set bit of `mask` that has `before` set bits below it. The caller checks that there is
/// one.
Value position_of_set_bit(const Words& w, Value mask, Value before) {
  Value position = w.number(0);
  for (const std::uint32_t width : {16u, 8u, 4u, 2u, 1u}) {
    const Value part = w.apply(Op::and_, w.apply(Op::lshr, mask, position), w.number(low_mask(width)));
    const Value count = w.t.emit(Op::popc, Type::i32, {part});
    const Value beyond = w.t.compare(Icmp::uge, before, count);
    before = w.t.select(beyond, w.apply(Op::isub, before, count), before);
    position = w.t.select(beyond, w.apply(Op::iadd, position, w.number(width)), position);
  }
  return position;
}

// fns: finds the |offset|-th set bit of the mask, counted from bit `base` upwards (offset > 0) or downwards
// (offset < 0). With offset 0, finds bit `base` itself if it is set. Returns 0xffffffff if there is no such
// bit.
void fns(Translator& t, In in) {
  const Words w{t};
  const Value mask = t.read(in, 1, ptx::Type::b32);
  const Value base = t.read(in, 2, ptx::Type::b32);
  const Value offset = t.read(in, 3, ptx::Type::s32);
  const Value zero = w.number(0);
  const Value down = t.compare(Icmp::slt, offset, zero);
  const Value here = t.compare(Icmp::eq, offset, zero);
  // To search downwards, search the reversed mask upwards.
  const Value at = t.select(down, w.apply(Op::isub, w.number(31), base), base);
  Value bits = t.select(down, t.emit(Op::brev, Type::i32, {mask}), mask);
  bits = w.apply(Op::and_, bits, w.ones_from(at));
  bits = t.select(
      here, w.apply(Op::and_, bits, t.logical_not(w.ones_from(w.apply(Op::iadd, at, w.number(1))))), bits);
  const Value count = t.emit(Op::iabs, Type::i32, {offset});
  const Value before = t.select(here, zero, w.apply(Op::isub, count, w.number(1)));
  const Value found = position_of_set_bit(w, bits, before);
  const Value position = t.select(down, w.apply(Op::isub, w.number(31), found), found);
  // No bits are left if the base is beyond the word.
  const Value exists = t.compare(Icmp::ugt, t.emit(Op::popc, Type::i32, {bits}), before);
  t.write(in, t.select(exists, position, w.number(~std::uint64_t{0})));
}

constexpr Row kRows[] = {
    {ptx::Opcode::szext, Kind::pure, szext},
    {ptx::Opcode::bmsk, Kind::pure, bmsk},
    {ptx::Opcode::fns, Kind::pure, fns},
};

}  // namespace

std::span<const Row> field_rows() { return kRows; }

Value clamp_signed(Translator& t, Value value, std::int64_t low, std::int64_t high) {
  const Type type = t.type_of(value);
  value = t.emit(Op::smax, type, {value, t.constant(type, static_cast<std::uint64_t>(low))});
  return t.emit(Op::smin, type, {value, t.constant(type, static_cast<std::uint64_t>(high))});
}

Value clamp_to_bits(Translator& t, Value value, std::uint32_t bits, bool is_signed_type) {
  const auto high = static_cast<std::int64_t>(low_mask(is_signed_type ? bits - 1 : bits));
  return clamp_signed(t, value, is_signed_type ? -high - 1 : 0, high);
}

// cvt.pack.sat: clamps a and b to the narrow type and packs them with a in the upper part. For types below 16
// bits, the upper bits of the word are the low bits of c.
void convert_and_pack(Translator& t, In in) {
  const Words w{t};
  const std::uint32_t bits = ptx::bit_size(in.type(0));
  const auto part = [&](std::size_t index) {
    const Value limited = clamp_to_bits(t, t.read(in, index, ptx::Type::s32), bits, is_signed(in.type(0)));
    return w.apply(Op::and_, limited, w.number(low_mask(bits)));
  };
  const Value upper = part(1);
  Value word = w.apply(Op::or_, part(2), w.apply(Op::shl, upper, w.number(bits)));
  if (bits < 16) {
    const Value rest = t.read(in, 3, ptx::Type::b32);
    word = w.apply(Op::or_, word, w.apply(Op::shl, rest, w.number(2 * bits)));
  }
  t.write(in, word);
}

}  // namespace quern::cpu::lower
