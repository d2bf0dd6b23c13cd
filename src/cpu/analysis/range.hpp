// SPDX-License-Identifier: Apache-2.0
// Intervals of signed numbers of a given width, and what powers of two divide.
#pragma once

#include <cstdint>
#include <span>

#include "cpu/ir/ir.hpp"

namespace quern::cpu::analysis {

struct Range {
  std::int64_t min = INT64_MIN;
  std::int64_t max = INT64_MAX;
  friend bool operator==(const Range&, const Range&) = default;

  bool single() const noexcept { return min == max; }
  bool contains(std::int64_t number) const noexcept { return min <= number && number <= max; }
};

/// Every number of a width (0: no bounds, for what is not an integer).
Range full_range(std::uint32_t bits) noexcept;
Range hull(const Range& a, const Range& b) noexcept;

struct RangeResult {
  Range range;
  bool wraps =
      true;  ///< the exact result may lie outside the width (add, sub, mul, shl), or exactness has no meaning
};

/// Bounds of the result of `inst` for operands within `args`; `bits`: width of the first operand (of the
/// second for select). Of operations it does not know: the full range.
RangeResult range_of(const ir::Inst& inst, std::uint32_t bits, std::span<const Range> args) noexcept;

/// 0 or 1 where the bounds decide the comparison, else -1.
int decide(ir::Icmp how, const Range& a, const Range& b) noexcept;

/// What 0 is divisible by.
inline constexpr std::uint64_t kMostAligned = std::uint64_t{1} << 63;
/// The largest power of two that divides `value`.
std::uint64_t alignment_of(std::uint64_t value) noexcept;

}  // namespace quern::cpu::analysis
