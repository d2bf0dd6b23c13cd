// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/layout.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "cpu/abi/state.hpp"

namespace quern::cpu::emit {
namespace {

using analysis::LaneOffsets;
using analysis::LanePattern;
using analysis::LanePatternKind;

/// True if two lanes have the same runtime base.
bool same_base(const LanePattern& pattern, unsigned a, unsigned b) {
  return std::all_of(pattern.terms.begin(), pattern.terms.end(), [&](const analysis::Term& term) {
    return term.coefficient == ir::kNone || term.offsets[a] == term.offsets[b];
  });
}

LaneOffsets constant_distances(const LanePattern& pattern) {
  LaneOffsets sum{};
  for (const analysis::Term& term : pattern.terms)
    if (term.coefficient == ir::kNone)
      for (unsigned lane = 0; lane < kWarpSize; ++lane)
        sum[lane] = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum[lane]) +
                                              static_cast<std::uint64_t>(term.offsets[lane]));
  return sum;
}

unsigned base_of(const LanePattern& pattern, std::vector<unsigned>& base_lanes, unsigned lane) {
  for (unsigned at = 0; at < base_lanes.size(); ++at)
    if (same_base(pattern, base_lanes[at], lane)) return at;
  base_lanes.push_back(lane);
  return static_cast<unsigned>(base_lanes.size() - 1);
}

/// Returns -1, 0 or 1 if `distance` is as many accesses.
std::optional<int> step_of(std::int64_t distance, std::int64_t access_bytes) {
  if (distance == 0) return 0;
  if (distance == access_bytes) return 1;
  if (distance == -access_bytes) return -1;
  return std::nullopt;
}

Segment longest_segment(const LanePattern& pattern, const LaneOffsets& distances, std::int64_t access_bytes,
                        unsigned first) {
  Segment segment{.first = first, .count = 1, .offset = distances[first]};
  std::optional<int> step;
  for (unsigned lane = first + 1; lane < kWarpSize && same_base(pattern, first, lane); ++lane) {
    const std::optional<int> next = step_of(distances[lane] - distances[lane - 1], access_bytes);
    if (!next || (step && *next != *step)) break;
    step = next;
    segment.count = lane - first + 1;
  }
  segment.step = step.value_or(0);
  return segment;
}

bool same_addresses(const Segment& a, const Segment& b) {
  return a.count == b.count && a.step == b.step && a.base == b.base && a.offset == b.offset;
}

void add_segments(const LanePattern& pattern, std::int64_t access_bytes, Layout& layout) {
  for (unsigned lane = 0; lane < kWarpSize;) {
    Segment segment = longest_segment(pattern, layout.distances, access_bytes, lane);
    segment.base = base_of(pattern, layout.base_lanes, lane);
    const auto same = std::find_if(layout.segments.begin(), layout.segments.end(),
                                   [&](const Segment& other) { return same_addresses(other, segment); });
    segment.same_as = static_cast<unsigned>(same - layout.segments.begin());
    layout.segments.push_back(segment);
    lane += segment.count;
  }
}

/// Returns 2, 3 or 4 if the distance between neighbouring lanes is always as many accesses.
std::optional<unsigned> stride_of(const LaneOffsets& distances, std::int64_t access_bytes) {
  const std::int64_t step = distances[1] - distances[0];
  for (unsigned lane = 1; lane < kWarpSize; ++lane)
    if (distances[lane] - distances[lane - 1] != step) return std::nullopt;
  if (step % access_bytes != 0 || step / access_bytes < 2 || step / access_bytes > 4) return std::nullopt;
  return static_cast<unsigned>(step / access_bytes);
}

Layout affine_layout(const LanePattern& pattern, unsigned access_bytes, std::int64_t most) {
  Layout layout{.distances = constant_distances(pattern)};
  for (const std::int64_t distance : layout.distances)
    if (distance > most || distance < -most) return Layout{};
  add_segments(pattern, access_bytes, layout);
  if (layout.segments.size() <= kMaxSegments) {
    layout.kind = LayoutKind::segments;
  } else if (layout.base_lanes.size() == 1) {
    const auto stride = stride_of(layout.distances, access_bytes);
    layout.kind = stride ? LayoutKind::strided : LayoutKind::indexed;
    layout.stride = stride.value_or(1);
  }
  return layout;
}

/// True if a checked base plus any index stays within a gap.
bool fits_gap(const LanePattern& pattern, std::uint64_t span, std::uint64_t index_end) {
  const auto scale = static_cast<std::uint64_t>(pattern.scale < 0 ? -pattern.scale : pattern.scale);
  const std::uint64_t end = std::min(index_end, std::uint64_t{1} << (pattern.index_signed ? 31 : 32));
  return scale != 0 && scale <= span / std::max<std::uint64_t>(end, 1);
}

}  // namespace

const Reach kWideReach{.distance = INT32_MAX, .indexed_span = engine::kGapBytes - (std::uint64_t{4} << 30)};
const Reach kCompactReach{.distance = engine::kCompactReachBytes / 2, .indexed_span = 0};

Layout layout_of(const LanePattern& pattern, unsigned access_bytes, const Reach& reach,
                 std::uint64_t index_end) {
  switch (pattern.kind) {
    case LanePatternKind::uniform:
      return Layout{.kind = LayoutKind::uniform};
    case LanePatternKind::affine:
      return affine_layout(pattern, access_bytes, reach.distance);
    case LanePatternKind::offset32:
      return Layout{.kind = fits_gap(pattern, reach.indexed_span, index_end) ? LayoutKind::indexed
                                                                             : LayoutKind::gathered};
    default:
      return Layout{};
  }
}

Windows windows_of(const Layout& layout, unsigned element_bytes, unsigned count, unsigned window_bytes,
                   std::size_t most) {
  const bool known = layout.kind == LayoutKind::strided || layout.kind == LayoutKind::indexed;
  if (!known || layout.base_lanes.size() != 1) return {};
  const std::int64_t begin = std::ranges::min(layout.distances);
  std::vector<std::int64_t> elements;
  for (const std::int64_t distance : layout.distances)
    for (unsigned element = 0; element < count; ++element) {
      const std::int64_t at = distance - begin + std::int64_t{element} * element_bytes;
      if (at % element_bytes != 0) return {};
      elements.push_back(at / element_bytes);
    }
  Windows made{.slots = window_bytes / element_bytes};
  std::set<std::int64_t> windows;
  for (const std::int64_t element : elements) windows.insert(element / made.slots);
  if (windows.size() > most) return {};
  for (const std::int64_t window : windows) made.offsets.push_back(begin + window * window_bytes);
  for (const std::int64_t element : elements)
    made.places.push_back(
        {static_cast<unsigned>(std::distance(windows.begin(), windows.find(element / made.slots))),
         static_cast<unsigned>(element % made.slots)});
  made.distinct = std::set(elements.begin(), elements.end()).size() == elements.size();
  return made;
}

}  // namespace quern::cpu::emit
