// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/lanes.hpp"

#include <algorithm>

#include "cpu/abi/warp_size.hpp"
#include "cpu/analysis/range.hpp"

namespace quern::cpu::analysis {
namespace {

/// The value of tid in one dimension, by linear thread index.
std::vector<std::int64_t> thread_indices(const Specialisation& specialisation, unsigned dimension) {
  std::vector<std::int64_t> result(specialisation.threads());
  const std::uint32_t below = dimension == 0   ? 1
                              : dimension == 1 ? specialisation.block[0]
                                               : specialisation.block[0] * specialisation.block[1];
  for (std::uint32_t thread = 0; thread < result.size(); ++thread)
    result[thread] = thread / below % specialisation.block[dimension];
  return result;
}

/// Differences from lane 0, if they are the same in every warp. Lanes that no warp has are extrapolated.
std::optional<LaneOffsets> common_offsets(const std::vector<std::int64_t>& index) {
  LaneOffsets offsets{};
  std::uint32_t known = static_cast<std::uint32_t>(std::min<std::size_t>(kWarpSize, index.size()));
  for (std::uint32_t lane = 0; lane < known; ++lane) offsets[lane] = index[lane] - index[0];
  for (std::uint32_t thread = 0; thread < index.size(); ++thread) {
    const std::uint32_t lane = thread % kWarpSize;
    if (index[thread] - index[thread - lane] != offsets[lane]) return std::nullopt;
  }
  const std::int64_t step = known > 1 ? offsets[1] : 0;
  for (std::uint32_t lane = known; lane < kWarpSize; ++lane) offsets[lane] = offsets[lane - 1] + step;
  return offsets;
}

}  // namespace

LaneOffsets linear_offsets(std::int64_t step) {
  LaneOffsets offsets{};
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) offsets[lane] = step * lane;
  return offsets;
}

LanePattern thread_index_pattern(const Specialisation& specialisation, unsigned dimension) {
  const std::vector<std::int64_t> index = thread_indices(specialisation, dimension);
  LanePattern pattern;
  pattern.kind = LanePatternKind::varying;
  pattern.min = 0;
  pattern.max = static_cast<std::int64_t>(specialisation.block[dimension]) - 1;
  const std::optional<LaneOffsets> offsets = common_offsets(index);
  if (!offsets) return pattern;
  const bool same =
      std::all_of(offsets->begin(), offsets->end(), [](std::int64_t entry) { return entry == 0; });
  pattern.kind = same ? LanePatternKind::uniform : LanePatternKind::affine;
  pattern.exact = true;
  if (!same) pattern.terms.push_back({ir::kNone, true, *offsets});
  pattern.base_align = kMostAligned;
  bool constant = true;
  for (std::size_t thread = 0; thread < index.size(); thread += kWarpSize) {
    pattern.base_align =
        std::min(pattern.base_align, alignment_of(static_cast<std::uint64_t>(index[thread])));
    constant &= index[thread] == index[0];
  }
  if (constant) pattern.constant = static_cast<std::uint64_t>(index[0]);
  return pattern;
}

LanePattern lane_index_pattern() {
  LanePattern pattern;
  pattern.kind = LanePatternKind::affine;
  pattern.constant = 0;
  pattern.base_align = kMostAligned;
  pattern.terms.push_back({ir::kNone, true, linear_offsets(1)});
  pattern.exact = true;
  pattern.min = 0;
  pattern.max = kWarpSize - 1;
  return pattern;
}

}  // namespace quern::cpu::analysis
