// SPDX-License-Identifier: Apache-2.0
// What the atomic operations of a warp are made of: one operation at one place, and the lanes one after the
// other.
#pragma once

#include "cpu/emit/operations/address.hpp"

namespace quern::cpu::emit {

/// Whether threads that may touch the place at the same time run on another processor.
bool needs_lock(const Access& access);

/// Whether update() has code for it.
bool has_update(ir::AtomicOp op, ir::Type type);
/// The operation at `pointer`, on values of the access's memory type; `second` only for cas. Returns the old
/// value.
llvm::Value* update(const Access& access, llvm::Value* pointer, llvm::Value* operand, llvm::Value* second);

/// The running lanes one after the other, lowest first, as code in place.
void emit_lanes(const Access& access, ir::Value value);

}  // namespace quern::cpu::emit
