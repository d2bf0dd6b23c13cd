// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/register_pressure.hpp"

#include <llvm/CodeGen/MachineBlockFrequencyInfo.h>
#include <llvm/CodeGen/MachineFunctionPass.h>
#include <llvm/CodeGen/SchedulerRegistry.h>
#include <llvm/CodeGen/SelectionDAGISel.h>
#include <llvm/CodeGen/TargetInstrInfo.h>
#include <llvm/CodeGen/TargetSubtargetInfo.h>
#include <llvm/Support/CommandLine.h>

namespace quern::cpu::emit {
namespace {

constexpr const char* kSavesRegisters = "quern-saves-registers";

/// Below this share of spills, the latency that the other order exposes can cost more than the spills: of the
/// rows of styles-bench, the one with the most spills that lost had 0.27
/// (docs/decisions/0075-second-schedule.md).
constexpr double kManySpills = 0.3;

/// Fewer spills than this part of the ones before pay for that latency.
constexpr double kFewerSpills = 0.75;

bool is_spill(const llvm::MachineInstr& inst, const llvm::TargetInstrInfo* target) {
  return inst.getSpillSize(target) || inst.getFoldedSpillSize(target) || inst.getRestoreSize(target) ||
         inst.getFoldedRestoreSize(target);
}

struct SpillCounter : llvm::MachineFunctionPass {
  static inline char ID = 0;
  explicit SpillCounter(SpillCounts& counts_) : llvm::MachineFunctionPass(ID), counts(counts_) {}

  void getAnalysisUsage(llvm::AnalysisUsage& usage) const override {
    usage.setPreservesAll();
    usage.addRequired<llvm::MachineBlockFrequencyInfoWrapperPass>();
    llvm::MachineFunctionPass::getAnalysisUsage(usage);
  }

  bool runOnMachineFunction(llvm::MachineFunction& function) override {
    const auto& frequencies = getAnalysis<llvm::MachineBlockFrequencyInfoWrapperPass>().getMBFI();
    const llvm::TargetInstrInfo* const target = function.getSubtarget().getInstrInfo();
    SpillCount& sum = counts[function.getName()];
    for (const llvm::MachineBasicBlock& block : function) {
      const double times = frequencies.getBlockFreqRelativeToEntryBlock(&block);
      for (const llvm::MachineInstr& inst : block) {
        if (inst.isDebugOrPseudoInstr()) continue;
        sum.instructions += times;
        if (is_spill(inst, target)) sum.spills += times;
      }
    }
    return false;
  }

  SpillCounts& counts;
};

llvm::ScheduleDAGSDNodes* make_scheduler(llvm::SelectionDAGISel* selector, llvm::CodeGenOptLevel level) {
  return selector->MF->getFunction().hasFnAttribute(kSavesRegisters)
             ? llvm::createHybridListDAGScheduler(selector, level)
             : llvm::createDefaultScheduler(selector, level);
}

}  // namespace

llvm::Pass* make_spill_counter(SpillCounts& counts) { return new SpillCounter(counts); }

bool spills_much(const SpillCount& count) { return count.spills >= kManySpills * count.instructions; }

bool spills_less(const SpillCount& before, const SpillCount& after) {
  return after.spills <= kFewerSpills * before.spills;
}

void save_registers(llvm::Function& function) { function.addFnAttr(kSavesRegisters); }

/// LLVM takes the scheduler of a function from one option. Its value is this file's function for all, so that
/// threads that generate code at the same time do not disagree about it.
void heed_saved_registers() {
  using Option = llvm::cl::opt<llvm::RegisterScheduler::FunctionPassCtor, false,
                               llvm::RegisterPassParser<llvm::RegisterScheduler>>;
  auto& options = llvm::cl::getRegisteredOptions();
  const auto found = options.find("pre-RA-sched");
  if (found != options.end()) static_cast<Option*>(found->second)->setValue(&make_scheduler);
}

}  // namespace quern::cpu::emit
