// SPDX-License-Identifier: Apache-2.0
// Indices that stop at the edges of the data, go around them or are reflected:
//
//   min(max(x + dx, 0), width - 1)    x == 0 ? 0 : x - 1    x < r ? r - x : x - r    x + 1 < n ? x + 1 : 0
//
// Few warps are at an edge. Of the others it is assumed (Assumption::optimistic) that each lane's index is
// its own, and that all lanes compare with the edge alike.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cpu/analysis/algebra.hpp"

namespace quern::cpu::analysis {

/// Says what is assumed of a comparison with an edge.
enum class AtEdge : std::uint8_t {
  unknown,  ///< nothing
  alike,    ///< all lanes have the same result
  no,       ///< it is false in all lanes
  yes,      ///< it is true in all lanes
};

struct Edges {
  /// By ir::Value: an address is computed from it by additions, products, shifts, conversions, minima,
  /// maxima, absolute values and choices.
  std::vector<bool> indices;
  /// By ir::Value: for conditions of such choices, and for signs that mask what is added to an index, the
  /// result for which the index is the thread's own.
  std::vector<AtEdge> conditions;
};
Edges find_edges(const ir::Function& function);

/// A minimum or maximum of an affine index and a uniform bound, or the absolute value of such an index.
struct Clamp {
  ir::Value index = ir::kNone;
  ir::Value bound = ir::kNone;  ///< kNone: 0, of an absolute value
  bool minimum = false;         ///< the bound is the largest index
  bool is_signed = true;
  Distances lanes;  ///< of the index
};
std::optional<Clamp> clamp_of(const ir::Function& function, const std::vector<LanePattern>& patterns,
                              const ir::Inst& inst);

/// A comparison of an affine index with a uniform bound, written with the index first; or a shift to its
/// sign.
struct EdgeComparison {
  ir::Value index = ir::kNone;
  ir::Value bound = ir::kNone;  ///< kNone: 0, of a sign
  ir::Icmp how = ir::Icmp::eq;
  Distances lanes;  ///< of the index
};
std::optional<EdgeComparison> edge_comparison_of(const ir::Function& function,
                                                 const std::vector<LanePattern>& patterns,
                                                 const ir::Inst& inst);

/// True if the bound is likely that of an array, and the index that of an element: not one of a thread in its
/// block, of which a warp in each block may well be at the edge.
bool is_likely_edge(const Clamp& clamp, const std::vector<LanePattern>& patterns);
bool is_likely_edge(const EdgeComparison& comparison, const std::vector<LanePattern>& patterns);

/// `index` without the clamps and the sign extensions before it: the same numbers where the clamps are
/// assumed.
ir::Value unclamped(const ir::Function& function, const std::vector<LanePattern>& patterns, ir::Value index);

}  // namespace quern::cpu::analysis
