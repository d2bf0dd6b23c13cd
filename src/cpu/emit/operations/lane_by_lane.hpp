// SPDX-License-Identifier: Apache-2.0
// Accesses to several elements in each lane: all elements of a lane at once, lane by lane, in place of a
// gather or scatter for each element.
#pragma once

#include <span>
#include <vector>

#include "cpu/emit/operations/address.hpp"

namespace quern::cpu::emit {

/// True if the elements of a lane are moved at once and sorted in registers. Processors gather or scatter an
/// element of each of 8 lanes in the time of about 8 such loads or stores.
bool moves_lane_by_lane(const Access& access);

/// Returns one <32 x T> for each element. Lanes that do not run get zero. Requires
/// moves_lane_by_lane(access).
std::vector<llvm::Value*> load_lane_by_lane(const Access& access, const LanePointers& pointers);

/// Stores one <32 x T> for each element, in their memory form. If lanes have the same address, the highest
/// lane's elements are stored. Requires moves_lane_by_lane(access).
void store_lane_by_lane(const Access& access, const LanePointers& pointers,
                        std::span<llvm::Value* const> elements);

}  // namespace quern::cpu::emit
