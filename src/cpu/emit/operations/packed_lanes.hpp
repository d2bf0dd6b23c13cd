// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cpu/emit/operations/address.hpp"

namespace quern::cpu::emit {

/// Stores 32 elements to addresses that are unknown at compile time. If the running lanes turn out to write
/// one run of elements in the order of the lanes, as where a kernel keeps a part of an array, the elements
/// are moved together and stored as a vector; a scatter takes several times as long. Otherwise, and where the
/// processor cannot do that, or all lanes run, `scatter` emits the store.
void store_packed_or(const Access& access, const LanePointers& pointers, std::int64_t displacement,
                     llvm::Value* values, llvm::function_ref<void()> scatter);

}  // namespace quern::cpu::emit
