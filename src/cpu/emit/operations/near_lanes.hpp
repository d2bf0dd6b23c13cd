// SPDX-License-Identifier: Apache-2.0
// Gathers whose lanes are near each other, in any order: pixels of an image that is resampled, samples of a
// curve. Two registers hold the memory from a first lane on, and a permutation takes the lanes' elements out
// of them.
#pragma once

#include <optional>
#include <vector>

#include "cpu/emit/operations/address.hpp"

namespace quern::cpu::emit {

/// The words of 32 lanes near each other, where all lanes run.
struct NearLanes {
  llvm::Value* near = nullptr;        ///< i1: the lanes are near each other
  std::vector<llvm::Value*> windows;  ///< ptr: where the memory of each group of lanes begins
  std::vector<llvm::Value*> places;   ///< by group: those of the lanes' words in the window
  unsigned word_bytes = 0;
};

/// Emits the test for words of `word_bytes` each, if it is likely to hold and the processor has the
/// permutation.
std::optional<NearLanes> find_near_lanes(const Access& access, const LanePointers& pointers,
                                         unsigned word_bytes);

/// Loads the words, <32 x i32> or <32 x i64>.
llvm::Value* load_near_lanes(const Access& access, const NearLanes& lanes);

}  // namespace quern::cpu::emit
