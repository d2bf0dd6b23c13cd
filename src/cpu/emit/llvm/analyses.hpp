// SPDX-License-Identifier: Apache-2.0
// LLVM's analyses of one module.
#pragma once

#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Target/TargetMachine.h>

namespace quern::cpu::emit {

/// The analyses that the LLVM passes need. They are registered one by one, because LLVM's PassBuilder would
/// link all passes.
class Analyses {
 public:
  Analyses(llvm::Module& module, llvm::TargetMachine& machine);
  llvm::FunctionAnalysisManager& functions() { return functions_; }

 private:
  void register_function_analyses(llvm::TargetMachine& machine);

  llvm::TargetLibraryInfoImpl library_;
  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::ModuleAnalysisManager modules_;
};

}  // namespace quern::cpu::emit
