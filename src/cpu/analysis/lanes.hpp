// SPDX-License-Identifier: Apache-2.0
// The value of tid in the lanes of a warp, for one block shape. Threads fill warps in the order x, y, z (PTX
// ISA, "Special Registers: %tid", "%laneid").
#pragma once

#include "cpu/analysis/analysis.hpp"

namespace quern::cpu::analysis {

/// The pattern of an i32 tid.x, .y or .z (dimension 0, 1, 2): uniform, affine with constant offsets, or
/// varying.
LanePattern thread_index_pattern(const Specialisation& specialisation, unsigned dimension);

/// The pattern of laneid: affine with base 0.
LanePattern lane_index_pattern();

/// Offsets of a term without a coefficient: lane * step.
LaneOffsets linear_offsets(std::int64_t step);

}  // namespace quern::cpu::analysis
