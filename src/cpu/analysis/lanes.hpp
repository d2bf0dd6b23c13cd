// SPDX-License-Identifier: Apache-2.0
// The value of tid in the lanes of a warp, for one block shape: threads fill warps x first, then y, then z
// (PTX ISA, "Special Registers: %tid", "%laneid").
#pragma once

#include "cpu/analysis/analysis.hpp"

namespace quern::cpu::analysis {

/// Shape of an i32 tid.x, .y or .z (dimension 0, 1, 2): uniform, affine with a constant pattern, or varying.
Shape thread_index_shape(const Specialisation& specialisation, unsigned dimension);

/// Shape of laneid: 0 plus the lane.
Shape lane_index_shape();

/// The same without a coefficient, as the result's only term.
LanePattern linear_pattern(std::int64_t step);

}  // namespace quern::cpu::analysis
