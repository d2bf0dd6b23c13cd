// SPDX-License-Identifier: Apache-2.0
// "Floating-Point Instructions", "Half Precision Floating-Point Instructions".
#include "cpu/lower/instructions/floating.hpp"

#include <fmt/format.h>

#include "cpu/lower/instructions/rows.hpp"

namespace quern::cpu::lower {

using ir::Op;
using ir::Type;
using ir::Value;
using In = const ptx::Instruction&;
using M = ptx::Modifier;

ir::Attributes float_attributes(In in) {
  ir::Attributes attr{
      .ftz = in.has(M::ftz), .sat = in.has(M::sat), .nan = in.has(M::NaN), .relu = in.has(M::relu)};
  if (in.has(M::rz) || in.has(M::rzi)) attr.rounding = ir::Rounding::rz;
  if (in.has(M::rm) || in.has(M::rmi)) attr.rounding = ir::Rounding::rm;
  if (in.has(M::rp) || in.has(M::rpi)) attr.rounding = ir::Rounding::rp;
  if (in.has(M::rna)) attr.rounding = ir::Rounding::rna;
  return attr;
}

Value half_of_word(Translator& t, Value word, Type type, bool high) {
  if (high) word = t.emit(Op::lshr, Type::i32, {word, t.constant(Type::i32, 16)});
  return t.resize(t.resize(word, Type::i16, false), type, false);
}

Value word_of_halves(Translator& t, Value low, Value high) {
  const Value top = t.emit(Op::shl, Type::i32, {t.resize(high, Type::i32, false), t.constant(Type::i32, 16)});
  return t.emit(Op::or_, Type::i32, {t.resize(low, Type::i32, false), top});
}

namespace {

/// Applies `operation` to the operands 1..count; for a packed type, to each half separately.
template <class Operation>
void write_each(Translator& t, In in, std::size_t count, Operation operation) {
  const ptx::Type half = half_of(in.type());
  const bool packed = half != ptx::Type::none;
  std::vector<Value> operands;
  for (std::size_t i = 1; i <= count; ++i)
    operands.push_back(t.read(in, i, packed ? ptx::Type::b32 : in.type()));
  if (!packed) return t.write(in, operation(ir_type(in.type()), operands));
  Value halves[2];
  for (const bool high : {false, true}) {
    std::vector<Value> parts;
    for (const Value word : operands) parts.push_back(half_of_word(t, word, ir_type(half), high));
    halves[high ? 1 : 0] = operation(ir_type(half), parts);
  }
  t.write(in, word_of_halves(t, halves[0], halves[1]));
}

/// add.f32x2 and similar: applies the operation to each of the two numbers in 64 bits.
template <class Operation>
void write_f32x2(Translator& t, In in, std::size_t count, Operation operation) {
  std::vector<Value> words;
  for (std::size_t i = 1; i <= count; ++i) words.push_back(t.read(in, i, ptx::Type::b64));
  Value result = t.constant(Type::i64, 0);
  for (const std::uint32_t shift : {0u, 32u}) {
    std::vector<Value> parts;
    for (const Value word : words) {
      const Value part = t.emit(Op::lshr, Type::i64, {word, t.constant(Type::i32, shift)});
      parts.push_back(t.as(t.resize(part, Type::i32, false), Type::f32));
    }
    const Value bits = t.resize(t.as(operation(parts), Type::i32), Type::i64, false);
    result = t.emit(Op::or_, Type::i64,
                    {result, t.emit(Op::shl, Type::i64, {bits, t.constant(Type::i32, shift)})});
  }
  t.write(in, result);
}

/// add.f32.bf16 and similar: converts all operands but the last from the second type to f32 first.
void mixed_precision(Translator& t, In in, Op op, std::size_t count) {
  std::vector<Value> operands;
  for (std::size_t i = 1; i < count; ++i)
    operands.push_back(t.emit(Op::f_to_f, Type::f32, {t.read(in, i, in.type(1))}));
  operands.push_back(t.read(in, count, ptx::Type::f32));
  t.write(in, t.emit(op, Type::f32, std::move(operands), float_attributes(in), 0));
}

template <Op op, std::size_t count>
void plain(Translator& t, In in) {
  if (in.type() == ptx::Type::f32x2) {
    return write_f32x2(t, in, count, [&](const std::vector<Value>& operands) {
      return t.emit(op, Type::f32, operands, float_attributes(in), 0);
    });
  }
  if (in.types.size() > 1) return mixed_precision(t, in, op, count);
  if (in.operands.size() > count + 1)
    return t.refuse(fmt::format("the form with {} operands is not implemented", in.operands.size()));
  write_each(t, in, count, [&](Type type, const std::vector<Value>& operands) {
    return t.emit(op, type, operands, float_attributes(in), 0);
  });
}

// min.f32 d, a, b, c. With .abs, compares the magnitudes.
void min_or_max_of_three(Translator& t, In in, Op op) {
  std::vector<Value> operands;
  for (std::size_t i = 1; i <= 3; ++i) {
    const Value value = t.read(in, i, in.type());
    operands.push_back(in.has(M::abs) ? t.emit(Op::fabs, ir_type(in.type()), {value}) : value);
  }
  const Type type = ir_type(in.type());
  const Value first = t.emit(op, type, {operands[0], operands[1]}, float_attributes(in));
  t.write(in, t.emit(op, type, {first, operands[2]}, float_attributes(in)));
}

// min, max with .xorsign.abs: compares the magnitudes; the sign of the result is the exclusive or of the
// operands' signs.
template <Op op>
void min_or_max(Translator& t, In in) {
  if (in.operands.size() > 3) return min_or_max_of_three(t, in, op);
  write_each(t, in, 2, [&](Type type, const std::vector<Value>& operands) {
    if (!in.has(M::xorsign)) return t.emit(op, type, operands, float_attributes(in), 0);
    const Type bits = integer_type(ir::bit_size(type));
    const Value sign = t.emit(Op::xor_, bits, {t.as(operands[0], bits), t.as(operands[1], bits)});
    const Value a = t.emit(Op::fabs, type, {operands[0]});
    const Value b = t.emit(Op::fabs, type, {operands[1]});
    const Value magnitude = t.emit(op, type, {a, b}, float_attributes(in));
    return t.emit(Op::copysign, type, {t.as(sign, type), magnitude});
  });
}

void copysign(Translator& t, In in) {
  const Value a = t.read(in, 1, in.type());
  t.write(in, t.emit(Op::copysign, t.type_of(a), {a, t.read(in, 2, in.type())}));
}

void approximate(Translator& t, In in, ir::Approx which, std::size_t count) {
  write_each(t, in, count, [&](Type type, const std::vector<Value>& operands) {
    return t.emit(Op::approx, type, operands, {.ftz = in.has(M::ftz)}, static_cast<std::uint64_t>(which));
  });
}

void div(Translator& t, In in) {
  if (in.has(M::approx)) return approximate(t, in, ir::Approx::div, 2);
  if (in.has(M::full)) return approximate(t, in, ir::Approx::div_full, 2);
  plain<Op::fdiv, 2>(t, in);
}

void sqrt(Translator& t, In in) {
  if (in.has(M::approx)) return approximate(t, in, ir::Approx::sqrt, 1);
  plain<Op::fsqrt, 1>(t, in);
}

void rcp(Translator& t, In in) {
  if (in.has(M::approx)) return approximate(t, in, ir::Approx::rcp, 1);
  plain<Op::frcp, 1>(t, in);
}

template <ir::Approx which>
void approximation(Translator& t, In in) {
  approximate(t, in, which, 1);
}

struct Property {
  M modifier;
  ir::TestProperty property;
};
constexpr Property kProperties[] = {
    {M::finite, ir::TestProperty::finite}, {M::infinite, ir::TestProperty::infinite},
    {M::number, ir::TestProperty::number}, {M::notanumber, ir::TestProperty::notanumber},
    {M::normal, ir::TestProperty::normal}, {M::subnormal, ir::TestProperty::subnormal},
};

void testp(Translator& t, In in) {
  for (const Property& row : kProperties) {
    if (!in.has(row.modifier)) continue;
    return t.write(in, t.emit(Op::testp, Type::i1, {t.read(in, 1, in.type())}, {},
                              static_cast<std::uint64_t>(row.property)));
  }
  t.refuse("the property to test is missing");
}

using Opcode = ptx::Opcode;
constexpr Row kRows[] = {
    {Opcode::add, Kind::pure, plain<Op::fadd, 2>},
    {Opcode::sub, Kind::pure, plain<Op::fsub, 2>},
    {Opcode::mul, Kind::pure, plain<Op::fmul, 2>},
    {Opcode::fma, Kind::pure, plain<Op::ffma, 3>},
    {Opcode::mad, Kind::pure, plain<Op::ffma, 3>},
    {Opcode::div, Kind::pure, div},
    {Opcode::sqrt, Kind::pure, sqrt},
    {Opcode::rcp, Kind::pure, rcp},
    {Opcode::min, Kind::pure, min_or_max<Op::fmin>},
    {Opcode::max, Kind::pure, min_or_max<Op::fmax>},
    {Opcode::abs, Kind::pure, plain<Op::fabs, 1>},
    {Opcode::neg, Kind::pure, plain<Op::fneg, 1>},
    {Opcode::copysign, Kind::pure, copysign},
    {Opcode::rsqrt, Kind::pure, approximation<ir::Approx::rsqrt>},
    {Opcode::sin, Kind::pure, approximation<ir::Approx::sin>},
    {Opcode::cos, Kind::pure, approximation<ir::Approx::cos>},
    {Opcode::lg2, Kind::pure, approximation<ir::Approx::lg2>},
    {Opcode::ex2, Kind::pure, approximation<ir::Approx::ex2>},
    {Opcode::tanh, Kind::pure, approximation<ir::Approx::tanh>},
    {Opcode::testp, Kind::pure, testp},
};

}  // namespace

std::span<const Row> floating_rows() { return kRows; }

}  // namespace quern::cpu::lower
