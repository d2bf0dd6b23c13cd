// SPDX-License-Identifier: Apache-2.0
// Vector accesses of one instruction, element by element: shared by loads, stores and their layouts.
#pragma once

#include <span>
#include <vector>

#include "cpu/emit/operations/address.hpp"

namespace quern::cpu::emit {

/// 32 elements from unrelated addresses; zero in lanes that do not run.
llvm::Value* gather(const Access& access, const LanePointers& pointers, std::int64_t displacement);
/// 32 elements to unrelated addresses; of lanes at one address the highest wins.
void scatter(const Access& access, const LanePointers& pointers, std::int64_t displacement,
             llvm::Value* values);

/// `count` vectors of n lanes out of one of n * count elements (lane's elements adjacent), and back.
std::vector<llvm::Value*> deinterleave(Context& context, llvm::Value* wide, unsigned count);
llvm::Value* interleave(Context& context, std::span<llvm::Value* const> elements);
/// Each lane of a mask `count` times.
llvm::Value* repeat_lanes(Context& context, llvm::Value* mask, unsigned count);
llvm::Value* reverse(Context& context, llvm::Value* vector);

}  // namespace quern::cpu::emit
