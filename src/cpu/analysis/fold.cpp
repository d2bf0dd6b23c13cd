// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/fold.hpp"

#include <algorithm>
#include <bit>

namespace quern::cpu::analysis {
namespace {

using Unsigned = std::uint64_t;
using Signed = std::int64_t;

Unsigned signed_divide(Signed a, Signed b) noexcept {
  if (b == 0) return ~Unsigned{0};
  if (b == -1) return Unsigned{0} - static_cast<Unsigned>(a);
  return static_cast<Unsigned>(a / b);
}

Unsigned signed_remainder(Signed a, Signed b) noexcept {
  if (b == 0) return static_cast<Unsigned>(a);
  return b == -1 ? 0 : static_cast<Unsigned>(a % b);
}

Unsigned shift(ir::Op op, Unsigned a, Unsigned by, std::uint32_t bits) noexcept {
  if (op == ir::Op::ashr)
    return static_cast<Unsigned>(sign_extend(a, bits) >> std::min<Unsigned>(by, bits - 1));
  if (by >= bits) return 0;
  return op == ir::Op::shl ? a << by : a >> by;
}

}  // namespace

std::uint64_t truncate(std::uint64_t value, std::uint32_t bits) noexcept {
  return bits >= 64 ? value : value & ((Unsigned{1} << bits) - 1);
}

std::optional<std::uint64_t> fold(const ir::Inst& inst, std::uint32_t bits,
                                  std::span<const std::uint64_t> args) noexcept {
  const std::uint32_t result_bits = ir::bit_size(inst.type);
  const Unsigned a = args.empty() ? 0 : args[0];
  const Unsigned b = args.size() < 2 ? 0 : args[1];
  const Signed sa = sign_extend(a, bits);
  const Signed sb = sign_extend(b, bits);
  const auto done = [&](Unsigned value) { return std::optional(truncate(value, result_bits)); };
  switch (inst.op) {
    case ir::Op::iadd:
      return done(a + b);
    case ir::Op::isub:
      return done(a - b);
    case ir::Op::imul:
      return done(a * b);
    case ir::Op::sdiv:
      return done(signed_divide(sa, sb));
    case ir::Op::udiv:
      return done(b == 0 ? ~Unsigned{0} : a / b);
    case ir::Op::srem:
      return done(signed_remainder(sa, sb));
    case ir::Op::urem:
      return done(b == 0 ? a : a % b);
    case ir::Op::smin:
      return done(sa < sb ? a : b);
    case ir::Op::smax:
      return done(sa > sb ? a : b);
    case ir::Op::umin:
      return done(std::min(a, b));
    case ir::Op::umax:
      return done(std::max(a, b));
    case ir::Op::iabs:
      return done(sa < 0 ? Unsigned{0} - a : a);
    case ir::Op::and_:
      return done(a & b);
    case ir::Op::or_:
      return done(a | b);
    case ir::Op::xor_:
      return done(a ^ b);
    case ir::Op::shl:
    case ir::Op::lshr:
    case ir::Op::ashr:
      return done(shift(inst.op, a, b, bits));
    case ir::Op::popc:
      return done(static_cast<Unsigned>(std::popcount(a)));
    case ir::Op::clz:
      return done(static_cast<Unsigned>(std::countl_zero(a)) - (64 - bits));
    case ir::Op::icmp:
      return done(ir::holds(inst.attr.icmp, a, b, bits) ? 1 : 0);
    case ir::Op::select:
      return done(a != 0 ? b : args[2]);
    case ir::Op::trunc:
    case ir::Op::zext:
      return done(a);
    case ir::Op::sext:
      return done(static_cast<Unsigned>(sa));
    default:
      return std::nullopt;
  }
}

}  // namespace quern::cpu::analysis
