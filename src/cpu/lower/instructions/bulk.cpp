// SPDX-License-Identifier: Apache-2.0
// Lowers "cp.async.bulk", "st.async" and "st.bulk" within the block, which is a cluster by itself. The
// instruction itself copies the data, which PTX allows, and completes the transaction.
#include "cpu/lower/instructions/async.hpp"

#include "cpu/lower/instructions/rows.hpp"

namespace quern::cpu::lower {
namespace {

using In = const ptx::Instruction&;
using ir::BlockId;
using ir::Op;
using ir::Type;
using ir::Value;
using M = ptx::Modifier;

Address moved(Translator& t, const Address& address, Value by) {
  return {t.emit(Op::iadd, Type::i64, {address.base, by}), address.offset, address.space};
}

/// Calls `body` with the offset of each unit of `bytes` bytes, in a loop.
template <class Body>
void for_each_unit(Translator& t, Value bytes, std::uint32_t unit, Body body) {
  const Value end = t.resize(bytes, Type::i64, false);
  const Variable at = t.builder().new_variable(Type::i64);
  t.write_variable(at, t.constant(Type::i64, 0));
  const BlockId head = t.new_block();
  const BlockId inside = t.new_block();
  const BlockId after = t.new_block();
  t.branch(head);
  t.set_block(head);
  t.branch_if(t.compare(ir::Icmp::ult, t.read_variable(at), end), inside, after);
  t.set_block(inside);
  const Value offset = t.read_variable(at);
  body(offset);
  t.write_variable(at, t.emit(Op::iadd, Type::i64, {offset, t.constant(Type::i64, unit)}));
  t.branch(head);
  t.set_block(after);
}

/// Copies 16 bytes at a time: PTX requires size and addresses to be multiples of that.
void copy(Translator& t, const Address& to, const Address& from, Value bytes) {
  constexpr std::uint32_t kUnit = 16;
  for_each_unit(t, bytes, kUnit, [&](Value offset) {
    const Address source = moved(t, from, offset);
    const Address target = moved(t, to, offset);
    const Value load = t.emit(Op::load, Type::i64, {source.base},
                              {.space = source.space, .count = 2, .alignment = kUnit}, source.offset);
    const Value low = t.emit(Op::extract, Type::i64, {load}, {}, 0);
    const Value high = t.emit(Op::extract, Type::i64, {load}, {}, 1);
    t.emit(Op::store, Type::none, {target.base, low, high},
           {.space = target.space, .count = 2, .alignment = kUnit}, target.offset);
  });
}

// cp.async.bulk [to], [from], size {, [mbarrier]} {, cache policy}
void cp(Translator& t, In in) {
  // Copies are complete already, so there is nothing to wait for; a prefetch is a hint.
  if (in.has(M::commit_group) || in.has(M::wait_group) || in.has(M::prefetch)) return;
  const bool leaves = in.has(M::bulk_group);
  const auto to = address_in(t, t.operand(in, 0), leaves ? ir::Space::global : ir::Space::shared);
  const bool from_global = !leaves && in.has(M::global);
  const auto from = address_in(t, t.operand(in, 1), from_global ? ir::Space::global : ir::Space::shared);
  if (!to || !from) return;
  const Value bytes = t.read(in, 2, ptx::Type::u32);
  copy(t, *to, *from, bytes);
  if (leaves) return;
  const auto object = address_in(t, t.operand(in, 3), ir::Space::shared);
  if (object) change_transactions(t, *object, bytes, Transaction::complete);
}

// st.async [to], value, [mbarrier]. Without an mbarrier it is a plain store (memory.cpp).
void store_with_transaction(Translator& t, In in) {
  const auto to = address_of(t, in, t.operand(in, 0));
  const auto object = address_of(t, in, t.operand(in, 2));
  if (!to || !object) return;
  const std::vector<ptx::Operand> sources = t.elements(t.operand(in, 1));
  std::vector<Value> operands{to->base};
  for (const ptx::Operand& source : sources) operands.push_back(t.read(source, in.type()));
  const auto bytes = static_cast<std::uint32_t>(ptx::byte_size(in.type()) * sources.size());
  t.emit(Op::store, Type::none, std::move(operands),
         {.space = to->space, .count = static_cast<std::uint8_t>(sources.size()), .alignment = bytes},
         to->offset);
  change_transactions(t, *object, t.constant(Type::i32, bytes), Transaction::complete);
}

// st.bulk [to], size, 0
void store_zeros(Translator& t, In in) {
  constexpr std::uint32_t kUnit = 8;
  const auto* value = t.operand(in, 2).as<ptx::IntegerOperand>();
  if (value == nullptr || value->bits != 0) return t.refuse("only zero is stored in bulk");
  const auto to = address_of(t, in, t.operand(in, 0));
  if (!to) return;
  for_each_unit(t, t.read(in, 1, ptx::Type::u64), kUnit, [&](Value offset) {
    const Address target = moved(t, *to, offset);
    t.emit(Op::store, Type::none, {target.base, t.constant(Type::i64, 0)},
           {.space = target.space, .alignment = kUnit}, target.offset);
  });
}

void st(Translator& t, In in) {
  if (in.has(M::bulk)) return store_zeros(t, in);
  store_with_transaction(t, in);
}

constexpr Row kRows[] = {
    {ptx::Opcode::cp, Kind::effect, cp},
    {ptx::Opcode::st, Kind::effect, st},
};

}  // namespace

std::span<const Row> bulk_rows() { return kRows; }

}  // namespace quern::cpu::lower
