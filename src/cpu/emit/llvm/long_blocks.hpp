// SPDX-License-Identifier: Apache-2.0
// Cuts blocks that are too long for the code generator.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/Pass.h>

namespace quern::cpu::emit {

/// Blocks of more instructions are cut.
inline constexpr unsigned kMaxBlockInsts = 4096;

/// Cuts blocks of more than kMaxBlockInsts instructions where few values are live. Returns true if it cut
/// any.
///
/// The code generator selects, combines and schedules instructions block by block. Its scheduler compares
/// each use of a register with all others in the block, so its time is quadratic in the length of a block.
bool cut_long_blocks(llvm::Function& function);

/// The same as a pass for the code generator's list, where nothing joins the blocks again before registers
/// are allocated.
llvm::Pass* make_block_cutter();

}  // namespace quern::cpu::emit
