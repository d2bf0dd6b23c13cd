// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/algebra.hpp"

#include <algorithm>

#include "cpu/ir/fold.hpp"

namespace quern::cpu::analysis {
namespace {

using ir::sign_extend;
using ir::truncate;

constexpr std::size_t kMaxTerms = 2;
constexpr std::int64_t kMaxScale = 16;  // the scale of an address of a 128-bit element

std::int64_t wrapping_product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

void merge_terms(std::vector<Term>& terms) {
  for (std::size_t i = 0; i < terms.size(); ++i)
    for (std::size_t j = terms.size() - 1; j > i; --j) {
      if (terms[i].coefficient != terms[j].coefficient || terms[i].sign_extend != terms[j].sign_extend)
        continue;
      for (std::size_t lane = 0; lane < terms[i].pattern.size(); ++lane)
        terms[i].pattern[lane] = wrapping_sum(terms[i].pattern[lane], terms[j].pattern[lane]);
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(j));
    }
}

/// True if nothing had to be changed.
bool wrap_patterns(std::vector<Term>& terms, std::uint32_t bits) {
  bool same = true;
  for (Term& term : terms)
    for (std::int64_t& entry : term.pattern) {
      const std::int64_t wrapped = sign_extend(static_cast<std::uint64_t>(entry), bits);
      same &= wrapped == entry;
      entry = wrapped;
    }
  return same;
}

bool is_exact(const Shape& shape, std::uint32_t bits) {
  if (shape.exact || !has_constant_pattern(shape)) return shape.exact;
  if (is_pattern_below_alignment(shape)) return true;  // 2^(bits-1) is a multiple of the alignment too
  const auto [least, most] =
      std::minmax_element(shape.terms[0].pattern.begin(), shape.terms[0].pattern.end());
  const Range full = full_range(bits);
  return shape.min >= full.min - std::min<std::int64_t>(*least, 0) &&
         shape.max <= full.max - std::max<std::int64_t>(*most, 0);
}

/// offset32 with a uniform value added or subtracted.
Shape moved(const Shape& offset, std::uint32_t bits) {
  Shape result = offset;
  result.constant.reset();
  set_range(result, full_range(bits));
  return result;
}

bool same_index(const Shape& a, const Shape& b) {
  return a.index == b.index && a.index_signed == b.index_signed && a.scale == b.scale;
}

/// A power of two that divides the value in every lane.
std::uint64_t lane_alignment(const Shape& shape) {
  if (shape.kind == ShapeKind::uniform) return shape.base_align;
  if (!has_constant_pattern(shape)) return 1;
  std::uint64_t result = shape.base_align;
  for (const std::int64_t entry : shape.terms[0].pattern)
    result = std::min(result, alignment_of(static_cast<std::uint64_t>(entry)));
  return result;
}

}  // namespace

Range range_of(const Shape& shape) { return {shape.min, shape.max}; }

void set_range(Shape& shape, const Range& range) {
  shape.min = range.min;
  shape.max = range.max;
}

Shape varying_shape(std::uint32_t bits) {
  Shape shape;
  shape.kind = ShapeKind::varying;
  set_range(shape, full_range(bits));
  return shape;
}

Shape uniform_shape(std::uint32_t bits) {
  Shape shape = varying_shape(bits);
  shape.kind = ShapeKind::uniform;
  shape.exact = true;
  return shape;
}

Shape constant_shape(std::uint32_t bits, std::uint64_t value) {
  Shape shape = uniform_shape(bits);
  shape.constant = truncate(value, bits);
  shape.base_align = alignment_of(*shape.constant);
  const std::int64_t number = sign_extend(value, bits);
  set_range(shape, {number, number});
  return shape;
}

bool is_linear(const Shape& shape) {
  return shape.kind == ShapeKind::uniform || shape.kind == ShapeKind::affine;
}

bool has_constant_pattern(const Shape& shape) {
  return shape.kind == ShapeKind::affine && shape.terms.size() == 1 &&
         shape.terms[0].coefficient == ir::kNone;
}

bool is_pattern_below_alignment(const Shape& shape) {
  if (!has_constant_pattern(shape)) return false;
  const auto below = [&](std::int64_t entry) {
    return entry >= 0 && static_cast<std::uint64_t>(entry) < shape.base_align;
  };
  return std::all_of(shape.terms[0].pattern.begin(), shape.terms[0].pattern.end(), below);
}

std::optional<std::array<std::uint64_t, 32>> known_lanes(const Shape& shape, std::uint32_t bits) {
  if (!is_linear(shape) || !shape.constant) return std::nullopt;
  if (shape.kind == ShapeKind::affine && !has_constant_pattern(shape)) return std::nullopt;
  std::array<std::uint64_t, 32> lanes;
  lanes.fill(*shape.constant);
  if (shape.kind == ShapeKind::affine)
    for (std::size_t lane = 0; lane < lanes.size(); ++lane)
      lanes[lane] = truncate(lanes[lane] + static_cast<std::uint64_t>(shape.terms[0].pattern[lane]), bits);
  return lanes;
}

Shape shape_of_lanes(const std::array<std::uint64_t, 32>& lanes, std::uint32_t bits, bool affine) {
  Shape shape = constant_shape(bits, lanes[0]);
  const bool same =
      std::all_of(lanes.begin(), lanes.end(), [&](std::uint64_t lane) { return lane == lanes[0]; });
  if (same) return shape;
  if (!affine) return varying_shape(bits);
  shape.kind = ShapeKind::affine;
  shape.exact = false;
  Term& term = shape.terms.emplace_back();
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    const std::int64_t number = sign_extend(lanes[lane], bits);
    set_range(shape, hull(range_of(shape), {number, number}));
    term.pattern[lane] = sign_extend(lanes[lane] - lanes[0], bits);
  }
  const std::int64_t base = sign_extend(lanes[0], bits);
  const auto holds = [&](std::size_t lane) {
    return wrapping_sum(base, term.pattern[lane]) == sign_extend(lanes[lane], bits) &&
           (term.pattern[lane] >= 0) == (sign_extend(lanes[lane], bits) >= base);
  };
  shape.exact = true;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) shape.exact &= holds(lane);
  return shape;
}

bool same_terms(const Shape& a, const Shape& b) { return is_linear(a) && is_linear(b) && a.terms == b.terms; }

Shape join(const Shape& a, const Shape& b) {
  if (a.kind == ShapeKind::undefined) return b;
  if (b.kind == ShapeKind::undefined) return a;
  Shape result = a;
  const bool offsets = a.kind == ShapeKind::offset32 && b.kind == ShapeKind::offset32 && same_index(a, b);
  if (!offsets && (!same_terms(a, b) || a.kind != b.kind)) {
    result = Shape{};
    result.kind = ShapeKind::varying;
  }
  if (a.constant != b.constant) result.constant.reset();
  result.base_align = std::min(a.base_align, b.base_align);
  result.exact = a.exact && b.exact;
  set_range(result, hull(range_of(a), range_of(b)));
  return result;
}

Shape sum(std::uint32_t bits, const Shape& a, const Shape& b, bool subtract, bool wraps) {
  const bool a_offset = a.kind == ShapeKind::offset32;
  const bool b_offset = b.kind == ShapeKind::offset32;
  if (a_offset && b_offset) return subtract && same_index(a, b) ? uniform_shape(bits) : varying_shape(bits);
  if (a_offset) return b.kind == ShapeKind::uniform ? moved(a, bits) : varying_shape(bits);
  if (b_offset) return a.kind == ShapeKind::uniform && !subtract ? moved(b, bits) : varying_shape(bits);
  if (!is_linear(a) || !is_linear(b)) return varying_shape(bits);
  Shape result = uniform_shape(bits);
  result.kind = ShapeKind::affine;
  result.exact = a.exact && b.exact && !wraps;
  result.terms = a.terms;
  for (Term term : b.terms) {
    if (subtract)
      for (std::int64_t& entry : term.pattern) entry = wrapping_product(entry, -1);
    result.terms.push_back(term);
  }
  return result;
}

Shape scaled(std::uint32_t bits, const Shape& a, std::int64_t factor, bool wraps) {
  Shape result = a;
  result.constant.reset();
  result.base_align = 1;
  set_range(result, full_range(bits));
  if (a.kind == ShapeKind::offset32) {
    if (factor < 1 || factor > kMaxScale || a.scale * factor > kMaxScale) return varying_shape(bits);
    result.scale = a.scale * factor;
    return result;
  }
  for (Term& term : result.terms)
    for (std::int64_t& entry : term.pattern) entry = wrapping_product(entry, factor);
  result.exact = a.exact && !wraps;
  return result;
}

Shape product(std::uint32_t bits, const Operand& a, const Operand& b, bool wraps) {
  if (b.shape.kind != ShapeKind::uniform) {
    if (a.shape.kind != ShapeKind::uniform) return varying_shape(bits);
    return product(bits, b, a, wraps);
  }
  if (b.shape.constant) return scaled(bits, a.shape, sign_extend(*b.shape.constant, bits), wraps);
  if (!has_constant_pattern(a.shape)) return varying_shape(bits);
  Shape result = uniform_shape(bits);
  result.kind = ShapeKind::affine;
  result.exact = a.shape.exact && !wraps;
  result.terms = a.shape.terms;
  result.terms[0].coefficient = b.value;
  return result;
}

Shape masked(ir::Op op, std::uint32_t bits, const Shape& a, std::uint64_t mask) {
  if (!is_pattern_below_alignment(a)) return varying_shape(bits);
  const auto apply = [&](std::uint64_t entry) {
    return op == ir::Op::and_ ? entry & mask : op == ir::Op::or_ ? entry | mask : entry ^ mask;
  };
  Shape result = a;
  result.constant.reset();
  result.base_align = 1;
  result.exact = false;
  for (std::int64_t& entry : result.terms[0].pattern)
    entry = static_cast<std::int64_t>(apply(static_cast<std::uint64_t>(entry)) - apply(0));
  // If the mask keeps only the pattern's bits, the remaining base is known to be 0.
  if (op == ir::Op::and_ && mask < a.base_align) result.constant = 0;
  return result;
}

Shape shifted_right(std::uint32_t bits, const Shape& a, std::uint32_t by) {
  if (!is_pattern_below_alignment(a) || by >= bits) return varying_shape(bits);
  Shape result = a;
  result.constant.reset();
  result.base_align = 1;
  result.exact = false;
  for (std::int64_t& entry : result.terms[0].pattern) entry >>= by;
  return result;
}

bool bits_are_disjoint(const Shape& a, const Shape& b) {
  const auto below = [](const Shape& low, const Shape& high) {
    return low.min >= 0 && static_cast<std::uint64_t>(low.max) < lane_alignment(high);
  };
  return is_linear(a) && is_linear(b) && (below(a, b) || below(b, a));
}

void normalise(Shape& shape, std::uint32_t bits) {
  if (shape.kind != ShapeKind::affine) {
    if (shape.kind != ShapeKind::uniform) shape.exact = false;
    return;
  }
  merge_terms(shape.terms);
  shape.exact &= wrap_patterns(shape.terms, bits);
  std::erase_if(shape.terms, [](const Term& term) { return term.pattern == LanePattern{}; });
  const auto order = [](const Term& term) { return term.coefficient + 1; };  // kNone + 1 is 0: first
  std::sort(shape.terms.begin(), shape.terms.end(),
            [&](const Term& a, const Term& b) { return order(a) < order(b); });
  if (shape.terms.empty()) {
    shape.kind = ShapeKind::uniform;
    shape.exact = true;
  } else if (shape.terms.size() > kMaxTerms) {
    const Range range = range_of(shape);
    shape = varying_shape(bits);
    set_range(shape, range);
  } else {
    shape.exact = is_exact(shape, bits);
  }
}

}  // namespace quern::cpu::analysis
