// SPDX-License-Identifier: Apache-2.0
// The relative positions of the addresses of a warp's 32 lanes. They decide between one scalar access, a few
// vector accesses and a gather. Pure: the input are patterns, the output is a plan.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/analysis/analysis.hpp"

namespace quern::cpu::emit {

/// Lanes [first, first + count). The address advances by step * the access size: 1 is contiguous, 0 is the
/// same address, -1 is backwards.
struct Segment {
  unsigned first = 0;
  unsigned count = 0;
  int step = 0;
  unsigned base = 0;        ///< index into Layout::base_lanes
  std::int64_t offset = 0;  ///< from that base to lane `first`, in bytes
  unsigned same_as = 0;     ///< index of the first segment with the same addresses, which may be this one
};

enum class LayoutKind : std::uint8_t {
  uniform,   ///< one address
  segments,  ///< at most kMaxSegments segments
  strided,   ///< base + lane * stride with stride 2, 3 or 4 accesses
  indexed,   ///< one base; constant or 32-bit distances from it
  gathered,  ///< 32 unrelated addresses
};

inline constexpr unsigned kMaxSegments = 8;

struct Layout {
  LayoutKind kind = LayoutKind::gathered;
  std::vector<Segment> segments;
  /// One lane for each set of values of the terms with runtime coefficients. The base of these lanes is the
  /// pattern's base + the sum of coefficient * offsets[lane] over those terms.
  std::vector<unsigned> base_lanes;
  /// The sum of the terms without coefficient, by lane (segments, strided, indexed affine).
  analysis::LaneOffsets distances{};
  unsigned stride = 1;  ///< strided: in accesses
};

/// The largest distance of an access from a checked address, not counting the instruction's own offset.
struct Reach {
  std::int64_t distance;       ///< for lanes at known distances
  std::uint64_t indexed_span;  ///< for lanes at a 32-bit index times a scale; 0: each lane is checked
};
/// The gaps of a wide window (abi/state.hpp) allow for 2 GiB of distance before and after, and 36 GiB of
/// indices.
extern const Reach kWideReach;
extern const Reach kCompactReach;

/// The memory that a strided or indexed access covers, in windows of one vector each.
struct Windows {
  struct Place {
    unsigned window = 0;
    unsigned slot = 0;
  };
  unsigned slots = 0;                 ///< elements of a window
  std::vector<std::int64_t> offsets;  ///< by window, ascending: bytes from the base to its first element
  std::vector<Place> places;          ///< by lane * count + element
  bool distinct = true;               ///< no two lanes access the same element
};

/// Returns no windows if the base or the distances of the lanes vary, the distances are not multiples of an
/// element, or more than `most` windows are needed.
Windows windows_of(const Layout& layout, unsigned element_bytes, unsigned count, unsigned window_bytes,
                   std::size_t most);

inline constexpr std::uint64_t kAnyIndex = UINT64_MAX;

/// The layout of accesses of `access_bytes` each, at addresses with the pattern `pattern`, whose index, if it
/// has one, is at least -`index_end` and less than `index_end`. kAnyIndex: any number of 32 bits.
Layout layout_of(const analysis::LanePattern& pattern, unsigned access_bytes, const Reach& reach = kWideReach,
                 std::uint64_t index_end = kAnyIndex);

}  // namespace quern::cpu::emit
