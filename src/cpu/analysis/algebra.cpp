// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/algebra.hpp"

#include <algorithm>

#include "cpu/abi/warp_size.hpp"
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
      for (std::size_t lane = 0; lane < terms[i].offsets.size(); ++lane)
        terms[i].offsets[lane] = wrapping_sum(terms[i].offsets[lane], terms[j].offsets[lane]);
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(j));
    }
}

/// Returns true if no offset changed.
bool wrap_offsets(std::vector<Term>& terms, std::uint32_t bits) {
  bool same = true;
  for (Term& term : terms)
    for (std::int64_t& entry : term.offsets) {
      const std::int64_t wrapped = sign_extend(static_cast<std::uint64_t>(entry), bits);
      same &= wrapped == entry;
      entry = wrapped;
    }
  return same;
}

bool is_exact(const LanePattern& pattern, std::uint32_t bits) {
  if (pattern.exact || !has_constant_offsets(pattern)) return pattern.exact;
  // correct, since 2^(bits-1) is a multiple of the alignment too
  if (are_offsets_below_alignment(pattern)) return true;
  const auto [least, most] =
      std::minmax_element(pattern.terms[0].offsets.begin(), pattern.terms[0].offsets.end());
  const Range full = full_range(bits);
  return pattern.min >= full.min - std::min<std::int64_t>(*least, 0) &&
         pattern.max <= full.max - std::max<std::int64_t>(*most, 0);
}

/// Adds a uniform value to an offset32, or subtracts it.
LanePattern moved(const LanePattern& offset, std::uint32_t bits) {
  LanePattern result = offset;
  result.constant.reset();
  set_range(result, full_range(bits));
  return result;
}

bool same_index(const LanePattern& a, const LanePattern& b) {
  return a.index == b.index && a.index_signed == b.index_signed && a.scale == b.scale;
}

/// A power of two that divides the value in every lane.
std::uint64_t lane_alignment(const LanePattern& pattern) {
  if (pattern.kind == LanePatternKind::uniform) return pattern.base_align;
  if (!has_constant_offsets(pattern)) return 1;
  std::uint64_t result = pattern.base_align;
  for (const std::int64_t entry : pattern.terms[0].offsets)
    result = std::min(result, alignment_of(static_cast<std::uint64_t>(entry)));
  return result;
}

}  // namespace

Range range_of(const LanePattern& pattern) { return {pattern.min, pattern.max}; }

void set_range(LanePattern& pattern, const Range& range) {
  pattern.min = range.min;
  pattern.max = range.max;
}

LanePattern varying_pattern(std::uint32_t bits) {
  LanePattern pattern;
  pattern.kind = LanePatternKind::varying;
  set_range(pattern, full_range(bits));
  return pattern;
}

LanePattern uniform_pattern(std::uint32_t bits) {
  LanePattern pattern = varying_pattern(bits);
  pattern.kind = LanePatternKind::uniform;
  pattern.exact = true;
  return pattern;
}

LanePattern constant_pattern(std::uint32_t bits, std::uint64_t value) {
  LanePattern pattern = uniform_pattern(bits);
  pattern.constant = truncate(value, bits);
  pattern.base_align = alignment_of(*pattern.constant);
  const std::int64_t number = sign_extend(value, bits);
  set_range(pattern, {number, number});
  return pattern;
}

bool is_linear(const LanePattern& pattern) {
  return pattern.kind == LanePatternKind::uniform || pattern.kind == LanePatternKind::affine;
}

bool has_constant_offsets(const LanePattern& pattern) {
  return pattern.kind == LanePatternKind::affine && pattern.terms.size() == 1 &&
         pattern.terms[0].coefficient == ir::kNone;
}

bool are_offsets_below_alignment(const LanePattern& pattern) {
  if (!has_constant_offsets(pattern)) return false;
  const auto below = [&](std::int64_t entry) {
    return entry >= 0 && static_cast<std::uint64_t>(entry) < pattern.base_align;
  };
  return std::all_of(pattern.terms[0].offsets.begin(), pattern.terms[0].offsets.end(), below);
}

bool compares_like_base(ir::Icmp how, const LanePattern& index, const LanePattern& bound) {
  if (index.kind != LanePatternKind::affine || bound.kind != LanePatternKind::uniform ||
      !are_offsets_below_alignment(index))
    return false;
  // The values of all lanes have the same bits above the offsets. Below them, the bits of the base are 0.
  const auto reach = static_cast<std::uint64_t>(std::ranges::max(index.terms[0].offsets));
  const bool equality = ir::is_equality(how);
  const bool inclusive =
      how == ir::Icmp::sle || how == ir::Icmp::sgt || how == ir::Icmp::ule || how == ir::Icmp::ugt;
  if (!bound.constant) return !equality && !inclusive && bound.base_align >= index.base_align;
  const std::uint64_t least = (*bound.constant + (inclusive ? 1 : 0)) & (index.base_align - 1);
  return least > reach || (least == 0 && !equality);
}

std::optional<std::array<std::uint64_t, kWarpSize>> known_lanes(const LanePattern& pattern,
                                                                std::uint32_t bits) {
  if (!is_linear(pattern) || !pattern.constant) return std::nullopt;
  if (pattern.kind == LanePatternKind::affine && !has_constant_offsets(pattern)) return std::nullopt;
  std::array<std::uint64_t, kWarpSize> lanes;
  lanes.fill(*pattern.constant);
  if (pattern.kind == LanePatternKind::affine)
    for (std::size_t lane = 0; lane < lanes.size(); ++lane)
      lanes[lane] = truncate(lanes[lane] + static_cast<std::uint64_t>(pattern.terms[0].offsets[lane]), bits);
  return lanes;
}

LanePattern pattern_of_lanes(const std::array<std::uint64_t, kWarpSize>& lanes, std::uint32_t bits,
                             bool affine) {
  LanePattern pattern = constant_pattern(bits, lanes[0]);
  const bool same =
      std::all_of(lanes.begin(), lanes.end(), [&](std::uint64_t lane) { return lane == lanes[0]; });
  if (same) return pattern;
  if (!affine) return varying_pattern(bits);
  pattern.kind = LanePatternKind::affine;
  pattern.exact = false;
  Term& term = pattern.terms.emplace_back();
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    const std::int64_t number = sign_extend(lanes[lane], bits);
    set_range(pattern, hull(range_of(pattern), {number, number}));
    term.offsets[lane] = sign_extend(lanes[lane] - lanes[0], bits);
  }
  const std::int64_t base = sign_extend(lanes[0], bits);
  const auto holds = [&](std::size_t lane) {
    return wrapping_sum(base, term.offsets[lane]) == sign_extend(lanes[lane], bits) &&
           (term.offsets[lane] >= 0) == (sign_extend(lanes[lane], bits) >= base);
  };
  pattern.exact = true;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) pattern.exact &= holds(lane);
  return pattern;
}

bool has_small_offsets(const Term& term) {
  constexpr std::int64_t kMost = std::int64_t{1} << 28;
  return std::ranges::all_of(term.offsets,
                             [](std::int64_t offset) { return offset >= -kMost && offset <= kMost; });
}

std::optional<Distances> distances_of(const LanePattern& pattern) {
  if (!has_constant_offsets(pattern)) return std::nullopt;
  const auto [least, most] =
      std::minmax_element(pattern.terms[0].offsets.begin(), pattern.terms[0].offsets.end());
  if (*least < INT32_MIN || *most > INT32_MAX) return std::nullopt;
  return Distances{*least, *most};
}

std::optional<std::int64_t> dividend_span(const LanePattern& pattern) {
  const std::optional<Distances> distances = distances_of(pattern);
  if (!distances || distances->least != 0) return std::nullopt;
  return distances->most;
}

std::vector<ir::Value> numbers_of_sign(const ir::Function& function, const ir::Inst& inst) {
  const ir::Inst& number = function[inst.args[0]];
  return number.op == ir::Op::xor_ ? number.args : std::vector{inst.args[0]};
}

bool same_terms(const LanePattern& a, const LanePattern& b) {
  return is_linear(a) && is_linear(b) && a.terms == b.terms;
}

LanePattern join(const LanePattern& a, const LanePattern& b) {
  if (a.kind == LanePatternKind::undefined) return b;
  if (b.kind == LanePatternKind::undefined) return a;
  LanePattern result = a;
  const bool offsets =
      a.kind == LanePatternKind::offset32 && b.kind == LanePatternKind::offset32 && same_index(a, b);
  if (!offsets && (!same_terms(a, b) || a.kind != b.kind)) {
    result = LanePattern{};
    result.kind = LanePatternKind::varying;
  }
  if (a.constant != b.constant) result.constant.reset();
  result.base_align = std::min(a.base_align, b.base_align);
  result.exact = a.exact && b.exact;
  set_range(result, hull(range_of(a), range_of(b)));
  return result;
}

LanePattern sum(std::uint32_t bits, const LanePattern& a, const LanePattern& b, bool subtract, bool wraps) {
  const bool a_offset = a.kind == LanePatternKind::offset32;
  const bool b_offset = b.kind == LanePatternKind::offset32;
  if (a_offset && b_offset)
    return subtract && same_index(a, b) ? uniform_pattern(bits) : varying_pattern(bits);
  if (a_offset) return b.kind == LanePatternKind::uniform ? moved(a, bits) : varying_pattern(bits);
  if (b_offset)
    return a.kind == LanePatternKind::uniform && !subtract ? moved(b, bits) : varying_pattern(bits);
  if (!is_linear(a) || !is_linear(b)) return varying_pattern(bits);
  LanePattern result = uniform_pattern(bits);
  result.kind = LanePatternKind::affine;
  result.exact = a.exact && b.exact && !wraps;
  result.terms = a.terms;
  for (Term term : b.terms) {
    if (subtract)
      for (std::int64_t& entry : term.offsets) entry = wrapping_product(entry, -1);
    result.terms.push_back(term);
  }
  return result;
}

LanePattern scaled(std::uint32_t bits, const LanePattern& a, std::int64_t factor, bool wraps) {
  LanePattern result = a;
  result.constant.reset();
  result.base_align = 1;
  set_range(result, full_range(bits));
  if (a.kind == LanePatternKind::offset32) {
    if (factor < 1 || factor > kMaxScale || a.scale * factor > kMaxScale) return varying_pattern(bits);
    result.scale = a.scale * factor;
    return result;
  }
  for (Term& term : result.terms)
    for (std::int64_t& entry : term.offsets) entry = wrapping_product(entry, factor);
  result.exact = a.exact && !wraps;
  return result;
}

LanePattern product(std::uint32_t bits, const Operand& a, const Operand& b, bool wraps) {
  if (b.pattern.kind != LanePatternKind::uniform) {
    if (a.pattern.kind != LanePatternKind::uniform) return varying_pattern(bits);
    return product(bits, b, a, wraps);
  }
  if (b.pattern.constant) return scaled(bits, a.pattern, sign_extend(*b.pattern.constant, bits), wraps);
  if (!has_constant_offsets(a.pattern)) return varying_pattern(bits);
  LanePattern result = uniform_pattern(bits);
  result.kind = LanePatternKind::affine;
  result.exact = a.pattern.exact && !wraps;
  result.terms = a.pattern.terms;
  result.terms[0].coefficient = b.value;
  return result;
}

LanePattern masked(ir::Op op, std::uint32_t bits, const LanePattern& a, std::uint64_t mask) {
  if (!are_offsets_below_alignment(a)) return varying_pattern(bits);
  const auto apply = [&](std::uint64_t entry) {
    return op == ir::Op::and_ ? entry & mask : op == ir::Op::or_ ? entry | mask : entry ^ mask;
  };
  LanePattern result = a;
  result.constant.reset();
  result.base_align = 1;
  result.exact = false;
  for (std::int64_t& entry : result.terms[0].offsets)
    entry = static_cast<std::int64_t>(apply(static_cast<std::uint64_t>(entry)) - apply(0));
  // If the mask keeps only bits of the offsets, the remaining base is 0.
  if (op == ir::Op::and_ && mask < a.base_align) result.constant = 0;
  return result;
}

LanePattern shifted_right(std::uint32_t bits, const LanePattern& a, std::uint32_t by) {
  if (!are_offsets_below_alignment(a) || by >= bits) return varying_pattern(bits);
  LanePattern result = a;
  result.constant.reset();
  result.base_align = 1;
  result.exact = false;
  for (std::int64_t& entry : result.terms[0].offsets) entry >>= by;
  return result;
}

bool bits_are_disjoint(const LanePattern& a, const LanePattern& b) {
  const auto below = [](const LanePattern& low, const LanePattern& high) {
    return low.min >= 0 && static_cast<std::uint64_t>(low.max) < lane_alignment(high);
  };
  return is_linear(a) && is_linear(b) && (below(a, b) || below(b, a));
}

void normalise(LanePattern& pattern, std::uint32_t bits) {
  if (pattern.kind != LanePatternKind::affine) {
    if (pattern.kind != LanePatternKind::uniform) pattern.exact = false;
    return;
  }
  merge_terms(pattern.terms);
  pattern.exact &= wrap_offsets(pattern.terms, bits);
  std::erase_if(pattern.terms, [](const Term& term) { return term.offsets == LaneOffsets{}; });
  // kNone + 1 is 0, so the term without coefficient comes first
  const auto order = [](const Term& term) { return term.coefficient + 1; };
  std::sort(pattern.terms.begin(), pattern.terms.end(),
            [&](const Term& a, const Term& b) { return order(a) < order(b); });
  if (pattern.terms.empty()) {
    pattern.kind = LanePatternKind::uniform;
    pattern.exact = true;
  } else if (pattern.terms.size() > kMaxTerms) {
    const Range range = range_of(pattern);
    pattern = varying_pattern(bits);
    set_range(pattern, range);
  } else {
    pattern.exact = is_exact(pattern, bits);
  }
}

}  // namespace quern::cpu::analysis
