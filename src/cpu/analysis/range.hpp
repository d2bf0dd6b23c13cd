// SPDX-License-Identifier: Apache-2.0
// Intervals of signed numbers of a given width, with the power of two that divides the numbers.
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

/// All numbers of the width (0: no bounds, for values that are not integers).
Range full_range(std::uint32_t bits) noexcept;
Range hull(const Range& a, const Range& b) noexcept;

struct RangeResult {
  Range range;
  bool wraps =
      true;  ///< the exact result may be outside the width (add, sub, mul, shl), or exactness has no meaning
};

/// Bounds of the result of `inst` for operands within `args`. `bits`: width of the first operand (for select,
/// of the second). The full range for operations without a rule.
RangeResult range_of(const ir::Inst& inst, std::uint32_t bits, std::span<const Range> args) noexcept;

/// 0 or 1 if the bounds decide the comparison, otherwise -1.
int decide(ir::Icmp how, const Range& a, const Range& b) noexcept;

/// The alignment of 0.
inline constexpr std::uint64_t kMostAligned = std::uint64_t{1} << 63;
/// The largest power of two that divides `value`.
std::uint64_t alignment_of(std::uint64_t value) noexcept;

}  // namespace quern::cpu::analysis
