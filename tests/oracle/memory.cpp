// SPDX-License-Identifier: Apache-2.0
// "Data Movement Instructions" and "atom", "red".
#include <algorithm>

#include "handlers.hpp"

namespace quern::oracle {
namespace {

Space space_of(const Instruction& i) {
  for (const std::string& word : i.words) {
    if (word == "global") return Space::global;
    if (word.starts_with("shared")) return Space::shared;
    if (word == "local") return Space::local;
    if (word == "const") return Space::constant;
    if (word.starts_with("param")) return Space::param;
  }
  return Space::generic;
}

unsigned vector_of(const Instruction& i) { return i.has("v2") ? 2 : i.has("v4") ? 4 : i.has("v8") ? 8 : 1; }

std::byte* locate(Thread& t, const Instruction& i, const Operand& address, std::size_t size) {
  const Space space = space_of(i);
  if (address.has_base) return t.block->memory(t, space, t.get({.kind = Operand::Kind::reg, .reg = address.reg, .bits = 0, .name = {}, .parts = {}}, {'u', 64}) + address.bits, size);
  if (space == Space::param) {
    const auto found = t.frame().params.find(address.name);
    if (found == t.frame().params.end() || address.bits + size > found->second.size()) throw Unsupported("oracle: parameter " + address.name);
    return found->second.data() + address.bits;
  }
  if (address.name.empty()) return t.block->memory(t, space, address.bits, size);
  // A named variable under a generic instruction is addressed in its own space.
  const Space own = space == Space::generic ? t.block->symbol_space(t, address.name) : space;
  return t.block->memory(t, own, t.block->symbol_address(t, address.name, false) + address.bits, size);
}

std::uint64_t read(const std::byte* from, unsigned bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, bytes);
  return value;
}

void load(Thread& t, const Instruction& i) {
  const Type type = i.types[0];
  const unsigned count = vector_of(i);
  const std::byte* from = locate(t, i, i.operands[1], type.bytes() * count);
  const std::vector<Operand> one{i.operands[0]};
  const std::vector<Operand>& targets = count > 1 ? i.operands[0].parts : one;
  for (unsigned k = 0; k < count; ++k) {
    std::uint64_t value = read(from + k * type.bytes(), type.bytes());
    if (type.is_signed()) value = static_cast<std::uint64_t>(sign_extend(value, type.bits));
    t.set(targets[k], value);
  }
}

void store(Thread& t, const Instruction& i) {
  const Type type = i.types[0];
  const unsigned count = vector_of(i);
  std::byte* to = locate(t, i, i.operands[0], type.bytes() * count);
  const std::vector<Operand> one{i.operands[1]};
  const std::vector<Operand>& sources = count > 1 ? i.operands[1].parts : one;
  for (unsigned k = 0; k < count; ++k) {
    const std::uint64_t value = t.get(sources[k], type);
    std::memcpy(to + k * type.bytes(), &value, type.bytes());
  }
}

std::uint64_t combine(const Instruction& i, Type type, std::uint64_t old, std::uint64_t b, std::uint64_t c) {
  const auto less = [&](std::uint64_t x, std::uint64_t y) {
    return type.is_signed() ? sign_extend(x, type.bits) < sign_extend(y, type.bits) : x < y;
  };
  if (i.has("cas")) return old == b ? c : old;
  if (i.has("exch")) return b;
  if (i.has("and")) return old & b;
  if (i.has("or")) return old | b;
  if (i.has("xor")) return old ^ b;
  if (i.has("inc")) return old >= b ? 0 : old + 1;
  if (i.has("dec")) return old == 0 || old > b ? b : old - 1;
  if (i.has("min")) return less(b, old) ? b : old;
  if (i.has("max")) return less(old, b) ? b : old;
  if (!i.has("add")) throw Unsupported("oracle: " + i.text);
  if (type.is('f', 32)) return bits_as<std::uint32_t>(bits_as<float>(static_cast<std::uint32_t>(old)) + bits_as<float>(static_cast<std::uint32_t>(b)));
  if (type.is('f', 64)) return bits_as<std::uint64_t>(bits_as<double>(old) + bits_as<double>(b));
  if (type.is_float()) throw Unsupported("oracle: " + i.text);
  return old + b;
}

void atomic(Thread& t, const Instruction& i) {
  const Type type = i.types[0];
  const std::size_t address = i.opcode == "atom" ? 1 : 0;
  std::byte* at = locate(t, i, i.operands[address], type.bytes());
  const std::uint64_t old = read(at, type.bytes());
  const std::uint64_t b = t.get(i.operands[address + 1], type);
  const std::uint64_t c = i.operands.size() > address + 2 ? t.get(i.operands[address + 2], type) : 0;
  const std::uint64_t value = combine(i, type, old, b, c);
  std::memcpy(at, &value, type.bytes());
  if (i.opcode == "atom") t.set(i.operands[0], old);
}

void move(Thread& t, const Instruction& i) {
  const Operand& target = i.operands[0];
  const Operand& source = i.operands[1];
  const Type type = i.types.at(0);
  if (target.kind == Operand::Kind::vector) {  // unpack
    const unsigned bits = type.bits / static_cast<unsigned>(target.parts.size());
    for (std::size_t k = 0; k < target.parts.size(); ++k) t.set(target.parts[k], t.get(source, type) >> (bits * k) & mask_of(bits));
    return;
  }
  if (source.kind == Operand::Kind::vector) {  // pack
    const unsigned bits = type.bits / static_cast<unsigned>(source.parts.size());
    std::uint64_t value = 0;
    for (std::size_t k = 0; k < source.parts.size(); ++k) value |= t.get(source.parts[k], {'b', bits}) << (bits * k);
    return t.set(target, value);
  }
  if (source.kind == Operand::Kind::symbol) return t.set(target, t.block->symbol_address(t, source.name, false) + source.bits);
  t.set(target, t.get(source, type));
}

// Global addresses are generic addresses; shared and local ones move into their windows.
void convert_address(Thread& t, const Instruction& i) {
  const Space space = space_of(i);
  const std::uint64_t window = space == Space::shared ? kSharedWindow : space == Space::local ? kLocalWindow : 0;
  const Operand& source = i.operands[1];
  const std::uint64_t address =
      source.kind == Operand::Kind::symbol ? t.block->symbol_address(t, source.name, false) + source.bits : t.get(source, {'u', 64});
  t.set(i.operands[0], i.has("to") ? address - window : address + window);
}

void is_space(Thread& t, const Instruction& i) {
  const std::uint64_t address = t.get(i.operands[1], {'u', 64});
  const Space actual = address >= kSharedWindow ? Space::shared : address >= kLocalWindow ? Space::local : Space::global;
  t.set(i.operands[0], actual == space_of(i) ? 1 : 0);
}

void nothing(Thread&, const Instruction&) {}

}  // namespace

Handler find_memory_handler(const Instruction& i) {
  static const std::map<std::string, Handler> kRows{{"ld", load}, {"ldu", load}, {"st", store}, {"atom", atomic}, {"red", atomic}, {"mov", move},
      {"cvta", convert_address}, {"isspacep", is_space}, {"membar", nothing}, {"fence", nothing}, {"prefetch", nothing}};
  const auto found = kRows.find(i.opcode);
  if (found == kRows.end()) return nullptr;
  for (const std::string& word : i.words)
    if (word == "f16x2" || word == "bf16" || word == "bf16x2" || word == "noftz" || word == "b128") return nullptr;
  return found->second;
}

}  // namespace quern::oracle
