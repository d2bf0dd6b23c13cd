// SPDX-License-Identifier: Apache-2.0
// Counts what the registers of a function do not hold, and orders instructions so that they hold more.
#pragma once

#include <llvm/ADT/StringMap.h>
#include <llvm/IR/Function.h>
#include <llvm/Pass.h>

namespace quern::cpu::emit {

/// Counts the instructions that one call of a function executes, without those of its callees. LLVM estimates
/// how often blocks run.
struct SpillCount {
  double instructions = 0;
  double spills = 0;  ///< instructions that store or load a spilled register
};

/// By the names of functions.
using SpillCounts = llvm::StringMap<SpillCount>;

/// A pass for the code generator's list, behind register allocation: adds each function to `counts`.
llvm::Pass* make_spill_counter(SpillCounts& counts);

/// True if another order of instructions may be worth a second run of the code generator.
bool spills_much(const SpillCount& count);

/// True if the code with `after` is the better one, where spills_much(before).
bool spills_less(const SpillCount& before, const SpillCount& after);

/// Marks a function whose instructions are to be selected in an order that needs few registers, at the cost
/// of latency: LLVM's `list-hybrid` in place of the order of the IR.
void save_registers(llvm::Function& function);

/// Makes the code generator heed save_registers(). Call it once in the process, before any code is generated.
void heed_saved_registers();

}  // namespace quern::cpu::emit
