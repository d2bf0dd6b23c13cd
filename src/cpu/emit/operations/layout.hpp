// SPDX-License-Identifier: Apache-2.0
// The relative positions of the addresses of a warp's 32 lanes; they decide between one scalar access, a few
// vector accesses and a gather. Pure: patterns in, a plan out.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/analysis/analysis.hpp"

namespace quern::cpu::emit {

/// Lanes [first, first + count), whose addresses advance by step * the access size: 1 contiguous, 0 all the
/// same, -1 backwards.
struct Segment {
  unsigned first = 0;
  unsigned count = 0;
  int step = 0;
  unsigned base = 0;        ///< index into Layout::base_lanes
  std::int64_t offset = 0;  ///< of lane `first` from that base, in bytes
  unsigned same_as = 0;     ///< index of the first segment with the same addresses (its own if none)
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
  /// One lane for each set of values that the terms with runtime coefficients take: base of these lanes = the
  /// pattern's base + sum of coefficient * offsets[lane] over those terms.
  std::vector<unsigned> base_lanes;
  /// The sum of the terms without coefficient, by lane (segments, strided, indexed affine).
  analysis::LaneOffsets distances{};
  unsigned stride = 1;  ///< strided: in accesses
};

/// The largest distance of an access from a checked address, in addition to the instruction's own offset.
struct Reach {
  std::int64_t distance;       ///< of lanes whose distances are known
  std::uint64_t indexed_span;  ///< of lanes at a 32-bit index times a scale; 0: each lane is checked
};
/// The gaps of a wide window (abi/state.hpp) take 2 GiB of each, and 36 GiB of indices.
extern const Reach kWideReach;
extern const Reach kCompactReach;

/// The layout of accesses of `access_bytes` at addresses of `pattern`.
Layout layout_of(const analysis::LanePattern& pattern, unsigned access_bytes,
                 const Reach& reach = kWideReach);

}  // namespace quern::cpu::emit
