// SPDX-License-Identifier: Apache-2.0
// "Data Movement and Conversion Instructions": mov, prmt, cvta, isspacep.
#include <algorithm>
#include <iterator>
#include <optional>

#include "cpu/lower/instructions/memory.hpp"
#include "cpu/lower/translate/wide.hpp"

#include "cpu/lower/instructions/rows.hpp"

namespace quern::cpu::lower {
namespace {

using In = const ptx::Instruction&;
using ir::Op;
using ir::Type;
using ir::Value;
using M = ptx::Modifier;

/// Packs {lo, hi} into one word: the first element is the least significant.
Value pack(Translator& t, const std::vector<ptx::Operand>& elements, ptx::Type type) {
  const Type whole = integer_type(ptx::bit_size(type));
  const std::uint32_t bits = ptx::bit_size(type) / static_cast<std::uint32_t>(elements.size());
  const ptx::Type element_type = bits == 8 ? ptx::Type::b8 : bits == 16 ? ptx::Type::b16 : ptx::Type::b32;
  Value result = t.constant(whole, 0);
  for (std::uint32_t i = 0; i < elements.size(); ++i) {
    const Value part = t.resize(t.read(elements[i], element_type), whole, false);
    result =
        t.emit(Op::or_, whole, {result, t.emit(Op::shl, whole, {part, t.constant(Type::i32, i * bits)})});
  }
  return result;
}

void unpack(Translator& t, const std::vector<ptx::Operand>& elements, Value word) {
  const std::uint32_t bits = ir::bit_size(t.type_of(word)) / static_cast<std::uint32_t>(elements.size());
  for (std::uint32_t i = 0; i < elements.size(); ++i) {
    const Value shifted = t.emit(Op::lshr, t.type_of(word), {word, t.constant(Type::i32, i * bits)});
    t.write(elements[i], t.resize(shifted, integer_type(bits), false));
  }
}

// Lowers mov.v4.f32 of vector registers.
void move_vector(Translator& t, In in) {
  const auto to = t.elements(t.operand(in, 0));
  const auto from = t.elements(t.operand(in, 1));
  if (to.size() != from.size()) return t.refuse("the vectors differ in length");
  std::vector<Value> values;
  for (const ptx::Operand& element : from) values.push_back(t.read(element, in.type()));
  for (std::size_t i = 0; i < to.size(); ++i) t.write(to[i], values[i]);
}

void mov(Translator& t, In in) {
  if (in.vector_count() > 1) return move_vector(t, in);
  if (is_wide(in.type())) return move_wide(t, in);
  const auto to = t.elements(t.operand(in, 0));
  const auto from = t.elements(t.operand(in, 1));
  if (to.size() > 1 && from.size() > 1) return move_vector(t, in);
  if (to.size() > 1)
    return unpack(t, to, t.as(t.read(in, 1, in.type()), integer_type(ptx::bit_size(in.type()))));
  t.write(in, from.size() > 1 ? pack(t, from, in.type()) : t.read(from[0], in.type()), is_signed(in.type()));
}

struct PermuteRow {
  M modifier;
  ir::PrmtMode mode;
};
constexpr PermuteRow kPermutes[] = {{M::f4e, ir::PrmtMode::f4e}, {M::b4e, ir::PrmtMode::b4e},
                                    {M::rc8, ir::PrmtMode::rc8}, {M::ecl, ir::PrmtMode::ecl},
                                    {M::ecr, ir::PrmtMode::ecr}, {M::rc16, ir::PrmtMode::rc16}};

void prmt(Translator& t, In in) {
  const auto row = std::find_if(std::begin(kPermutes), std::end(kPermutes),
                                [&](const PermuteRow& r) { return in.has(r.modifier); });
  const ir::PrmtMode mode = row == std::end(kPermutes) ? ir::PrmtMode::index : row->mode;
  const Value a = t.read(in, 1, in.type());
  const Value b = t.read(in, 2, in.type());
  const Value c = t.read(in, 3, in.type());
  t.write(in, t.emit(Op::prmt, Type::i32, {a, b, c}, {}, static_cast<std::uint64_t>(mode)));
}

// The kernel's parameter buffer has no generic address here. So a generic address is that of the copy in
// local memory.
Value param_to_generic(Translator& t, Value address) {
  if (!t.in_kernel()) return t.emit(Op::to_generic, Type::i64, {address}, {.space = ir::Space::local});
  const Value base = t.builder().nullary(Op::local_address, Type::i64, t.frames().parameter_copy());
  return t.emit(Op::to_generic, Type::i64, {t.emit(Op::iadd, Type::i64, {base, address})},
                {.space = ir::Space::local});
}

Value param_from_generic(Translator& t, Value address) {
  const Value local = t.emit(Op::from_generic, Type::i64, {address}, {.space = ir::Space::local});
  if (!t.in_kernel()) return local;
  const Value base = t.builder().nullary(Op::local_address, Type::i64, t.frames().parameter_copy());
  return t.emit(Op::isub, Type::i64, {local, base});
}

/// True if a generic address is in the copy of the kernel's parameters.
Value is_parameter(Translator& t, Value address) {
  const std::uint64_t bytes = t.frames().parameter_copy_bytes();
  if (bytes == 0) return t.constant(Type::i1, 0);
  return t.compare(ir::Icmp::ult, param_from_generic(t, address), t.constant(Type::i64, bytes));
}

void cvta(Translator& t, In in) {
  const ir::Space space = ir_space(in.space());
  const Value from = t.resize(t.read(in, 1, in.type()), Type::i64, false);
  const Type type = ir_type(in.type());
  Value result = from;
  if (space == ir::Space::param) {
    result = in.has(M::to) ? param_from_generic(t, from) : param_to_generic(t, from);
  } else if (space == ir::Space::shared || space == ir::Space::local) {
    result = t.emit(in.has(M::to) ? Op::from_generic : Op::to_generic, Type::i64, {from}, {.space = space});
  }  // global and constant memory have their generic addresses
  t.write(in, t.resize(result, type, false));
}

/// Constant memory is part of global memory here: an address is in constant memory if it is in one of its
/// variables.
Value is_constant(Translator& t, Value address) {
  Value result = t.constant(Type::i1, 0);
  const auto& variables = t.program().ptx().variables;
  for (std::uint32_t i = 0; i < variables.size(); ++i) {
    if (variables[i].space != ptx::Space::const_ || variables[i].size_bytes() == 0) continue;
    const Value begin = t.builder().nullary(Op::symbol, Type::i64, t.program().symbol(i));
    const Value offset = t.emit(Op::isub, Type::i64, {address, begin});
    const Value inside = t.compare(ir::Icmp::ult, offset, t.constant(Type::i64, variables[i].size_bytes()));
    result = t.emit(Op::or_, Type::i1, {result, inside});
  }
  return result;
}

void isspacep(Translator& t, In in) {
  const ir::Space space = ir_space(in.space());
  const Value address = t.resize(t.read(in, 1, ptx::Type::u64), Type::i64, false);
  if (space == ir::Space::constant) return t.write(in, is_constant(t, address));
  if (space == ir::Space::param) {
    if (!t.in_kernel()) return t.refuse("only a kernel knows its parameters' addresses");
    return t.write(in, is_parameter(t, address));
  }
  Value result = t.emit(Op::is_space, Type::i1, {address}, {.space = space});
  // "isspacep.global returns 1 for kernel function parameters"; here the parameters are in local memory.
  if (space == ir::Space::local && t.in_kernel())
    result = t.emit(Op::and_, Type::i1, {result, t.logical_not(is_parameter(t, address))});
  if (space == ir::Space::global && t.in_kernel())
    result = t.emit(Op::or_, Type::i1, {result, is_parameter(t, address)});
  if (space == ir::Space::global)
    result = t.emit(Op::and_, Type::i1, {result, t.logical_not(is_constant(t, address))});
  t.write(in, result);
}

// A block is a cluster by itself: its rank is 0, and an address in its shared memory does not change. The
// cluster has no other ranks; PTX leaves their addresses undefined.
void mapa(Translator& t, In in) { t.write(in, t.read(in, 1, in.type())); }
void getctarank(Translator& t, In in) { t.write(in, t.constant(Type::i32, 0)); }

using Opcode = ptx::Opcode;
constexpr Row kRows[] = {
    {Opcode::mov, Kind::pure, mov},   {Opcode::prmt, Kind::pure, prmt},
    {Opcode::cvta, Kind::pure, cvta}, {Opcode::isspacep, Kind::pure, isspacep},
    {Opcode::mapa, Kind::pure, mapa}, {Opcode::getctarank, Kind::pure, getctarank},
};

}  // namespace

std::span<const Row> move_rows() { return kRows; }

}  // namespace quern::cpu::lower
