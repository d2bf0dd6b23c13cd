// SPDX-License-Identifier: Apache-2.0
// Small pieces of vector code that several families of operations use.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "cpu/abi/warp_size.hpp"
#include "cpu/emit/operations/context.hpp"

namespace quern::cpu::emit {

inline constexpr std::uint32_t kAllLanes = 0xffffffffu;

/// The constants 0, 1, ... 31 as integers of `bits` bits.
llvm::Constant* lane_numbers(Context& context, unsigned bits);
/// For each lane, an i32 with the bits of the lanes before it.
llvm::Constant* lanes_before(Context& context);
/// A constant of 32 integers.
llvm::Constant* lane_constant(Context& context, unsigned bits,
                              const std::array<std::int64_t, kWarpSize>& values);
/// A constant mask, bit l = lane l.
llvm::Constant* lane_mask(Context& context, std::uint32_t bits);

/// The lowest and the highest running lane, as i32.
llvm::Value* first_lane(Context& context);
llvm::Value* last_lane(Context& context);
llvm::Value* extract_lane(Context& context, llvm::Value* vector, llvm::Value* lane);
llvm::Value* splat(Context& context, llvm::Value* scalar);
/// <32 x i1> -> i32, bit l = lane l.
llvm::Value* mask_to_bits(Context& context, llvm::Value* mask);

/// Lanes [first, first + count) as a separate vector.
llvm::Value* slice(Context& context, llvm::Value* vector, unsigned first, unsigned count);
/// Concatenates the vectors; their lengths are equal, and their number is a power of two.
llvm::Value* concat(Context& context, std::span<llvm::Value* const> parts);
/// Takes the lanes of `mask` (bits) from `then`, the others from `otherwise`; both have 32 lanes.
llvm::Value* blend(Context& context, std::uint32_t mask, llvm::Value* then, llvm::Value* otherwise);

/// An uninitialised local variable of the function. Each call creates a new one, since two of equal type may
/// be live at the same time.
llvm::Value* scratch(Context& context, llvm::Type* type);
/// A scratch variable that holds `value`.
llvm::Value* spill(Context& context, llvm::Value* value);
/// Must be called after the last use of a scratch variable.
void release(Context& context, std::initializer_list<llvm::Value*> variables);

/// The ends of the two parts of an operation with two forms, for phis behind it.
struct Parts {
  llvm::BasicBlock* first;
  llvm::BasicBlock* second;
};
/// Emits `first`, which runs if `condition` holds, and `second`, and continues behind both.
Parts choose(Context& context, llvm::Value* condition, llvm::function_ref<void()> first,
             llvm::function_ref<void()> second);
/// The same for parts that compute values, of which it returns those of the part that ran.
std::vector<llvm::Value*> choose_values(Context& context, llvm::Value* condition,
                                        llvm::function_ref<std::vector<llvm::Value*>()> first,
                                        llvm::function_ref<std::vector<llvm::Value*>()> second);

/// Define `value` in the form that its pattern requires: a scalar is splatted; of a vector, the first running
/// lane is taken.
void define_scalar(Context& context, ir::Value value, llvm::Value* scalar);
void define_vector(Context& context, ir::Value value, llvm::Value* vector);

/// The memory that a helper accesses in addition to its pointer arguments.
enum class Touches : std::uint8_t { arguments_only, reads_memory, anything };
/// Calls helper `name` with `args`, which determine the function type.
llvm::CallInst* call_helper(Context& context, std::string_view name, llvm::Type* result,
                            llvm::ArrayRef<llvm::Value*> args, Touches touches);

/// x * y + z rounded once, on any instruction set; x is float or double, scalar or <32 x T>.
llvm::Value* fused_multiply_add(Context& context, llvm::Value* x, llvm::Value* y, llvm::Value* z);

}  // namespace quern::cpu::emit
