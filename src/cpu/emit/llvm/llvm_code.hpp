// SPDX-License-Identifier: Apache-2.0
// LLVM IR of one kernel, with the objects of LLVM's that it lives in.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Target/TargetMachine.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "cpu/emit/llvm/analyses.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::emit {

class LlvmCode {
 public:
  /// An empty module for `target`, which must live as long.
  LlvmCode(const std::string& name, llvm::TargetMachine& target, unsigned level);
  ~LlvmCode() = default;
  LlvmCode(const LlvmCode&) = delete;
  LlvmCode& operator=(const LlvmCode&) = delete;

  /// Runs `work`, which calls LLVM, under its guard (fatal.hpp). After an error that LLVM ended it with,
  /// LLVM's objects are left as they are and never destroyed.
  Expected<void> guarded(llvm::function_ref<Expected<void>()> work);
  /// LLVM's analyses of the module, computed at their first use.
  Analyses& analyses();
  /// Forgets them, for changes that do not keep them.
  void forget_analyses();
  /// The error for a defect in quern.
  Diagnostic defect(const std::string& what) const;

  std::string kernel;
  unsigned opt_level = 2;
  llvm::TargetMachine& machine;
  std::unique_ptr<llvm::TargetMachine> owned_machine;  ///< `machine`, or null if another owns it
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<llvm::MemoryBuffer> object;         ///< null before make_object()
  std::unique_ptr<llvm::FunctionPassManager> passes;  ///< the pass that runs, or ran last
  std::set<const llvm::Function*> small;              ///< are combined twice (optimise.cpp)
  // For the image.
  std::uint32_t frame_bytes = 0;
  bool waits = false;

 private:
  void abandon() noexcept;
  std::unique_ptr<Analyses> analyses_;
};

}  // namespace quern::cpu::emit
