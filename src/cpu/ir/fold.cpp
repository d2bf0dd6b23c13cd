// SPDX-License-Identifier: Apache-2.0
#include "cpu/ir/fold.hpp"

#include <algorithm>
#include <bit>

namespace quern::cpu::ir {
namespace {

using Unsigned = std::uint64_t;
using Signed = std::int64_t;

constexpr std::nullopt_t kUnknown = std::nullopt;

Unsigned signed_divide(Signed a, Signed b) noexcept {
  if (b == 0) return ~Unsigned{0};
  if (b == -1) return Unsigned{0} - static_cast<Unsigned>(a);
  return static_cast<Unsigned>(a / b);
}

Unsigned signed_remainder(Signed a, Signed b) noexcept {
  if (b == 0) return ~Unsigned{0};
  return b == -1 ? 0 : static_cast<Unsigned>(a % b);
}

Unsigned shift_left(Unsigned a, Unsigned by, std::uint32_t bits) noexcept { return by >= bits ? 0 : a << by; }

Unsigned shift_right(Unsigned a, Unsigned by, std::uint32_t bits) noexcept {
  return by >= bits ? 0 : a >> by;
}

Unsigned signed_shift_right(Signed a, Unsigned by, std::uint32_t bits) noexcept {
  return static_cast<Unsigned>(a >> std::min<Unsigned>(by, bits - 1));
}

Unsigned low_bits(Unsigned count) noexcept {
  return truncate(~Unsigned{0}, static_cast<std::uint32_t>(std::min<Unsigned>(count, 64)));
}

/// A position or length of a bit field in words of `bits` bits (emit/operations/bits.cpp).
Unsigned field_number(Unsigned given, std::uint32_t bits) noexcept {
  return bits == 32 ? given & 0xff : given;
}

Unsigned field(Unsigned a, Unsigned position, Unsigned length, std::uint32_t bits, bool is_signed) noexcept {
  position = field_number(position, bits);
  length = field_number(length, bits);
  if (!is_signed) return shift_right(a, position, bits) & low_bits(length);
  const Unsigned moved = signed_shift_right(sign_extend(a, bits), position, bits);
  if (length == 0 || length >= bits) return length == 0 ? 0 : moved;
  return static_cast<Unsigned>(
      sign_extend(truncate(moved, static_cast<std::uint32_t>(length)), static_cast<std::uint32_t>(length)));
}

Unsigned with_field(Unsigned field, Unsigned into, Unsigned position, Unsigned length,
                    std::uint32_t bits) noexcept {
  position = field_number(position, bits);
  const Unsigned mask = shift_left(low_bits(field_number(length, bits)), position, bits);
  return (into & ~mask) | (shift_left(field, position, bits) & mask);
}

std::optional<Unsigned> cut(Unsigned value, std::uint32_t bits) noexcept { return truncate(value, bits); }
std::optional<Unsigned> cut(std::nullopt_t, std::uint32_t /*bits*/) noexcept { return std::nullopt; }

}  // namespace

std::uint64_t truncate(std::uint64_t value, std::uint32_t bits) noexcept {
  return bits >= 64 ? value : value & ((Unsigned{1} << bits) - 1);
}

std::optional<std::uint64_t> fold(const Inst& inst, std::uint32_t bits,
                                  std::span<const std::uint64_t> args) noexcept {
  const std::uint32_t result_bits = bit_size(inst.type);
  const auto operand = [&](std::size_t index) { return index < args.size() ? args[index] : Unsigned{0}; };
  const Unsigned a = operand(0);
  const Unsigned b = operand(1);
  const Unsigned c = operand(2);
  const Unsigned d = operand(3);
  const Signed sa = sign_extend(a, bits);
  const Signed sb = sign_extend(b, bits);
  switch (inst.op) {
#define QUERN_IR_OP(name, types, traits, folded, meaning) \
  case Op::name:                                          \
    return cut(folded, result_bits);
#include "cpu/ir/ops.def"
  }
  return std::nullopt;
}

}  // namespace quern::cpu::ir
