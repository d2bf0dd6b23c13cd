// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/analyses.hpp"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/BasicAliasAnalysis.h>
#include <llvm/Analysis/BlockFrequencyInfo.h>
#include <llvm/Analysis/BranchProbabilityInfo.h>
#include <llvm/Analysis/IVUsers.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/MemoryDependenceAnalysis.h>
#include <llvm/Analysis/MemorySSA.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Analysis/PhiValues.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/PassInstrumentation.h>

namespace quern::cpu::emit {

Analyses::Analyses(llvm::Module& module, llvm::TargetMachine& machine)
    : library_(llvm::Triple(module.getTargetTriple())) {
  // The code may call only functions that it declares: no function of libm or libc.
  library_.disableAllFunctions();
  register_function_analyses(machine);
  loops_.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
  loops_.registerPass([] { return llvm::IVUsersAnalysis(); });
  modules_.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
  functions_.registerPass([this] { return llvm::LoopAnalysisManagerFunctionProxy(loops_); });
  functions_.registerPass([this] { return llvm::ModuleAnalysisManagerFunctionProxy(modules_); });
  loops_.registerPass([this] { return llvm::FunctionAnalysisManagerLoopProxy(functions_); });
  modules_.registerPass([this] { return llvm::FunctionAnalysisManagerModuleProxy(functions_); });
}

void Analyses::register_function_analyses(llvm::TargetMachine& machine) {
  functions_.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
  functions_.registerPass([] { return llvm::AssumptionAnalysis(); });
  functions_.registerPass([] { return llvm::DominatorTreeAnalysis(); });
  functions_.registerPass([] { return llvm::PostDominatorTreeAnalysis(); });
  functions_.registerPass([] { return llvm::LoopAnalysis(); });
  functions_.registerPass([] { return llvm::BranchProbabilityAnalysis(); });
  functions_.registerPass([] { return llvm::BlockFrequencyAnalysis(); });
  functions_.registerPass([] { return llvm::ScalarEvolutionAnalysis(); });
  functions_.registerPass([] { return llvm::MemorySSAAnalysis(); });
  functions_.registerPass([] { return llvm::MemoryDependenceAnalysis(); });
  functions_.registerPass([] { return llvm::PhiValuesAnalysis(); });
  functions_.registerPass([] { return llvm::OptimizationRemarkEmitterAnalysis(); });
  functions_.registerPass([] { return llvm::BasicAA(); });
  functions_.registerPass([] {
    llvm::AAManager manager;
    manager.registerFunctionAnalysis<llvm::BasicAA>();
    return manager;
  });
  functions_.registerPass([&machine] { return machine.getTargetIRAnalysis(); });
  functions_.registerPass([this] { return llvm::TargetLibraryAnalysis(library_); });
}

}  // namespace quern::cpu::emit
