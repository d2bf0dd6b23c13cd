// SPDX-License-Identifier: Apache-2.0
#include "frontend/analyse/range_arithmetic.hpp"

#include <algorithm>

namespace quern::frontend {

Range bounded(Wide low, Wide high, bool exact) {
  Range range{INT64_MIN, INT64_MAX, exact};
  if (low >= INT64_MIN && low <= INT64_MAX) range.low = static_cast<std::int64_t>(low);
  if (low > INT64_MAX) range.low = INT64_MAX;
  if (high >= INT64_MIN && high <= INT64_MAX) range.high = static_cast<std::int64_t>(high);
  if (high < INT64_MIN) range.high = INT64_MIN;
  if (low < INT64_MIN || high > INT64_MAX) range.exact = false;
  return range;
}

namespace {

Range corners(const Range& a, const Range& b, Wide (*f)(Wide, Wide), bool exact) {
  const Wide all[] = {f(a.low, b.low), f(a.low, b.high), f(a.high, b.low), f(a.high, b.high)};
  return bounded(*std::min_element(all, all + 4), *std::max_element(all, all + 4), exact);
}

Wide floor_divide(Wide a, Wide b) {
  const Wide quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

constexpr Range kAnything{INT64_MIN, INT64_MAX, false};

bool is_unbounded(const Range& range) { return range.low == INT64_MIN || range.high == INT64_MAX; }

// The least 2**k - 1 that is not below `value`.
std::int64_t all_ones(std::int64_t value) {
  std::uint64_t bits = static_cast<std::uint64_t>(value);
  for (unsigned shift = 1; shift < 64; shift *= 2) bits |= bits >> shift;
  return static_cast<std::int64_t>(bits);
}

}  // namespace

Range of_type(Type type) {
  if (type == nullptr) return {};
  if (type->kind == TypeKind::boolean) return {0, 1, true};
  if (!is_integer(type)) return {};
  if (type->bits == 64) return type->is_signed ? Range{} : Range{0, INT64_MAX, false};
  const std::int64_t span = std::int64_t{1} << (type->bits - (type->is_signed ? 1 : 0));
  return type->is_signed ? Range{-span, span - 1, true} : Range{0, span - 1, true};
}

Range clipped(const Range& range, Type type) {
  if (is_nothing(range)) return range;
  const Range limits = of_type(type);
  if (type != nullptr && is_integer(type) && type->bits == 64) {
    if (type->is_signed || range.low >= 0) return range;
    return limits;
  }
  return range.low >= limits.low && range.high <= limits.high && range.exact ? range : limits;
}

Range join(const Range& a, const Range& b) {
  if (is_nothing(a)) return b;
  if (is_nothing(b)) return a;
  return {std::min(a.low, b.low), std::max(a.high, b.high), a.exact && b.exact};
}

Range of_operator(Tok op, const Range& a, const Range& b) {
  const bool exact = a.exact && b.exact;
  switch (op) {
    case Tok::plus:
      return bounded(Wide{a.low} + b.low, Wide{a.high} + b.high, exact);
    case Tok::minus:
      return bounded(Wide{a.low} - b.high, Wide{a.high} - b.low, exact);
    case Tok::times: {
      const Range product = corners(a, b, [](Wide x, Wide y) { return x * y; }, exact);
      // Products of sizes are taken to fit, but not those of numbers that may be anything, as in hashes.
      return !product.exact && (is_unbounded(a) || is_unbounded(b)) ? kAnything : product;
    }
    case Tok::floor_divide:
      if (b.low > 0 && b.exact) return corners(a, b, floor_divide, exact);
      return {};
    case Tok::mod:
      if (b.low > 0 && b.exact) {
        if (a.exact && a.low >= 0 && a.high < b.low) return a;
        return {0, b.high - 1, true};
      }
      return {};
    case Tok::right_shift:
      if (b.exact && b.low >= 0 && b.high <= 63)
        return corners(a, b, [](Wide x, Wide y) { return x >> static_cast<int>(y); }, exact);
      return {};
    case Tok::left_shift:
      if (b.exact && b.low >= 0 && b.high <= 62)
        return corners(a, b, [](Wide x, Wide y) { return x * (Wide{1} << static_cast<int>(y)); }, exact);
      return {};
    case Tok::bit_and:
      if (b.exact && b.low >= 0) return {0, a.exact && a.low >= 0 ? std::min(a.high, b.high) : b.high, true};
      if (a.exact && a.low >= 0) return {0, a.high, true};
      return {};
    case Tok::bit_or:
    case Tok::bit_xor:
      if (exact && a.low >= 0 && b.low >= 0) return {0, all_ones(std::max(a.high, b.high)), true};
      return {};
    default:
      return {};
  }
}

}  // namespace quern::frontend
