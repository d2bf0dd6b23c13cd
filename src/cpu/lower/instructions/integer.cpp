// SPDX-License-Identifier: Apache-2.0
// "Integer Arithmetic Instructions", "Extended-Precision Integer Arithmetic Instructions", "Logic and Shift
// Instructions".
#include "cpu/lower/translate/translator.hpp"

#include "cpu/lower/instructions/rows.hpp"

namespace quern::cpu::lower {
namespace {

using In = const ptx::Instruction&;
using ir::Op;
using ir::Type;
using ir::Value;
using M = ptx::Modifier;

Type result_type(In in) { return ir_type(in.type()); }

Value binary(Translator& t, In in, Op op) {
  const Value a = t.read(in, 1, in.type());
  const Value b = t.read(in, 2, in.type());
  return t.emit(op, t.type_of(a), {a, b});
}

/// Lowers the packed form (u16x2, s16x2) of an operation on 16 bits: applies it to each half.
template <class Half>
Value on_halves(Translator& t, In in, Half half) {
  const Value a = t.read(in, 1, ptx::Type::b32);
  const Value b = t.read(in, 2, ptx::Type::b32);
  const Value sixteen = t.constant(Type::i32, 16);
  const auto part = [&](Value word, bool high) {
    return t.resize(high ? t.emit(Op::lshr, Type::i32, {word, sixteen}) : word, Type::i16, false);
  };
  const Value low = t.resize(half(part(a, false), part(b, false)), Type::i32, false);
  const Value high = t.resize(half(part(a, true), part(b, true)), Type::i32, false);
  return t.emit(Op::or_, Type::i32, {low, t.emit(Op::shl, Type::i32, {high, sixteen})});
}

void write_binary(Translator& t, In in, Op op) {
  if (half_of(in.type()) != ptx::Type::none) {
    return t.write(in, on_halves(t, in, [&](Value a, Value b) { return t.emit(op, Type::i16, {a, b}); }));
  }
  t.write(in, binary(t, in, op), is_signed(in.type()));
}

// --- carry chains. CC.CF holds the carry; after a subtraction that is 1 where nothing was borrowed.

void write_sum(Translator& t, In in, Value a, Value b, Value carry_in) {
  const Type type = t.type_of(a);
  const Value sum = t.emit(Op::add_carry, type, {a, b, carry_in});
  const Value carry = in.has(M::cc) ? t.emit(Op::carry_of_add, Type::i1, {a, b, carry_in}) : ir::kNone;
  t.write(in, sum);
  if (carry != ir::kNone) t.write_carry(carry);
}

void add(Translator& t, In in) {
  if (in.has(M::sat)) return write_binary(t, in, Op::iadd_sat);
  if (!in.has(M::cc)) return write_binary(t, in, Op::iadd);
  const Value a = t.read(in, 1, in.type());
  const Value b = t.read(in, 2, in.type());
  write_sum(t, in, a, b, t.constant(Type::i1, 0));
}

void sub(Translator& t, In in) {
  if (in.has(M::sat)) return write_binary(t, in, Op::isub_sat);
  if (!in.has(M::cc)) return write_binary(t, in, Op::isub);
  const Value a = t.read(in, 1, in.type());
  const Value b = t.logical_not(t.read(in, 2, in.type()));
  write_sum(t, in, a, b, t.constant(Type::i1, 1));
}

void addc(Translator& t, In in) {
  const Value a = t.read(in, 1, in.type());
  const Value b = t.read(in, 2, in.type());
  write_sum(t, in, a, b, t.read_carry());
}

void subc(Translator& t, In in) {
  const Value a = t.read(in, 1, in.type());
  const Value b = t.logical_not(t.read(in, 2, in.type()));
  write_sum(t, in, a, b, t.read_carry());
}

// --- products

/// The product for .lo, .hi or .wide.
Value product(Translator& t, In in) {
  const Value a = t.read(in, 1, in.type());
  const Value b = t.read(in, 2, in.type());
  const bool is_signed_type = is_signed(in.type());
  if (in.has(M::hi)) return t.emit(is_signed_type ? Op::imulhi_s : Op::imulhi_u, t.type_of(a), {a, b});
  if (!in.has(M::wide)) return t.emit(Op::imul, t.type_of(a), {a, b});
  const Type wide = integer_type(ptx::bit_size(in.type()) * 2);
  if (wide == Type::none) {
    t.refuse("128-bit products are not implemented");
    return a;
  }
  return t.emit(Op::imul, wide, {t.resize(a, wide, is_signed_type), t.resize(b, wide, is_signed_type)});
}

void mul(Translator& t, In in) { t.write(in, product(t, in), is_signed(in.type())); }

ptx::Type addend_type(In in) {
  if (!in.has(M::wide)) return in.type();
  const bool is_signed_type = is_signed(in.type());
  if (ptx::bit_size(in.type()) == 16) return is_signed_type ? ptx::Type::s32 : ptx::Type::u32;
  return is_signed_type ? ptx::Type::s64 : ptx::Type::u64;
}

void mad(Translator& t, In in) {
  const Value p = product(t, in);
  const Value c = t.read(in, 3, addend_type(in));
  if (in.has(M::cc)) return write_sum(t, in, p, c, t.constant(Type::i1, 0));
  t.write(in, t.emit(in.has(M::sat) ? Op::iadd_sat : Op::iadd, t.type_of(p), {p, c}), is_signed(in.type()));
}

void madc(Translator& t, In in) {
  const Value p = product(t, in);
  write_sum(t, in, p, t.read(in, 3, in.type()), t.read_carry());
}

/// The 24-bit product: .lo gives its low 32 bits, .hi its bits 47 to 16.
Value product24(Translator& t, In in) {
  const bool is_signed_type = is_signed(in.type());
  const auto narrow = [&](Value value) {
    const Value eight = t.constant(Type::i32, 8);
    const Value top = t.emit(Op::shl, Type::i32, {value, eight});
    return t.resize(t.emit(is_signed_type ? Op::ashr : Op::lshr, Type::i32, {top, eight}), Type::i64,
                    is_signed_type);
  };
  const Value wide =
      t.emit(Op::imul, Type::i64, {narrow(t.read(in, 1, in.type())), narrow(t.read(in, 2, in.type()))});
  const Value shifted = in.has(M::hi) ? t.emit(Op::lshr, Type::i64, {wide, t.constant(Type::i32, 16)}) : wide;
  return t.resize(shifted, Type::i32, false);
}

void mul24(Translator& t, In in) { t.write(in, product24(t, in)); }

void mad24(Translator& t, In in) {
  const Value p = product24(t, in);
  t.write(in, t.emit(in.has(M::sat) ? Op::iadd_sat : Op::iadd, Type::i32, {p, t.read(in, 3, in.type())}));
}

// --- the others

void div(Translator& t, In in) { write_binary(t, in, is_signed(in.type()) ? Op::sdiv : Op::udiv); }
void rem(Translator& t, In in) { write_binary(t, in, is_signed(in.type()) ? Op::srem : Op::urem); }

void min_or_max(Translator& t, In in, Op signed_op, Op unsigned_op) {
  const ptx::Type half = half_of(in.type());
  const Op op = is_signed(half == ptx::Type::none ? in.type() : half) ? signed_op : unsigned_op;
  const auto relu = [&](Value value) {
    return in.has(M::relu) ? t.emit(Op::smax, t.type_of(value), {value, t.constant(t.type_of(value), 0)})
                           : value;
  };
  if (half != ptx::Type::none) {
    return t.write(in,
                   on_halves(t, in, [&](Value a, Value b) { return relu(t.emit(op, Type::i16, {a, b})); }));
  }
  t.write(in, relu(binary(t, in, op)), is_signed(in.type()));
}
void min(Translator& t, In in) { min_or_max(t, in, Op::smin, Op::umin); }
void max(Translator& t, In in) { min_or_max(t, in, Op::smax, Op::umax); }

void abs(Translator& t, In in) {
  t.write(in, t.emit(Op::iabs, result_type(in), {t.read(in, 1, in.type())}), true);
}

void neg(Translator& t, In in) {
  const Type type = result_type(in);
  t.write(in, t.emit(Op::isub, type, {t.constant(type, 0), t.read(in, 1, in.type())}), true);
}

void sad(Translator& t, In in) {
  const Type type = result_type(in);
  const bool is_signed_type = is_signed(in.type());
  const Value a = t.read(in, 1, in.type());
  const Value b = t.read(in, 2, in.type());
  const Value high = t.emit(is_signed_type ? Op::smax : Op::umax, type, {a, b});
  const Value low = t.emit(is_signed_type ? Op::smin : Op::umin, type, {a, b});
  t.write(in, t.emit(Op::iadd, type, {t.read(in, 3, in.type()), t.emit(Op::isub, type, {high, low})}),
          is_signed_type);
}

template <Op op>
void count_bits(Translator& t, In in) {
  t.write(in, t.emit(op, Type::i32, {t.read(in, 1, in.type())}));
}

void bfind(Translator& t, In in) {
  const Value a = t.read(in, 1, in.type());
  t.write(in, t.emit(Op::bfind, Type::i32, {a},
                     {.is_signed = is_signed(in.type()), .shiftamt = in.has(M::shiftamt)}));
}

void brev(Translator& t, In in) {
  t.write(in, t.emit(Op::brev, result_type(in), {t.read(in, 1, in.type())}));
}

void bfe(Translator& t, In in) {
  const Value a = t.read(in, 1, in.type());
  const Value position = t.read(in, 2, ptx::Type::u32);
  const Value length = t.read(in, 3, ptx::Type::u32);
  t.write(in, t.emit(Op::bfe, t.type_of(a), {a, position, length}, {.is_signed = is_signed(in.type())}));
}

void bfi(Translator& t, In in) {
  const Value a = t.read(in, 1, in.type());
  const Value b = t.read(in, 2, in.type());
  const Value position = t.read(in, 3, ptx::Type::u32);
  const Value length = t.read(in, 4, ptx::Type::u32);
  t.write(in, t.emit(Op::bfi, t.type_of(a), {a, b, position, length}));
}

/// Adds the products of two bytes of b with the two 16-bit halves of a to c.
void dp2a(Translator& t, In in) {
  const bool a_signed = is_signed(in.type(0));
  const bool b_signed = is_signed(in.type(1));
  const Value a = t.read(in, 1, ptx::Type::b32);
  const Value b = t.read(in, 2, ptx::Type::b32);
  const auto field = [&](Value word, unsigned first, unsigned bits, bool sign_extended) {
    const Value shifted = t.emit(Op::lshr, Type::i32, {word, t.constant(Type::i32, first)});
    return t.resize(t.resize(shifted, integer_type(bits), false), Type::i32, sign_extended);
  };
  Value sum = t.read(in, 3, ptx::Type::b32);
  const unsigned b_first = in.has(M::hi) ? 16 : 0;
  for (unsigned i = 0; i < 2; ++i) {
    const Value p =
        t.emit(Op::imul, Type::i32, {field(a, i * 16, 16, a_signed), field(b, b_first + i * 8, 8, b_signed)});
    sum = t.emit(Op::iadd, Type::i32, {sum, p});
  }
  t.write(in, sum);
}

void dp4a(Translator& t, In in) {
  const Value a = t.read(in, 1, ptx::Type::b32);
  const Value b = t.read(in, 2, ptx::Type::b32);
  const Value c = t.read(in, 3, ptx::Type::b32);
  const std::uint64_t signs = (is_signed(in.type(0)) ? 1u : 0u) | (is_signed(in.type(1)) ? 2u : 0u);
  t.write(in, t.emit(Op::dot4, Type::i32, {a, b, c}, {}, signs));
}

// --- logic and shifts

template <Op op>
void logic(Translator& t, In in) {
  t.write(in, binary(t, in, op));
}

void bit_not(Translator& t, In in) { t.write(in, t.logical_not(t.read(in, 1, in.type()))); }

void cnot(Translator& t, In in) {
  const Value a = t.read(in, 1, in.type());
  const Value zero = t.constant(t.type_of(a), 0);
  t.write(in, t.resize(t.compare(ir::Icmp::eq, a, zero), t.type_of(a), false));
}

void shift(Translator& t, In in, Op op) {
  const Value a = t.read(in, 1, in.type());
  const Value amount = t.read(in, 2, ptx::Type::u32);
  t.write(in, t.emit(op, t.type_of(a), {a, amount}), is_signed(in.type()));
}
void shl(Translator& t, In in) { shift(t, in, Op::shl); }
void shr(Translator& t, In in) { shift(t, in, is_signed(in.type()) ? Op::ashr : Op::lshr); }

void shf(Translator& t, In in) {
  const Value a = t.read(in, 1, in.type());
  const Value b = t.read(in, 2, in.type());
  const Value c = t.read(in, 3, ptx::Type::u32);
  t.write(in, t.emit(in.has(M::l) ? Op::funnel_l : Op::funnel_r, Type::i32, {a, b, c},
                     {.clamp = in.has(M::clamp)}));
}

void lop3(Translator& t, In in) {
  const Value a = t.read(in, 1, in.type());
  const Value b = t.read(in, 2, in.type());
  const Value c = t.read(in, 3, in.type());
  const auto* table = t.operand(in, 4).as<ptx::IntegerOperand>();
  if (table == nullptr) return t.refuse("the truth table is not a constant");
  const Value result = t.emit(Op::lop3, Type::i32, {a, b, c}, {}, table->bits & 0xff);
  if (in.operands.size() < 6) return t.write(in, result);
  // lop3.or d|p, ..., q: p is (d != 0) or q.
  const auto destinations = t.elements(t.operand(in, 0));
  const Value any = t.compare(ir::Icmp::ne, result, t.constant(Type::i32, 0));
  const Value q = t.read(in, 5, ptx::Type::pred);
  t.write(destinations[0], result);
  t.write(destinations.back(), t.emit(in.has(M::or_) ? Op::or_ : Op::and_, Type::i1, {any, q}));
}

using Opcode = ptx::Opcode;
constexpr Row kRows[] = {
    {Opcode::add, Kind::pure, add},
    {Opcode::sub, Kind::pure, sub},
    {Opcode::addc, Kind::pure, addc},
    {Opcode::subc, Kind::pure, subc},
    {Opcode::mul, Kind::pure, mul},
    {Opcode::mad, Kind::pure, mad},
    {Opcode::madc, Kind::pure, madc},
    {Opcode::mul24, Kind::pure, mul24},
    {Opcode::mad24, Kind::pure, mad24},
    {Opcode::div, Kind::pure, div},
    {Opcode::rem, Kind::pure, rem},
    {Opcode::min, Kind::pure, min},
    {Opcode::max, Kind::pure, max},
    {Opcode::abs, Kind::pure, abs},
    {Opcode::neg, Kind::pure, neg},
    {Opcode::sad, Kind::pure, sad},
    {Opcode::popc, Kind::pure, count_bits<Op::popc>},
    {Opcode::clz, Kind::pure, count_bits<Op::clz>},
    {Opcode::bfind, Kind::pure, bfind},
    {Opcode::brev, Kind::pure, brev},
    {Opcode::bfe, Kind::pure, bfe},
    {Opcode::bfi, Kind::pure, bfi},
    {Opcode::dp4a, Kind::pure, dp4a},
    {Opcode::dp2a, Kind::pure, dp2a},
    {Opcode::and_, Kind::pure, logic<Op::and_>},
    {Opcode::or_, Kind::pure, logic<Op::or_>},
    {Opcode::xor_, Kind::pure, logic<Op::xor_>},
    {Opcode::not_, Kind::pure, bit_not},
    {Opcode::cnot, Kind::pure, cnot},
    {Opcode::shl, Kind::pure, shl},
    {Opcode::shr, Kind::pure, shr},
    {Opcode::shf, Kind::pure, shf},
    {Opcode::lop3, Kind::pure, lop3},
};

}  // namespace

std::span<const Row> integer_rows() { return kRows; }

}  // namespace quern::cpu::lower
