// SPDX-License-Identifier: Apache-2.0
// Building blocks of a warp's atomic operations: one operation at one address, and a loop over the lanes.
#pragma once

#include "cpu/emit/operations/address.hpp"

namespace quern::cpu::emit {

/// True if threads on other processors may access the address at the same time.
bool needs_lock(const Access& access);

/// True if update() supports the operation.
bool has_update(ir::AtomicOp op, ir::Type type);
/// Emits the operation at `pointer`, on values of the access's memory type; `second` is used for cas only.
/// Returns the old value.
llvm::Value* update(const Access& access, llvm::Value* pointer, llvm::Value* operand, llvm::Value* second);

/// Emits inline code that runs the lanes one after the other, lowest first.
void emit_lanes(const Access& access, ir::Value value);

}  // namespace quern::cpu::emit
