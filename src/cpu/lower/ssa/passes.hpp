// SPDX-License-Identifier: Apache-2.0
// The passes that turn a translated FunctionBuilder into finished IR; compiler/passes.cpp defines their
// order.
#pragma once

#include <vector>

#include "cpu/lower/ssa/function_builder.hpp"

namespace quern::cpu::lower {

/// Removes unreachable blocks from the graph. They remain as empty blocks until number_blocks.
void drop_unreachable(FunctionBuilder& builder);

/// Gives every natural loop one preheader and one latch.
void simplify_loops(FunctionBuilder& builder);

/// Puts an empty block on every edge from a block with several successors to one with several predecessors.
void split_critical_edges(FunctionBuilder& builder);

/// Turns variables into values, by adding as few phis as the graph needs.
/// Method: Braun et al., "Simple and Efficient Construction of Static Single Assignment Form", 2013, with all
/// blocks sealed.
void build_ssa(FunctionBuilder& builder);

/// Folds again, since operands are now known, and replaces copies.
void propagate(FunctionBuilder& builder);

/// Replaces pure values that are computed several times by one (common subexpressions).
void share_values(FunctionBuilder& builder);

/// Replaces a choice between a 64-bit division and a 32-bit one, as NVRTC makes it, by the 64-bit one.
void join_divisions(FunctionBuilder& builder);

/// Shifts numbers to the right without the bits that were set in them only to be dropped.
void forget_lost_bits(FunctionBuilder& builder);

/// Computes 64-bit integers in 32 bits if only their low 32 bits are read.
void narrow_to_low_words(FunctionBuilder& builder);

/// Makes one conversion of several that follow each other, where they begin with an element of 8 or 16 bits.
void join_conversions(FunctionBuilder& builder);

/// Compares loaded numbers of 8 or 16 bits in that width, if both operands of a comparison are widened ones.
void narrow_compares(FunctionBuilder& builder);

/// Moves pure values that do not change in a loop in front of it.
void hoist_invariants(FunctionBuilder& builder);

/// Removes unused instructions; marks atomics whose result is not used.
void remove_dead(FunctionBuilder& builder);

/// Gives NaNs the bits that PTX specifies before operations that read bits (docs/decisions/0013-nan-bits.md).
void settle_nan_bits(FunctionBuilder& builder);

/// Merges a block with its only successor if the block is that successor's only predecessor.
void merge_chains(FunctionBuilder& builder);

/// Merges stores to one address at the ends of both sides of a branch, and replaces the branch by choices if
/// its sides are then empty.
void merge_stores(FunctionBuilder& builder);

/// Puts loads in the order of their addresses, as far as it can be guessed.
void order_loads(FunctionBuilder& builder);

/// Loop-closed form: a value used outside its loop goes through a phi in the loop's exit block.
void close_loops(FunctionBuilder& builder);

/// Places the shared constants first in the entry, numbers blocks in reverse postorder, and values in the
/// order of the text.
void number_all(FunctionBuilder& builder);

/// Decides whether the kernel's local memory can be interleaved (ir::Function::interleaved_bytes).
void interleave_local(FunctionBuilder& builder);

/// Reachable blocks in reverse postorder, and the immediate dominator of each one (for the entry: itself).
struct Order {
  std::vector<ir::BlockId> blocks;
  std::vector<std::uint32_t> position;  ///< by BlockId; ir::kNone: not reachable
  std::vector<ir::BlockId> idom;        ///< by BlockId
  bool dominates(ir::BlockId a, ir::BlockId b) const;
};
Order order_blocks(const ir::Function& function);

/// Natural loops (of reducible regions): which innermost loop each block is in.
struct LoopNest {
  struct Loop {
    ir::BlockId header = ir::kNone;
    std::uint32_t parent = ir::kNone;
  };
  std::vector<Loop> loops;               ///< inner before outer
  std::vector<std::uint32_t> innermost;  ///< by BlockId; ir::kNone: in no loop
  bool contains(std::uint32_t loop, ir::BlockId block) const;
};
LoopNest find_loops(const ir::Function& function, const Order& order);

}  // namespace quern::cpu::lower
