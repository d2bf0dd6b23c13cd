// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/range.hpp"

#include <algorithm>
#include <bit>
#include <initializer_list>

namespace quern::cpu::analysis {
namespace {

__extension__ using Wide = __int128;

/// The interval if it is within the width, otherwise every number of the width.
RangeResult fit(std::uint32_t bits, Wide min, Wide max) noexcept {
  const Range full = full_range(bits);
  if (min < full.min || max > full.max) return {full, true};
  return {{static_cast<std::int64_t>(min), static_cast<std::int64_t>(max)}, false};
}

RangeResult product(std::uint32_t bits, const Range& a, const Range& b) noexcept {
  const std::initializer_list<Wide> corners = {Wide{a.min} * b.min, Wide{a.min} * b.max, Wide{a.max} * b.min,
                                               Wide{a.max} * b.max};
  return fit(bits, std::min(corners), std::max(corners));
}

bool is_natural(const Range& range) noexcept { return range.min >= 0; }

/// [0, largest unsigned number of the width / divisor].
Range unsigned_below(std::uint32_t bits, std::uint64_t divisor) noexcept {
  const std::uint64_t most = bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  return {0, static_cast<std::int64_t>(most / divisor)};
}

/// All ones, as wide as the largest number of a range of natural numbers.
std::int64_t bits_below(std::int64_t max) noexcept {
  return static_cast<std::int64_t>((std::uint64_t{1} << std::bit_width(static_cast<std::uint64_t>(max))) - 1);
}

Range bitwise(ir::Op op, std::uint32_t bits, const Range& a, const Range& b) noexcept {
  if (op == ir::Op::and_) {
    if (is_natural(a) && is_natural(b)) return {0, std::min(a.max, b.max)};
    if (is_natural(a)) return {0, a.max};
    if (is_natural(b)) return {0, b.max};
    return full_range(bits);
  }
  if (!is_natural(a) || !is_natural(b)) return full_range(bits);
  const std::int64_t most = bits_below(std::max(a.max, b.max));
  return {op == ir::Op::or_ ? std::max(a.min, b.min) : 0, most};
}

RangeResult shift_left(std::uint32_t bits, const Range& a, const Range& by) noexcept {
  if (!by.single() || by.min < 0 || by.min >= bits) return {full_range(bits), true};
  const Wide factor = Wide{1} << by.min;
  return fit(bits, a.min * factor, a.max * factor);
}

Range shift_right(ir::Op op, std::uint32_t bits, const Range& a, const Range& by) noexcept {
  const bool known = by.single() && by.min >= 0;
  const auto least = static_cast<unsigned>(known ? std::min<std::int64_t>(by.min, 63) : 0);
  if (op == ir::Op::ashr || is_natural(a)) {
    if (known) return {a.min >> least, a.max >> least};
    return {a.min < 0 ? a.min : 0, a.max < 0 ? -1 : a.max};
  }
  if (!known || by.min == 0) return full_range(bits);
  if (by.min >= bits) return {0, 0};
  return unsigned_below(bits, std::uint64_t{1} << least);
}

Range extreme(ir::Op op, std::uint32_t bits, const Range& a, const Range& b) noexcept {
  const bool minimum = op == ir::Op::smin || op == ir::Op::umin;
  const bool is_signed = op == ir::Op::smin || op == ir::Op::smax;
  if (is_signed || (is_natural(a) && is_natural(b))) {
    if (minimum) return {std::min(a.min, b.min), std::min(a.max, b.max)};
    return {std::max(a.min, b.min), std::max(a.max, b.max)};
  }
  if (minimum && is_natural(a)) return {0, a.max};
  if (minimum && is_natural(b)) return {0, b.max};
  return full_range(bits);
}

Range divide(ir::Op op, std::uint32_t bits, const Range& a, const Range& b) noexcept {
  if (!is_natural(b) || b.min == 0) return full_range(bits);
  const bool division = op == ir::Op::udiv || op == ir::Op::sdiv;
  const bool is_signed = op == ir::Op::sdiv || op == ir::Op::srem;
  if (!division) {
    const std::int64_t most = b.max - 1;
    if (is_natural(a)) return {0, std::min(most, a.max)};
    return {is_signed ? -most : 0, most};
  }
  if (is_natural(a)) return {a.min / b.max, a.max / b.min};
  if (is_signed) return {a.min / b.min, a.max >= 0 ? a.max / b.min : a.max / b.max};
  return b.min == 1 ? full_range(bits) : unsigned_below(bits, static_cast<std::uint64_t>(b.min));
}

Range field(const ir::Inst& inst, std::uint32_t bits, std::span<const Range> args) noexcept {
  const Range& length = args[2];
  if (!length.single() || length.min < 0 || length.min >= bits) return full_range(bits);
  const std::int64_t size = std::int64_t{1} << length.min;
  if (!inst.attr.is_signed) return {0, size - 1};
  return length.min == 0 ? Range{0, 0} : Range{-size / 2, size / 2 - 1};
}

}  // namespace

Range full_range(std::uint32_t bits) noexcept {
  if (bits == 0 || bits >= 64) return {};
  return {-(std::int64_t{1} << (bits - 1)), (std::int64_t{1} << (bits - 1)) - 1};
}

Range hull(const Range& a, const Range& b) noexcept {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

RangeResult range_of(const ir::Inst& inst, std::uint32_t bits, std::span<const Range> args) noexcept {
  const std::uint32_t result_bits = ir::bit_size(inst.type);
  const Range full = ir::is_float(inst.type) ? Range{} : full_range(result_bits);
  const auto inside = [](const Range& range) { return RangeResult{range, true}; };
  switch (inst.op) {
    case ir::Op::iadd:
      return fit(bits, Wide{args[0].min} + args[1].min, Wide{args[0].max} + args[1].max);
    case ir::Op::isub:
      return fit(bits, Wide{args[0].min} - args[1].max, Wide{args[0].max} - args[1].min);
    case ir::Op::imul:
      return product(bits, args[0], args[1]);
    case ir::Op::shl:
      return shift_left(bits, args[0], args[1]);
    case ir::Op::lshr:
    case ir::Op::ashr:
      return inside(shift_right(inst.op, bits, args[0], args[1]));
    case ir::Op::and_:
    case ir::Op::or_:
    case ir::Op::xor_:
      return inside(bitwise(inst.op, bits, args[0], args[1]));
    case ir::Op::smin:
    case ir::Op::smax:
    case ir::Op::umin:
    case ir::Op::umax:
      return inside(extreme(inst.op, bits, args[0], args[1]));
    case ir::Op::sdiv:
    case ir::Op::udiv:
    case ir::Op::srem:
    case ir::Op::urem:
      return inside(divide(inst.op, bits, args[0], args[1]));
    case ir::Op::bfe:
      return inside(field(inst, bits, args));
    case ir::Op::popc:
    case ir::Op::clz:
      return inside({0, bits});
    case ir::Op::bfind:
      return inside({-1, std::int64_t{bits} - 1});
    case ir::Op::sext:
      return {args[0], false};
    case ir::Op::zext:
      return inside(is_natural(args[0]) ? args[0] : unsigned_below(bits, 1));
    case ir::Op::trunc:
      return fit(result_bits, args[0].min, args[0].max);
    case ir::Op::select:
      return {hull(args[1], args[2]), false};
    default:
      return inside(full);
  }
}

int decide(ir::Icmp how, const Range& a, const Range& b) noexcept {
  const bool natural = is_natural(a) && is_natural(b);
  const auto less = [](const Range& x, const Range& y) {
    return x.max < y.min ? 1 : x.min >= y.max ? 0 : -1;
  };
  const auto flip = [](int answer) { return answer < 0 ? -1 : 1 - answer; };
  const bool is_signed = ir::is_signed(how);
  if (ir::is_equality(how)) {
    const bool apart = a.max < b.min || b.max < a.min;
    const bool same = a.single() && a == b;
    if (!apart && !same) return -1;
    return same == (how == ir::Icmp::eq) ? 1 : 0;
  }
  if (!is_signed && !natural) return -1;
  switch (how) {
    case ir::Icmp::slt:
    case ir::Icmp::ult:
      return less(a, b);
    case ir::Icmp::sge:
    case ir::Icmp::uge:
      return flip(less(a, b));
    case ir::Icmp::sgt:
    case ir::Icmp::ugt:
      return less(b, a);
    default:
      return flip(less(b, a));
  }
}

std::uint64_t alignment_of(std::uint64_t value) noexcept {
  return value == 0 ? kMostAligned : value & (~value + 1);
}

}  // namespace quern::cpu::analysis
