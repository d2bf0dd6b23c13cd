// SPDX-License-Identifier: Apache-2.0
// Detects misaligned accesses. A GPU faults on them, the processor does not. So such an address is replaced
// by one near the start of the window, where nothing is mapped, and the engine recognises the fault by its
// address (engine::Window::is_misaligned_mark).
//
// If the address is known to be a multiple (analysis/residues.hpp), no code is emitted. If that depends on a
// parameter of the kernel, the parameter is tested once, outside all loops, and the range check compares with
// the result instead of the window's size. Otherwise the address is tested at the access: by one scalar
// operation if the distances between lanes are multiples, else by the combined bits of all 32 lanes.
// docs/decisions/0010-misaligned-addresses.md has the measurements.
#pragma once

#include "cpu/emit/operations/address.hpp"

namespace quern::cpu::emit {

/// Returns the limit for offsets in the window: its size, or 0 if the access is misaligned. `base`, a scalar,
/// is the address in a lane without the access's displacement; null if the patterns do not give the
/// differences between the addresses. Returns null if the access cannot be misaligned.
llvm::Value* aligned_limit(const Access& access, llvm::Value* base);

/// Returns `start`, the begin of the access's space, or the replacement address for misaligned accesses.
llvm::Value* aligned_start(const Access& access, llvm::Value* start, llvm::Value* base);

}  // namespace quern::cpu::emit
