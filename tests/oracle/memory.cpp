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
  if (address.has_base)
    return t.block->memory(
        t, space,
        t.get({.kind = Operand::Kind::reg, .reg = address.reg, .bits = 0, .name = {}, .parts = {}},
              {'u', 64}) +
            address.bits,
        size);
  if (space == Space::param) {
    const auto found = t.frame().params.find(address.name);
    if (found == t.frame().params.end() || address.bits + size > found->second.size())
      throw Unsupported("oracle: parameter " + address.name);
    return found->second.data() + address.bits;
  }
  if (address.name.empty()) return t.block->memory(t, space, address.bits, size);
  // A generic instruction that names a variable uses the address in the variable's space.
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
  if (type.is('f', 32))
    return bits_as<std::uint32_t>(bits_as<float>(static_cast<std::uint32_t>(old)) +
                                  bits_as<float>(static_cast<std::uint32_t>(b)));
  if (type.is('f', 64)) return bits_as<std::uint64_t>(bits_as<double>(old) + bits_as<double>(b));
  if (type.is_float()) throw Unsupported("oracle: " + i.text);
  return old + b;
}

std::uint64_t address_of(Thread& t, const Operand& address) {
  if (!address.has_base)
    return address.name.empty() ? address.bits
                                : t.block->symbol_address(t, address.name, false) + address.bits;
  return t.get({.kind = Operand::Kind::reg, .reg = address.reg, .bits = 0, .name = {}, .parts = {}},
               {'u', 64}) +
         address.bits;
}

// ---- mbarrier. The object here contains the pending arrivals of the phase, the number of arrivals with
// which a phase begins, the transaction bytes that it waits for, and the number of the phase.

struct Mbarrier {
  std::uint64_t pending = 0;
  std::uint64_t expected = 0;
  std::uint64_t bytes = 0;
  std::uint64_t phase = 0;

  static Mbarrier of(std::uint64_t bits) {
    return {bits & mask_of(18), bits >> 18 & mask_of(18), bits >> 36 & mask_of(21), bits >> 57};
  }
  std::uint64_t bits() const {
    return (pending & mask_of(18)) | (expected & mask_of(18)) << 18 | (bytes & mask_of(21)) << 36 |
           phase << 57;
  }
  /// "Phase completion": the phase waits for no arrivals and no bytes.
  void complete() {
    if ((pending & mask_of(18)) != 0 || (bytes & mask_of(21)) != 0) return;
    pending = expected;
    ++phase;
  }
};

template <class Change>
std::uint64_t change_mbarrier(Thread& t, const Instruction& i, const Operand& address, Change change) {
  std::byte* at = locate(t, i, address, 8);
  const std::uint64_t old = read(at, 8);
  Mbarrier object = Mbarrier::of(old);
  change(object);
  object.complete();
  const std::uint64_t bits = object.bits();
  std::memcpy(at, &bits, 8);
  return old;
}

void arrive(Thread& t, const Instruction& i, const Operand& address, std::uint64_t count, bool drops) {
  const std::uint64_t old = change_mbarrier(t, i, address, [&](Mbarrier& object) {
    if (drops) object.expected -= count;
    object.pending -= count;
  });
  if (i.operands[0].kind == Operand::Kind::reg) t.set(i.operands[0], old);
}

void meet(Thread& t, const Instruction& i) {
  if (i.has("inval")) return;
  if (i.has("pending_count"))
    return t.set(i.operands[0], Mbarrier::of(t.get(i.operands[1], {'b', 64})).pending);
  if (i.has("init")) {
    const std::uint64_t count = t.get(i.operands[1], {'u', 32});
    const std::uint64_t bits = Mbarrier{count, count}.bits();
    std::memcpy(locate(t, i, i.operands[0], 8), &bits, 8);
    return;
  }
  const bool arrives = i.has("arrive") || i.has("arrive_drop");
  if (i.has("expect_tx") || i.has("complete_tx")) {
    const Operand& object = i.operands[arrives ? 1 : 0];
    const std::uint64_t bytes = t.get(i.operands[arrives ? 2 : 1], {'u', 32});
    change_mbarrier(t, i, object, [&](Mbarrier& m) { m.bytes += i.has("expect_tx") ? bytes : 0 - bytes; });
    if (arrives) arrive(t, i, object, 1, i.has("arrive_drop"));
    return;
  }
  if (arrives)
    return arrive(t, i, i.operands[1], i.operands.size() > 2 ? t.get(i.operands[2], {'u', 32}) : 1,
                  i.has("arrive_drop"));
  if (!i.has("test_wait")) throw Unsupported("oracle: " + i.text);
  const std::uint64_t phase = Mbarrier::of(read(locate(t, i, i.operands[1], 8), 8)).phase;
  const std::uint64_t asked = t.get(i.operands[2], {'b', 64});
  const bool over = i.has("parity") ? (phase & 1) != (asked & 1) : phase != Mbarrier::of(asked).phase;
  t.set(i.operands[0], over ? 1 : 0);
}

// add.noftz of f16 and f16x2. Each half is a separate operation.
void atomic_halves(Thread& t, const Instruction& i) {
  const unsigned bytes = i.has("f16x2") ? 4 : 2;
  const std::size_t address = i.opcode == "atom" ? 1 : 0;
  std::byte* at = locate(t, i, i.operands[address], bytes);
  const std::uint64_t old = read(at, bytes);
  const std::uint64_t b = t.get(i.operands[address + 1], {'b', bytes * 8});
  std::uint64_t value = sum_of_f16(old & 0xffff, b & 0xffff);
  if (bytes == 4) value |= sum_of_f16(old >> 16, b >> 16) << 16;
  std::memcpy(at, &value, bytes);
  if (i.opcode == "atom") t.set(i.operands[0], old);
}

void atomic(Thread& t, const Instruction& i) {
  if (i.has("noftz")) return atomic_halves(t, i);
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

// cp.async [to], [from], size {, number of bytes to read | predicate that disables reading}; completes at
// once.
void copy(Thread& t, const Instruction& i) {
  if (i.has("commit_group") || i.has("wait_group") || i.has("wait_all")) return;
  if (i.has("mbarrier")) return i.has("noinc") ? arrive(t, i, i.operands[0], 1, false) : void();
  const auto size = static_cast<std::size_t>(i.operands[2].bits);
  std::size_t given = size;
  if (i.operands.size() > 3) {
    const Operand& third = i.operands[3];
    const bool predicate =
        third.kind == Operand::Kind::reg && t.frame().function->registers[third.reg].kind == 'p';
    given = predicate ? (t.get_pred(third) ? 0 : size) : std::min<std::size_t>(size, t.get(third, {'u', 32}));
  }
  std::byte* to = t.block->memory(t, Space::shared, address_of(t, i.operands[0]), size);
  std::fill(to, to + size, std::byte{0});
  if (given == 0) return;
  const std::uint64_t from = address_of(t, i.operands[1]);
  for (std::size_t k = 0; k < given; ++k) to[k] = *t.block->memory(t, Space::global, from + k, 1);
}

void move(Thread& t, const Instruction& i) {
  const Operand& target = i.operands[0];
  const Operand& source = i.operands[1];
  const Type type = i.types.at(0);
  if (vector_of(i) > 1) {
    std::vector<std::uint64_t> values;
    for (const Operand& part : source.parts) values.push_back(t.get(part, type));
    for (std::size_t k = 0; k < values.size(); ++k) t.set(target.parts.at(k), values[k]);
    return;
  }
  if (target.kind == Operand::Kind::vector) {  // unpack
    const unsigned bits = type.bits / static_cast<unsigned>(target.parts.size());
    for (std::size_t k = 0; k < target.parts.size(); ++k)
      t.set(target.parts[k], t.get(source, type) >> (bits * k) & mask_of(bits));
    return;
  }
  if (source.kind == Operand::Kind::vector) {  // pack
    const unsigned bits = type.bits / static_cast<unsigned>(source.parts.size());
    std::uint64_t value = 0;
    for (std::size_t k = 0; k < source.parts.size(); ++k)
      value |= t.get(source.parts[k], {'b', bits}) << (bits * k);
    return t.set(target, value);
  }
  if (source.kind == Operand::Kind::symbol && t.block->program().find(source.name) != nullptr)
    return t.set(target, t.block->program().address_of(source.name));
  if (source.kind == Operand::Kind::symbol)
    return t.set(target, t.block->symbol_address(t, source.name, false) + source.bits);
  t.set(target, t.get(source, type));
}

// Global addresses are generic addresses. Shared and local addresses are moved into their windows.
void convert_address(Thread& t, const Instruction& i) {
  const Space space = space_of(i);
  const std::uint64_t window = space == Space::shared  ? kSharedWindow
                               : space == Space::local ? kLocalWindow
                                                       : 0;
  const Operand& source = i.operands[1];
  const std::uint64_t address = source.kind == Operand::Kind::symbol
                                    ? t.block->symbol_address(t, source.name, false) + source.bits
                                    : t.get(source, {'u', 64});
  t.set(i.operands[0], i.has("to") ? address - window : address + window);
}

void is_space(Thread& t, const Instruction& i) {
  const std::uint64_t address = t.get(i.operands[1], {'u', 64});
  const Space actual = address >= kSharedWindow  ? Space::shared
                       : address >= kLocalWindow ? Space::local
                                                 : Space::global;
  t.set(i.operands[0], actual == space_of(i) ? 1 : 0);
}

// The stack of alloca begins after the local variables of the frame.
void allocate(Thread& t, const Instruction& i) {
  const std::uint64_t align = i.operands.size() > 2 ? i.operands[2].bits : 8;
  const std::uint64_t begin = (t.local.size() + align - 1) / align * align;
  t.local.resize(begin + t.get(i.operands[1], i.types[0]));
  t.set(i.operands[0], begin);
}
void save_stack(Thread& t, const Instruction& i) { t.set(i.operands[0], t.local.size()); }
void restore_stack(Thread& t, const Instruction& i) { t.local.resize(t.get(i.operands[0], i.types[0])); }

void nothing(Thread&, const Instruction&) {}

// A block is a cluster by itself.
void address_in_cluster(Thread& t, const Instruction& i) {
  t.set(i.operands[0], t.get(i.operands[1], i.types[0]));
}
void rank_in_cluster(Thread& t, const Instruction& i) { t.set(i.operands[0], 0); }

}  // namespace

Handler find_memory_handler(const Instruction& i) {
  static const std::map<std::string, Handler> kRows{{"ld", load},
                                                    {"ldu", load},
                                                    {"st", store},
                                                    {"atom", atomic},
                                                    {"red", atomic},
                                                    {"mov", move},
                                                    {"cvta", convert_address},
                                                    {"isspacep", is_space},
                                                    {"membar", nothing},
                                                    {"fence", nothing},
                                                    {"cp", copy},
                                                    {"mbarrier", meet},
                                                    {"alloca", allocate},
                                                    {"stacksave", save_stack},
                                                    {"stackrestore", restore_stack},
                                                    {"prefetch", nothing},
                                                    {"setmaxnreg", nothing},
                                                    {"griddepcontrol", nothing},
                                                    {"mapa", address_in_cluster},
                                                    {"getctarank", rank_in_cluster}};
  const auto found = kRows.find(i.opcode);
  if (found == kRows.end()) return nullptr;
  for (const std::string& word : i.words)
    if (word == "bf16" || word == "bf16x2" || word == "b128") return nullptr;
  return found->second;
}

}  // namespace quern::oracle
