// SPDX-License-Identifier: Apache-2.0
// The passes from finished SIMT IR to a Plan for each function; compiler/passes.cpp has their order. Each
// changes the function that it is given, its plan, or both. Pure; no LLVM.
#pragma once

#include "cpu/abi/specialisation.hpp"
#include "cpu/cuts/plan.hpp"
#include "cpu/ir/ir.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::cuts {

/// Decides whether the dispatcher runs the function's lanes, and whether there may be full code. Errors: a
/// called function in which a lane would wait for others.
Expected<void> choose_dispatch(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Moves each extract right behind its operand: then the elements need no storage of their own.
void place_extracts(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Dispatched functions: an operation at which lanes wait becomes the first of its block (Plan::waits), and a
/// barrier is alone with its branch.
void cut_at_waits(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Other functions: a barrier is right before its block's branch (Plan::barrier).
void cut_after_barriers(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Analyses the function for the cuts that follow (Plan::uncut). Errors: as analysis::analyse() has them, as
/// for all analyses here.
Expected<void> analyse_uncut(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Decides how many warps run in lockstep (Plan::gang).
void choose_gangs(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Cuts blocks before assumed widenings, which are tested at the end of the first part (Plan::tested).
void cut_before_assumed(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Cuts blocks where the warps of the gang, or lanes of them, may diverge: each such branch becomes a block
/// of its own, where a warp can start (Plan::parts). A comparison that is computed only if scalars do not
/// decide (see bounds.hpp) moves with its branch.
void cut_where_gangs_part(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// The safe analysis of the function as it is now cut.
Expected<void> analyse_masked(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// The optimistic one. If the cuts have invalidated its assumptions, full code uses the safe one.
Expected<void> analyse_full(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Finds the blocks at which lanes have ended (Plan::ends).
void find_ends(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Full code neither waits at barriers nor iterates in a loop that waits; lanes that wait let others run
/// first (Plan::full_needed, Plan::spins).
void find_waits(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Decides which blocks have masked code and where control returns to full code.
void choose_versions(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Finds the values that are read in other blocks (Plan::live_in, Plan::crosses).
void find_live_values(ir::Function& function, Plan& plan, const Specialisation& specialisation);

/// Classifies the branches of full code (Plan::bounded).
void find_bounded_branches(ir::Function& function, Plan& plan, const Specialisation& specialisation);

}  // namespace quern::cpu::cuts
