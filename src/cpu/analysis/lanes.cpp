// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/lanes.hpp"

#include <algorithm>

#include "cpu/analysis/range.hpp"

namespace quern::cpu::analysis {
namespace {

constexpr std::uint32_t kLanes = 32;

/// tid in one dimension by linear thread index.
std::vector<std::int64_t> thread_indices(const Specialisation& specialisation, unsigned dimension) {
  std::vector<std::int64_t> result(specialisation.threads());
  const std::uint32_t below = dimension == 0   ? 1
                              : dimension == 1 ? specialisation.block[0]
                                               : specialisation.block[0] * specialisation.block[1];
  for (std::uint32_t thread = 0; thread < result.size(); ++thread)
    result[thread] = thread / below % specialisation.block[dimension];
  return result;
}

/// Differences to lane 0, if they are the same in every warp; lanes that no warp has are extrapolated.
std::optional<LanePattern> common_pattern(const std::vector<std::int64_t>& index) {
  LanePattern pattern{};
  std::uint32_t known = static_cast<std::uint32_t>(std::min<std::size_t>(kLanes, index.size()));
  for (std::uint32_t lane = 0; lane < known; ++lane) pattern[lane] = index[lane] - index[0];
  for (std::uint32_t thread = 0; thread < index.size(); ++thread) {
    const std::uint32_t lane = thread % kLanes;
    if (index[thread] - index[thread - lane] != pattern[lane]) return std::nullopt;
  }
  const std::int64_t step = known > 1 ? pattern[1] : 0;
  for (std::uint32_t lane = known; lane < kLanes; ++lane) pattern[lane] = pattern[lane - 1] + step;
  return pattern;
}

}  // namespace

LanePattern linear_pattern(std::int64_t step) {
  LanePattern pattern{};
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) pattern[lane] = step * lane;
  return pattern;
}

Shape thread_index_shape(const Specialisation& specialisation, unsigned dimension) {
  const std::vector<std::int64_t> index = thread_indices(specialisation, dimension);
  Shape shape;
  shape.kind = ShapeKind::varying;
  shape.min = 0;
  shape.max = static_cast<std::int64_t>(specialisation.block[dimension]) - 1;
  const std::optional<LanePattern> pattern = common_pattern(index);
  if (!pattern) return shape;
  const bool same =
      std::all_of(pattern->begin(), pattern->end(), [](std::int64_t entry) { return entry == 0; });
  shape.kind = same ? ShapeKind::uniform : ShapeKind::affine;
  shape.exact = true;
  if (!same) shape.terms.push_back({ir::kNone, true, *pattern});
  shape.base_align = kMostAligned;
  bool constant = true;
  for (std::size_t thread = 0; thread < index.size(); thread += kLanes) {
    shape.base_align = std::min(shape.base_align, alignment_of(static_cast<std::uint64_t>(index[thread])));
    constant &= index[thread] == index[0];
  }
  if (constant) shape.constant = static_cast<std::uint64_t>(index[0]);
  return shape;
}

Shape lane_index_shape() {
  Shape shape;
  shape.kind = ShapeKind::affine;
  shape.constant = 0;
  shape.base_align = kMostAligned;
  shape.terms.push_back({ir::kNone, true, linear_pattern(1)});
  shape.exact = true;
  shape.min = 0;
  shape.max = kLanes - 1;
  return shape;
}

}  // namespace quern::cpu::analysis
