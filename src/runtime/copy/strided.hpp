// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "quern/layout.hpp"

namespace quern::runtime {

/// A plan for a copy between two strided arrays of one shape: a loop nest, axes merged where both sides allow
/// it, that moves pieces of `piece_bytes`.
struct CopyPlan {
  struct Axis {
    std::int64_t extent = 1;
    std::int64_t to = 0;    ///< stride, bytes
    std::int64_t from = 0;  ///< stride, bytes
  };
  std::vector<Axis> axes;  ///< the outermost first
  std::size_t piece_bytes = 0;

  /// Pieces in all.
  std::uint64_t count() const noexcept;
};

/// `to` and `from` have the same shape and item size. No elements: a plan of no pieces.
CopyPlan plan_copy(const Layout& to, const Layout& from);

/// Runs the plan over host memory; the arrays do not overlap.
void copy_on_host(std::byte* to, const std::byte* from, const CopyPlan& plan);

}  // namespace quern::runtime
