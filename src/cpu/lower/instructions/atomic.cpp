// SPDX-License-Identifier: Apache-2.0
// "Parallel Synchronization and Communication Instructions": atom, red.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cpu/lower/instructions/floating.hpp"
#include "cpu/lower/instructions/memory.hpp"

#include "cpu/lower/instructions/rows.hpp"

namespace quern::cpu::lower {
namespace {

using In = const ptx::Instruction&;
using ir::Op;
using ir::Type;
using ir::Value;
using M = ptx::Modifier;

struct AtomicRow {
  M modifier;
  ir::AtomicOp for_signed;
  ir::AtomicOp for_unsigned;
  ir::AtomicOp for_floating;
  bool integer;
  bool floating;
};
using A = ir::AtomicOp;
constexpr AtomicRow kAtomics[] = {
    {M::add, A::add, A::add, A::fadd, true, true},     {M::min, A::smin, A::umin, A::fmin, true, false},
    {M::max, A::smax, A::umax, A::fmax, true, false},  {M::and_, A::and_, A::and_, A::and_, true, false},
    {M::or_, A::or_, A::or_, A::or_, true, false},     {M::xor_, A::xor_, A::xor_, A::xor_, true, false},
    {M::exch, A::exch, A::exch, A::exch, true, false}, {M::cas, A::cas, A::cas, A::cas, true, false},
    {M::inc, A::inc, A::inc, A::inc, true, false},     {M::dec, A::dec, A::dec, A::dec, true, false},
};

bool fits(const AtomicRow& row, ptx::Type type) {
  if (ptx::kind(type) == ptx::TypeKind::floating) return row.floating && ir::is_float(ir_type(type));
  const Type integer = ir_type(type);
  const bool whole = integer == Type::i32 || integer == Type::i64;
  return row.integer && (whole || (integer == Type::i16 && row.modifier == M::cas)) &&
         half_of(type) == ptx::Type::none;
}

A operation_on_floats(In in) { return in.has(M::min) ? A::fmin : in.has(M::max) ? A::fmax : A::fadd; }

/// Emits one operation on a number of `type`, at the operand's address plus `offset`.
Value atomic_number(Translator& t, In in, const Address& address, ir::Attributes attr, Value number,
                    std::uint32_t offset) {
  attr.alignment = ir::byte_size(t.type_of(number));
  set_order(attr, in, ir::Semantics::relaxed);
  return t.emit(Op::atomic, t.type_of(number), {address.base, number}, attr, address.offset + offset);
}

/// For f16x2 and bf16x2, emits two operations: "Atomicity is guaranteed separately for each of the two
/// elements".
Value atomic_pair(Translator& t, In in, const Address& address, const ir::Attributes& attr, Value word,
                  std::uint32_t offset) {
  const Type half = ir_type(half_of(in.type()));
  Value old[2];
  for (const bool high : {false, true})
    old[high ? 1 : 0] =
        atomic_number(t, in, address, attr, half_of_word(t, word, half, high), offset + (high ? 2 : 0));
  return attr.unused_result ? ir::kNone : word_of_halves(t, old[0], old[1]);
}

/// For f16x2 and vectors, emits an operation for each element ("atomic for each element").
void atomic_elements(Translator& t, In in, bool returns) {
  const std::size_t first = returns ? 1 : 0;
  const auto address = address_of(t, in, t.operand(in, first));
  if (!address) return;
  const ir::Attributes attr{.space = address->space,
                            .atomic = operation_on_floats(in),
                            .scope = ir::Scope::gpu,
                            .unused_result = !returns};
  const bool pairs = half_of(in.type()) != ptx::Type::none;
  const std::vector<ptx::Operand> sources = t.elements(t.operand(in, first + 1));
  if (sources.size() != in.vector_count()) return t.refuse("the number of sources does not fit the vector");
  std::vector<Value> numbers;
  for (const ptx::Operand& source : sources)
    numbers.push_back(t.read(source, pairs ? ptx::Type::b32 : in.type()));
  std::vector<Value> old;
  for (std::uint32_t i = 0; i < numbers.size(); ++i) {
    const std::uint32_t offset = i * ptx::byte_size(in.type());
    old.push_back(pairs ? atomic_pair(t, in, *address, attr, numbers[i], offset)
                        : atomic_number(t, in, *address, attr, numbers[i], offset));
  }
  if (!returns || t.is_sink(t.operand(in, 0))) return;
  const std::vector<ptx::Operand> destinations = t.elements(t.operand(in, 0));
  for (std::size_t i = 0; i < destinations.size(); ++i) t.write(destinations[i], old[i]);
}

void atomic(Translator& t, In in, bool returns) {
  const ptx::Type half = half_of(in.type());
  if (in.vector_count() > 1 || half == ptx::Type::f16 || half == ptx::Type::bf16)
    return atomic_elements(t, in, returns);
  const auto row = std::find_if(std::begin(kAtomics), std::end(kAtomics),
                                [&](const AtomicRow& r) { return in.has(r.modifier); });
  if (row == std::end(kAtomics) || !fits(*row, in.type())) {
    return t.refuse(fmt::format("this atomic operation on .{} is not implemented", ptx::name(in.type())));
  }
  const std::size_t first = returns ? 1 : 0;
  const auto address = address_of(t, in, t.operand(in, first));
  if (!address) return;
  ir::Attributes attr{
      .space = address->space, .alignment = ptx::byte_size(in.type()), .unused_result = !returns};
  // The default scope of an atomic operation is the GPU.
  attr.scope = ir::Scope::gpu;
  set_order(attr, in, ir::Semantics::relaxed);
  attr.atomic = ptx::kind(in.type()) == ptx::TypeKind::floating ? row->for_floating
                : is_signed(in.type())                          ? row->for_signed
                                                                : row->for_unsigned;
  std::vector<Value> operands{address->base, t.read(in, first + 1, in.type())};
  if (attr.atomic == A::cas) operands.push_back(t.read(in, first + 2, in.type()));
  const Value old = t.emit(Op::atomic, ir_type(in.type()), std::move(operands), attr, address->offset);
  if (returns) t.write(in, old, is_signed(in.type()));
}

void atom(Translator& t, In in) { atomic(t, in, true); }
void red(Translator& t, In in) { atomic(t, in, false); }

constexpr Row kRows[] = {
    {ptx::Opcode::atom, Kind::effect, atom},
    {ptx::Opcode::red, Kind::effect, red},
};

}  // namespace

std::span<const Row> atomic_rows() { return kRows; }

}  // namespace quern::cpu::lower
