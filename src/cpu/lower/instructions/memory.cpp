// SPDX-License-Identifier: Apache-2.0
// "Data Movement and Conversion Instructions": ld, ldu, st, prefetch; "membar / fence".
#include "cpu/lower/instructions/memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cpu/lower/translate/wide.hpp"

#include "cpu/lower/instructions/rows.hpp"

namespace quern::cpu::lower {

using In = const ptx::Instruction&;
using ir::Op;
using ir::Type;
using ir::Value;
using M = ptx::Modifier;

ir::Space ir_space(ptx::Space space) noexcept {
  switch (space) {
    case ptx::Space::global:
      return ir::Space::global;
    case ptx::Space::shared:
      return ir::Space::shared;
    case ptx::Space::local:
      return ir::Space::local;
    case ptx::Space::const_:
      return ir::Space::constant;
    case ptx::Space::param:
      return ir::Space::param;
    default:
      return ir::Space::generic;
  }
}

std::optional<Address> address_of(Translator& t, In in, const ptx::Operand& operand) {
  return address_in(t, operand, ir_space(in.space()));
}

std::optional<Address> address_in(Translator& t, const ptx::Operand& operand, ir::Space space) {
  const auto* address = operand.as<ptx::AddressOperand>();
  if (address == nullptr) {
    t.refuse("the operand is not an address");
    return std::nullopt;
  }
  Address result{.space = space};
  // A function's parameters are in its local memory if their addresses are taken.
  if (result.space == ir::Space::param && !t.in_kernel()) result.space = ir::Space::local;
  if (address->symbol) {
    result.base = t.symbol_address(*address->symbol, address->offset);
  } else if (address->register_index == ptx::kNoIndex) {
    result.base = t.constant(Type::i64, static_cast<std::uint64_t>(address->offset));
  } else {
    const ptx::Operand base{ptx::RegisterOperand{address->register_index, false, -1}};
    const bool wide = ptx::bit_size(t.register_type(base)) == 64;
    result.base = t.resize(t.read(base, wide ? ptx::Type::b64 : ptx::Type::b32), Type::i64, false);
    result.offset = static_cast<std::uint64_t>(address->offset);
  }
  return result;
}

void set_order(ir::Attributes& attributes, In in, ir::Semantics otherwise) {
  struct OrderRow {
    M modifier;
    ir::Semantics order;
  };
  static constexpr OrderRow kOrders[] = {
      {M::weak, ir::Semantics::weak},       {M::relaxed, ir::Semantics::relaxed},
      {M::acquire, ir::Semantics::acquire}, {M::release, ir::Semantics::release},
      {M::acq_rel, ir::Semantics::acq_rel}, {M::sc, ir::Semantics::sc},
  };
  struct ScopeRow {
    M modifier;
    ir::Scope scope;
  };
  static constexpr ScopeRow kScopes[] = {{M::cta, ir::Scope::cta},
                                         {M::cluster, ir::Scope::cluster},
                                         {M::gpu, ir::Scope::gpu},
                                         {M::gl, ir::Scope::gpu},
                                         {M::sys, ir::Scope::sys}};
  attributes.semantics = otherwise;
  for (const OrderRow& row : kOrders) {
    if (in.has(row.modifier)) attributes.semantics = row.order;
  }
  for (const ScopeRow& row : kScopes) {
    if (in.has(row.modifier)) attributes.scope = row.scope;
  }
}

namespace {

/// The elements that an access moves, in the types of the IR.
struct Elements {
  Type type;
  std::size_t count;
};
Elements elements_of(In in) {
  if (is_wide(in.type())) return {Type::i64, 2};
  return {ir_type(in.type()), in.vector_count()};
}

/// The most bytes that one operation of the IR moves; an access of 256 bits needs two operations.
constexpr std::size_t kMostBytes = 16;

std::size_t elements_at_once(const Elements& moved) {
  return std::min<std::size_t>(moved.count, kMostBytes / ir::byte_size(moved.type));
}

/// Returns the attributes of one operation of the access. The first operation has the alignment of the whole
/// access, so only it can report a misaligned address.
ir::Attributes access_attributes(In in, const Address& address, bool first) {
  const Elements moved = elements_of(in);
  const std::size_t count = elements_at_once(moved);
  ir::Attributes attr{.space = address.space, .count = static_cast<std::uint8_t>(count)};
  attr.alignment = static_cast<std::uint32_t>(ir::byte_size(moved.type) * (first ? moved.count : count));
  set_order(attr, in, ir::Semantics::weak);
  // Each .mmio access must be performed as written; a .cv load must not use the value of an earlier load.
  attr.is_volatile = in.has(M::volatile_) || in.has(M::mmio) || in.has(M::cv);
  return attr;
}

/// Returns the .param array that the operand accesses, and the offset in it, or null for other memory.
ParamArray* accessed_param(Translator& t, In in, const ptx::Operand& operand, std::uint32_t& offset) {
  const auto* address = operand.as<ptx::AddressOperand>();
  if (in.space() != ptx::Space::param || address == nullptr || !address->symbol) return nullptr;
  ParamArray* array = t.params().find(*address->symbol);
  if (array == nullptr) return nullptr;
  const std::uint64_t size = std::uint64_t{ptx::byte_size(in.type())} * in.vector_count();
  if (static_cast<std::uint64_t>(address->offset) > array->size ||
      size > array->size - static_cast<std::uint64_t>(address->offset)) {
    t.refuse("the access reaches beyond its parameter");
  }
  offset = static_cast<std::uint32_t>(address->offset);
  return array;
}

/// Returns the offset in the parameter buffer if the access names a kernel parameter; empty for other memory.
std::optional<std::uint64_t> kernel_param_offset(Translator& t, In in, const ptx::Operand& operand) {
  const auto* address = operand.as<ptx::AddressOperand>();
  if (in.space() != ptx::Space::param || !t.in_kernel() || address == nullptr || !address->symbol)
    return std::nullopt;
  if (address->symbol->kind != ptx::SymbolKind::parameter) return std::nullopt;
  const ir::Parameter& parameter = t.builder().function.params.at(address->symbol->index);
  const auto offset = static_cast<std::uint64_t>(address->offset);
  const std::uint64_t size = std::uint64_t{ptx::byte_size(in.type())} * in.vector_count();
  if (offset > parameter.size || size > parameter.size - offset) {
    t.refuse("the access reaches beyond its parameter");
    return 0;
  }
  return parameter.offset + offset;
}

/// Returns the values that a load reads, from any state space.
std::vector<Value> load_elements(Translator& t, In in) {
  const ptx::Operand& operand = t.operand(in, 1);
  const auto [type, count] = elements_of(in);
  const std::uint32_t size = ir::byte_size(type);
  std::vector<Value> values;
  if (const auto offset = kernel_param_offset(t, in, operand)) {
    for (std::size_t i = 0; i < count; ++i)
      values.push_back(t.builder().nullary(Op::param, type, *offset + i * size));
    return values;
  }
  std::uint32_t offset = 0;
  if (const ParamArray* array = accessed_param(t, in, operand, offset)) {
    for (std::uint32_t i = 0; i < count; ++i)
      values.push_back(t.params().read(*array, offset + i * size, type));
    return values;
  }
  const auto address = address_of(t, in, operand);
  if (!address) return values;
  const std::size_t at_once = elements_at_once({type, count});
  for (std::size_t first = 0; first < count; first += at_once) {
    ir::Attributes attr = access_attributes(in, *address, first == 0);
    attr.invariant = in.has(M::nc) || in.opcode == ptx::Opcode::ldu ||
                     address->space == ir::Space::constant || address->space == ir::Space::param;
    const Value load = t.emit(Op::load, type, {address->base}, attr, address->offset + first * size);
    if (count == 1) return {load};
    for (std::size_t i = 0; i < at_once; ++i) values.push_back(t.emit(Op::extract, type, {load}, {}, i));
  }
  return values;
}

bool check_type(Translator& t, In in) {
  const bool known = elements_of(in).type != Type::none && in.type() != ptx::Type::pred;
  if (!known) t.refuse(fmt::format("accesses of type .{} are not implemented", ptx::name(in.type())));
  return known;
}

void ld(Translator& t, In in) {
  if (!check_type(t, in)) return;
  const auto destinations = t.elements(t.operand(in, 0));
  if (destinations.size() != in.vector_count())
    return t.refuse("the number of destinations does not fit the vector");
  const auto values = load_elements(t, in);
  if (is_wide(in.type())) {
    if (values.size() == 2) t.write_wide(destinations[0], {values[0], values[1]});
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) t.write(destinations[i], values[i], is_signed(in.type()));
}

// Also lowers st.async.release, as a store at the instruction, which PTX allows.
void st(Translator& t, In in) {
  if (!check_type(t, in)) return;
  const ptx::Operand& operand = t.operand(in, 0);
  const auto sources = t.elements(t.operand(in, 1));
  if (sources.size() != in.vector_count()) return t.refuse("the number of sources does not fit the vector");
  std::vector<Value> values;
  if (is_wide(in.type())) {
    const Operands::Wide words = t.read_wide(sources[0]);
    values.assign(words.begin(), words.end());
  } else {
    for (const ptx::Operand& source : sources) values.push_back(t.read(source, in.type()));
  }
  std::uint32_t offset = 0;
  if (ParamArray* array = accessed_param(t, in, operand, offset)) {
    const std::uint32_t step = ir::byte_size(elements_of(in).type);
    for (std::uint32_t i = 0; i < values.size(); ++i) t.params().write(*array, offset + i * step, values[i]);
    return;
  }
  const auto address = address_of(t, in, operand);
  if (!address) return;
  if (address->space == ir::Space::constant || address->space == ir::Space::param)
    return t.refuse("this memory cannot be written");
  const Elements moved = elements_of(in);
  const std::size_t at_once = elements_at_once(moved);
  for (std::size_t first = 0; first < values.size(); first += at_once) {
    std::vector<Value> operands{address->base};
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    operands.insert(operands.end(), begin, begin + static_cast<std::ptrdiff_t>(at_once));
    t.emit(Op::store, Type::none, std::move(operands), access_attributes(in, *address, first == 0),
           address->offset + first * ir::byte_size(moved.type));
  }
}

void fence(Translator& t, In in) {
  ir::Attributes attr;
  set_order(attr, in, in.opcode == ptx::Opcode::membar ? ir::Semantics::sc : ir::Semantics::acq_rel);
  t.emit(Op::fence, Type::none, {}, attr);
}

void nothing(Translator&, In) {}

// Only hints read a cache policy, so its value has no meaning here.
void policy(Translator& t, In in) { t.write(in, t.constant(Type::i64, 0)); }

using Opcode = ptx::Opcode;
constexpr Row kRows[] = {
    {Opcode::ld, Kind::effect, ld},
    {Opcode::ldu, Kind::effect, ld},
    {Opcode::st, Kind::effect, st},
    {Opcode::membar, Kind::effect, fence},
    {Opcode::fence, Kind::effect, fence},
    // These are hints about caches.
    {Opcode::prefetch, Kind::pure, nothing},
    {Opcode::prefetchu, Kind::pure, nothing},
    {Opcode::applypriority, Kind::pure, nothing},
    {Opcode::discard, Kind::pure, nothing},
    {Opcode::createpolicy, Kind::pure, policy},
    // This is a hint about registers.
    {Opcode::setmaxnreg, Kind::pure, nothing},
    // A grid begins after all earlier grids of its stream have ended, so there is nothing to wait for and no
    // grid to start early.
    {Opcode::griddepcontrol, Kind::pure, nothing},
};

}  // namespace

std::span<const Row> memory_rows() { return kRows; }

}  // namespace quern::cpu::lower
