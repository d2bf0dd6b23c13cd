// SPDX-License-Identifier: Apache-2.0
// .b128: a register is two words, the low one first. mov, ld and st move it as a whole, or in parts.
#include "handlers.hpp"

namespace quern::oracle {
namespace {

Operand high_of(Operand reg) {
  ++reg.reg;
  return reg;
}

void move(Thread& t, const Instruction& i) {
  const Operand& target = i.operands[0];
  const Operand& source = i.operands[1];
  std::uint64_t words[2] = {};
  if (source.kind == Operand::Kind::vector) {
    const unsigned bits = 128 / static_cast<unsigned>(source.parts.size());
    for (unsigned k = 0; k < source.parts.size(); ++k)
      words[k * bits / 64] |= t.get(source.parts[k], {'b', bits}) << (k * bits % 64);
  } else {
    words[0] = t.get(source, {'b', 64});
    words[1] = t.get(high_of(source), {'b', 64});
  }
  if (target.kind != Operand::Kind::vector) {
    t.set(target, words[0]);
    return t.set(high_of(target), words[1]);
  }
  const unsigned bits = 128 / static_cast<unsigned>(target.parts.size());
  for (unsigned k = 0; k < target.parts.size(); ++k)
    t.set(target.parts[k], words[k * bits / 64] >> (k * bits % 64) & mask_of(bits));
}

/// Returns the access as two 64-bit accesses.
Instruction half_of(const Instruction& i, bool high) {
  Instruction half = i;
  half.types = {{'b', 64}};
  const bool loads = i.opcode != "st";
  if (!high) return half;
  half.operands[loads ? 1 : 0].bits += 8;
  ++half.operands[loads ? 0 : 1].reg;
  return half;
}

void access(Thread& t, const Instruction& i) {
  for (const bool high : {false, true}) {
    Instruction half = half_of(i, high);
    std::erase(half.words, "b128");
    find_memory_handler(half)(t, half);
  }
}

}  // namespace

Handler find_wide_handler(const Instruction& i) {
  if (!i.has("b128")) return nullptr;
  if (i.opcode == "mov") return move;
  return i.opcode == "ld" || i.opcode == "ldu" || i.opcode == "st" ? access : nullptr;
}

}  // namespace quern::oracle
