// SPDX-License-Identifier: Apache-2.0
// Vector accesses of one instruction, element by element: shared by loads, stores and their layouts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpu/emit/operations/address.hpp"

namespace quern::cpu::emit {

/// Returns the number of elements of a lane in one word of 4 or 8 bytes, which is gathered or scattered as a
/// whole. Returns 1 if each element is moved by itself.
unsigned elements_of_word(const Access& access);
/// Loads 32 elements from unrelated addresses; lanes that do not run get zero.
llvm::Value* gather(const Access& access, const LanePointers& pointers, std::int64_t displacement);
/// The same for words of 4 or 8 bytes, each of which holds several elements of a lane.
llvm::Value* gather_words(const Access& access, const LanePointers& pointers, std::int64_t displacement,
                          unsigned bytes);
/// no: code for a case that hardly ever occurs, which should be short.
enum class Often : std::uint8_t { yes, no };
/// Stores 32 elements to unrelated addresses. If lanes have the same address, the highest lane's element is
/// stored.
void scatter(const Access& access, const LanePointers& pointers, std::int64_t displacement,
             llvm::Value* values, Often often);

/// Stores without a mask, with the access's alignment, order and metadata.
void store_one(const Access& access, llvm::Value* value, llvm::Value* pointer);

/// True if consecutive elements can be stored under a mask.
bool stores_rows(const Access& access);
/// A masked load of a vector of any length; lanes that are not in the mask get zero.
llvm::Value* load_masked(const Access& access, llvm::Type* type, llvm::Value* pointer, llvm::Value* mask);
/// Stores the lanes of the mask to consecutive elements. Requires stores_rows(access).
void store_masked(const Access& access, llvm::Value* values, llvm::Value* pointer, llvm::Value* mask);

/// The windows of an access for which masked vectors are faster than a gather or scatter; none if there are
/// none.
Windows access_windows(const Access& access);
/// The slots of a window that running lanes access. The lanes' elements are distinct, or all lanes run.
llvm::Value* window_mask(const Access& access, const Windows& windows, unsigned window);

/// Splits a vector of n * count elements (the elements of a lane are adjacent) into `count` vectors of n
/// lanes, and back.
std::vector<llvm::Value*> deinterleave(Context& context, llvm::Value* wide, unsigned count);
llvm::Value* interleave(Context& context, std::span<llvm::Value* const> elements);
/// Returns a mask in which each lane of `mask` occurs `count` times.
llvm::Value* repeat_lanes(Context& context, llvm::Value* mask, unsigned count);
llvm::Value* reverse(Context& context, llvm::Value* vector);

}  // namespace quern::cpu::emit
