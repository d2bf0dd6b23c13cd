// SPDX-License-Identifier: Apache-2.0
// The passes from finished SIMT IR to a Plan for each function; compiler/passes.cpp defines their order. Each
// pass changes the given function, its plan, or both. Pure; no LLVM.
#pragma once

#include "cpu/abi/specialisation.hpp"
#include "cpu/cuts/plan.hpp"
#include "cpu/ir/ir.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::cuts {

/// Decides whether the dispatcher runs the function's lanes, and whether full code is possible. Errors: a
/// called function in which a lane would wait for others.
Expected<void> choose_dispatch(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Replaces loads from one of two places of a constant variable, as an index's bit says, by loads of both and
/// a choice.
void load_both_places(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Unrolls short loops over barriers whose iterations are known from the shape of the block.
void unroll_rounds(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Replaces branches on data around few operations by choices. Stores to shared memory there become
/// unconditional, if the threads store to different addresses that are known at compile time, and have loaded
/// what these contained.
void join_sides(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Moves each extract directly after its operand: then the elements need no storage.
void place_extracts(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// For dispatched functions: an operation at which lanes wait becomes the first one of its block
/// (Plan::waits), and a barrier gets a block with only the barrier and its branch.
void cut_at_waits(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// For other functions: cuts so that a barrier is directly before the branch of its block (Plan::barrier).
void cut_after_barriers(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Analyses the function for the cuts that follow (Plan::uncut). Errors here and in the other analyses: those
/// of analysis::analyse().
Expected<void> analyse_uncut(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Merges accesses to neighbouring elements by lanes that are apart, and analyses the function again then.
Expected<void> merge_neighbours(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Moves indices that full code assumes not to wrap out of the sides of branches at which warps disagree, so
/// that a gang need not end there, and analyses the function again then.
Expected<void> hoist_widenings(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Decides how many warps run in lockstep (Plan::gang).
void choose_gangs(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Cuts blocks before assumed values. The end of the first part tests these (Plan::tested).
void cut_before_assumed(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Cuts blocks where the warps of the gang, or their lanes, may diverge: each such branch becomes a separate
/// block, where a warp can start (Plan::parts), unless the gang can continue behind it (serial_regions.hpp).
/// A comparison that is computed only if scalars do not decide (see bounds.hpp) moves with its branch.
void cut_where_gangs_part(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Runs the safe analysis on the function after the cuts.
Expected<void> analyse_masked(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Runs the optimistic analysis. If the cuts have invalidated its assumptions, full code uses the safe one.
Expected<void> analyse_full(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Finds the blocks that the warps of a gang run one after another (Plan::serial, Plan::lockstep).
void find_serial_code(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Finds the loops that lanes run one after another (Plan::lane_loops). Not for functions that gangs run.
void find_lanes_in_turn(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Finds the loops of which full code does not ask whether all lanes have left them (Plan::eager). Not for
/// functions that gangs run.
void begin_loops_eagerly(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Finds the blocks at which lanes have ended (Plan::ends).
void find_ends(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Decides where full code is possible: it neither waits at barriers nor iterates in a loop that waits. Finds
/// the blocks where waiting lanes must let others run first (Plan::full_needed, Plan::spins).
void find_waits(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Decides which blocks have masked code and where control returns to full code.
void choose_versions(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Finds the values that are read in other blocks (Plan::live_in, Plan::crosses).
void find_live_values(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Finds the stores of full code that may bypass the caches (Plan::streamed).
void find_streamed_stores(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Classifies the branches of full code (Plan::bounded).
void find_bounded_branches(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Chooses the atomic operations that ask for the owner of their region (ir::Attributes::biased): all that
/// the kernel has on global memory, or none. Sets Plan::atomics.
void bias_atomics(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Chooses the atomic operations that a worker gathers, and the accesses before which their updates are
/// applied (ir::Attributes::gathers, settles).
void gather_updates(ir::Function& function, Plan& plan, const Specialisation& specialisation);

}  // namespace quern::cpu::cuts
