// SPDX-License-Identifier: Apache-2.0
// "Comparison and Selection Instructions".
#include <algorithm>
#include <iterator>

#include "cpu/lower/instructions/floating.hpp"

#include "cpu/lower/instructions/rows.hpp"

namespace quern::cpu::lower {
namespace {

using In = const ptx::Instruction&;
using ir::Op;
using ir::Type;
using ir::Value;
using M = ptx::Modifier;

struct FloatComparison {
  M modifier;
  ir::Fcmp how;
};
constexpr FloatComparison kFloatComparisons[] = {
    {M::eq, ir::Fcmp::oeq},  {M::ne, ir::Fcmp::one},  {M::lt, ir::Fcmp::olt},  {M::le, ir::Fcmp::ole},
    {M::gt, ir::Fcmp::ogt},  {M::ge, ir::Fcmp::oge},  {M::equ, ir::Fcmp::ueq}, {M::neu, ir::Fcmp::une},
    {M::ltu, ir::Fcmp::ult}, {M::leu, ir::Fcmp::ule}, {M::gtu, ir::Fcmp::ugt}, {M::geu, ir::Fcmp::uge},
    {M::num, ir::Fcmp::ord}, {M::nan, ir::Fcmp::uno},
};

struct IntegerComparison {
  M modifier;
  ir::Icmp for_signed;
  ir::Icmp for_unsigned;
};
// lo, ls, hi, hs are unsigned comparisons for every type.
constexpr IntegerComparison kIntegerComparisons[] = {
    {M::eq, ir::Icmp::eq, ir::Icmp::eq},   {M::ne, ir::Icmp::ne, ir::Icmp::ne},
    {M::lt, ir::Icmp::slt, ir::Icmp::ult}, {M::le, ir::Icmp::sle, ir::Icmp::ule},
    {M::gt, ir::Icmp::sgt, ir::Icmp::ugt}, {M::ge, ir::Icmp::sge, ir::Icmp::uge},
    {M::lo, ir::Icmp::ult, ir::Icmp::ult}, {M::ls, ir::Icmp::ule, ir::Icmp::ule},
    {M::hi, ir::Icmp::ugt, ir::Icmp::ugt}, {M::hs, ir::Icmp::uge, ir::Icmp::uge},
};

/// The comparison precedes the Boolean operation (setp.lt.and), so the first modifier that is a comparison is
/// used.
template <class Row, std::size_t Count>
const Row* comparison(In in, const Row (&rows)[Count]) {
  for (const M modifier : in.modifier_order) {
    const auto found = std::find_if(std::begin(rows), std::end(rows),
                                    [modifier](const Row& row) { return row.modifier == modifier; });
    if (found != std::end(rows)) return found;
  }
  return nullptr;
}

Value compare_values(Translator& t, In in, ptx::Type type, Value a, Value b) {
  if (ptx::kind(type) == ptx::TypeKind::floating) {
    const FloatComparison* row = comparison(in, kFloatComparisons);
    if (row != nullptr) return t.emit(Op::fcmp, Type::i1, {a, b}, {.fcmp = row->how, .ftz = in.has(M::ftz)});
  } else if (const IntegerComparison* row = comparison(in, kIntegerComparisons)) {
    return t.compare(is_signed(type) ? row->for_signed : row->for_unsigned, a, b);
  }
  t.refuse("the comparison is missing or does not fit the type");
  return t.constant(Type::i1, 0);
}

/// Combines `value` with the predicate operand of .and, .or or .xor.
Value combine(Translator& t, In in, Value value, Value predicate) {
  if (predicate == ir::kNone) return value;
  const Op op = in.has(M::and_) ? Op::and_ : in.has(M::or_) ? Op::or_ : Op::xor_;
  return t.emit(op, Type::i1, {value, predicate});
}

Value boolean_operand(Translator& t, In in) {
  const bool combines = in.has(M::and_) || in.has(M::or_) || in.has(M::xor_);
  return combines ? t.read(in, 3, ptx::Type::pred) : ir::kNone;
}

// setp.f16x2 writes one predicate for each half; a single predicate is that of the low half.
void setp_packed(Translator& t, In in, ptx::Type half) {
  const auto destinations = t.elements(t.operand(in, 0));
  const Value a = t.read(in, 1, ptx::Type::b32);
  const Value b = t.read(in, 2, ptx::Type::b32);
  const Value predicate = boolean_operand(t, in);
  Value results[2];
  for (const bool high : {false, true}) {
    const Value x = half_of_word(t, a, ir_type(half), high);
    const Value y = half_of_word(t, b, ir_type(half), high);
    results[high ? 1 : 0] = combine(t, in, compare_values(t, in, half, x, y), predicate);
  }
  t.write(destinations[0], results[0]);
  if (destinations.size() > 1) t.write(destinations[1], results[1]);
}

void setp(Translator& t, In in) {
  if (const ptx::Type half = half_of(in.type()); half != ptx::Type::none) return setp_packed(t, in, half);
  const Value a = t.read(in, 1, in.type());
  const Value b = t.read(in, 2, in.type());
  const Value predicate = boolean_operand(t, in);
  const Value result = compare_values(t, in, in.type(), a, b);
  const auto destinations = t.elements(t.operand(in, 0));
  const Value first = combine(t, in, result, predicate);
  const Value second = destinations.size() > 1 ? combine(t, in, t.logical_not(result), predicate) : ir::kNone;
  t.write(destinations[0], first);
  if (second != ir::kNone) t.write(destinations[1], second);
}

/// The value that `set` writes for true: all ones for integers, 1.0 for floating-point numbers.
std::uint64_t true_bits(ptx::Type type) {
  switch (type) {
    case ptx::Type::f16:
      return 0x3c00;
    case ptx::Type::bf16:
      return 0x3f80;
    case ptx::Type::f32:
      return 0x3f800000;
    default:
      return ~std::uint64_t{0};
  }
}

// set.eq.f16x2.f16x2 and its integer forms process each half separately.
void set_packed(Translator& t, In in, ptx::Type half) {
  const Value a = t.read(in, 1, ptx::Type::b32);
  const Value b = t.read(in, 2, ptx::Type::b32);
  const Value predicate = boolean_operand(t, in);
  const ptx::Type result = half_of(in.type()) == ptx::Type::none ? ptx::Type::u16 : half_of(in.type());
  Value halves[2];
  for (const bool high : {false, true}) {
    const Value x = half_of_word(t, a, ir_type(half), high);
    const Value y = half_of_word(t, b, ir_type(half), high);
    const Value truth = combine(t, in, compare_values(t, in, half, x, y), predicate);
    halves[high ? 1 : 0] =
        t.select(truth, t.constant(ir_type(result), true_bits(result)), t.constant(ir_type(result), 0));
  }
  t.write(in, word_of_halves(t, halves[0], halves[1]));
}

void set(Translator& t, In in) {
  if (const ptx::Type half = half_of(in.type(1)); half != ptx::Type::none) return set_packed(t, in, half);
  const Value a = t.read(in, 1, in.type(1));
  const Value b = t.read(in, 2, in.type(1));
  const Value truth = combine(t, in, compare_values(t, in, in.type(1), a, b), boolean_operand(t, in));
  const Type type = ir_type(in.type());
  t.write(in, t.select(truth, t.constant(type, true_bits(in.type())), t.constant(type, 0)), true);
}

void selp(Translator& t, In in) {
  const Value a = t.read(in, 1, in.type());
  const Value b = t.read(in, 2, in.type());
  t.write(in, t.select(t.read(in, 3, ptx::Type::pred), a, b), is_signed(in.type()));
}

// slct: a if c >= 0. The condition is false for a NaN and true for -0.0.
void slct(Translator& t, In in) {
  const Value a = t.read(in, 1, in.type());
  const Value b = t.read(in, 2, in.type());
  const Value c = t.read(in, 3, in.type(1));
  const Value zero = t.constant(t.type_of(c), 0);
  const Value chosen = ir::is_float(t.type_of(c)) ? t.emit(Op::fcmp, Type::i1, {c, zero},
                                                           {.fcmp = ir::Fcmp::oge, .ftz = in.has(M::ftz)})
                                                  : t.compare(ir::Icmp::sge, c, zero);
  t.write(in, t.select(chosen, a, b), is_signed(in.type()));
}

using Opcode = ptx::Opcode;
constexpr Row kRows[] = {
    {Opcode::setp, Kind::pure, setp},
    {Opcode::set, Kind::pure, set},
    {Opcode::selp, Kind::pure, selp},
    {Opcode::slct, Kind::pure, slct},
};

}  // namespace

std::span<const Row> compare_rows() { return kRows; }

}  // namespace quern::cpu::lower
