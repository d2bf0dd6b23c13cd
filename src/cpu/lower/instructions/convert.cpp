// SPDX-License-Identifier: Apache-2.0
// "Data Movement and Conversion Instructions": cvt.
#include <fmt/format.h>

#include "cpu/lower/instructions/fields.hpp"
#include "cpu/lower/instructions/floating.hpp"
#include "cpu/lower/instructions/narrow.hpp"

#include "cpu/lower/instructions/rows.hpp"

namespace quern::cpu::lower {
namespace {

using In = const ptx::Instruction&;
using ir::Op;
using ir::Type;
using ir::Value;
using M = ptx::Modifier;

bool is_float(ptx::Type type) {
  return type == ptx::Type::f16 || type == ptx::Type::bf16 || type == ptx::Type::f32 ||
         type == ptx::Type::f64;
}
bool is_integer(ptx::Type type) {
  const ptx::TypeKind kind = ptx::kind(type);
  return (kind == ptx::TypeKind::signed_ || kind == ptx::TypeKind::unsigned_ ||
          kind == ptx::TypeKind::bits) &&
         ir_type(type) != Type::none;
}

bool to_integral(In in) { return in.has(M::rni) || in.has(M::rzi) || in.has(M::rmi) || in.has(M::rpi); }

// .sat on integers clamps to the destination's range. A wider unsigned type lacks only the negative numbers.
// A signed type of the same width lacks only the large ones.
Value saturate_integer(Translator& t, Value value, ptx::Type from, ptx::Type to) {
  const Type type = ir_type(to);
  const std::uint32_t from_bits = ptx::bit_size(from);
  const std::uint32_t to_bits = ptx::bit_size(to);
  if (to_bits < from_bits) {
    return t.emit(is_signed(from) ? Op::saturate_s : Op::saturate_u, type, {value},
                  {.is_signed = is_signed(to)});
  }
  if (is_signed(from) && !is_signed(to))
    value = t.emit(Op::smax, t.type_of(value), {value, t.constant(t.type_of(value), 0)});
  if (!is_signed(from) && is_signed(to) && from_bits == to_bits) {
    value = t.emit(Op::umin, type, {value, t.constant(type, low_mask(to_bits - 1))});
  }
  return t.resize(value, type, is_signed(from));
}

void integer_to_integer(Translator& t, In in) {
  const ptx::Type to = in.type(0);
  const ptx::Type from = in.type(1);
  const Value value = t.read(in, 1, from);
  const Value result =
      in.has(M::sat) ? saturate_integer(t, value, from, to) : t.resize(value, ir_type(to), is_signed(from));
  t.write(in, result, is_signed(to));
}

void float_to_float(Translator& t, In in) {
  const Type to = ir_type(in.type(0));
  const Value value = t.read(in, 1, in.type(1));
  const bool plain_copy =
      t.type_of(value) == to && !to_integral(in) && !in.has(M::ftz) && !in.has(M::sat) && !in.has(M::relu);
  Value result =
      plain_copy ? value : t.emit(Op::f_to_f, to, {value}, float_attributes(in), to_integral(in) ? 1 : 0);
  if (in.has(M::satfinite)) result = keep_finite(t, result);
  t.write(in, result);
}

// cvt.rn.f16x2.f32 d, a, b: a becomes the upper half, b the lower half.
void floats_to_pair(Translator& t, In in, ptx::Type half) {
  if (in.type(1) != ptx::Type::f32 || in.operands.size() != 3)
    return t.refuse("this packed conversion is not implemented");
  const auto narrow = [&](std::size_t index) {
    const Value number =
        t.emit(Op::f_to_f, ir_type(half), {t.read(in, index, ptx::Type::f32)}, float_attributes(in));
    return in.has(M::satfinite) ? keep_finite(t, number) : number;
  };
  const Value high = narrow(1);
  t.write(in, word_of_halves(t, narrow(2), high));
}

// Converts by way of f64. Large 64-bit integers do not fit f64, so their lowest twelve bits are replaced by
// one sticky bit: only whether these bits are all zero can change the result.
void integer_to_bf16(Translator& t, In in) {
  const ptx::Type from = in.type(1);
  Value value = t.read(in, 1, from);
  if (ptx::bit_size(from) == 64) {
    constexpr std::uint64_t kLow = 0xfff, kLarge = std::uint64_t{1} << 20;
    const auto number = [&](std::uint64_t bits) { return t.constant(Type::i64, bits); };
    const Value low = t.emit(Op::and_, Type::i64, {value, number(kLow)});
    const Value some = t.select(t.compare(ir::Icmp::ne, low, number(0)), number((kLow + 1) / 2), number(0));
    const Value cut = t.emit(Op::or_, Type::i64, {t.emit(Op::and_, Type::i64, {value, number(~kLow)}), some});
    const Value small = is_signed(from)
                            ? t.compare(ir::Icmp::ult, t.emit(Op::iadd, Type::i64, {value, number(kLarge)}),
                                        number(2 * kLarge))
                            : t.compare(ir::Icmp::ult, value, number(kLarge));
    value = t.select(small, value, cut);
  }
  const Value exact = t.emit(is_signed(from) ? Op::s_to_f : Op::u_to_f, Type::f64, {value});
  t.write(in, t.emit(Op::f_to_f, Type::bf16, {exact}, float_attributes(in)));
}

void cvt(Translator& t, In in) {
  const ptx::Type to = in.type(0);
  const ptx::Type from = in.type(1);
  if (in.has(M::pack)) return convert_and_pack(t, in);
  if (is_narrow_vector(to)) return floats_to_narrow(t, in);
  if (is_narrow_vector(from)) return narrow_to_halves(t, in);
  if (to == ptx::Type::ue8m0x2) return floats_to_powers(t, in);
  if (from == ptx::Type::ue8m0x2) return powers_to_halves(t, in);
  if (to == ptx::Type::tf32 && from == ptx::Type::f32) return float_to_tf32(t, in);
  if (const ptx::Type half = half_of(to); is_float(half))
    return in.has(M::rs) ? floats_to_pair_at_random(t, in, half) : floats_to_pair(t, in, half);
  if (is_integer(to) && is_integer(from)) return integer_to_integer(t, in);
  if (is_float(to) && is_float(from)) return float_to_float(t, in);
  if (to == ptx::Type::bf16 && is_integer(from)) return integer_to_bf16(t, in);
  if (is_float(to) && is_integer(from)) {
    const Value value = t.read(in, 1, from);
    const Op op = is_signed(from) ? Op::s_to_f : Op::u_to_f;
    ir::Attributes attr = float_attributes(in);
    attr.sat = false;
    Value number = t.emit(op, ir_type(to), {value}, attr);
    if (in.has(M::sat)) number = t.emit(Op::f_to_f, ir_type(to), {number}, {.sat = true});
    return t.write(in, number);
  }
  if (is_integer(to) && is_float(from)) {
    const Value value = t.read(in, 1, from);
    const Op op = is_signed(to) ? Op::f_to_s : Op::f_to_u;
    return t.write(in, t.emit(op, ir_type(to), {value}, float_attributes(in)), is_signed(to));
  }
  t.refuse(fmt::format("conversion from .{} to .{} is not implemented", ptx::name(from), ptx::name(to)));
}

constexpr Row kRows[] = {{ptx::Opcode::cvt, Kind::pure, cvt}};

}  // namespace

std::span<const Row> convert_rows() { return kRows; }

}  // namespace quern::cpu::lower
