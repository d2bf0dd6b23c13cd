// SPDX-License-Identifier: Apache-2.0
// LLVM IR of one kernel, with the LLVM objects that own it.
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

#include "cpu/abi/facts.hpp"
#include "cpu/emit/llvm/analyses.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::emit {

class LlvmCode {
 public:
  /// Creates an empty module for `target`, which must outlive this object.
  LlvmCode(const std::string& name, llvm::TargetMachine& target);
  ~LlvmCode() = default;
  LlvmCode(const LlvmCode&) = delete;
  LlvmCode& operator=(const LlvmCode&) = delete;

  /// Runs `work`, which calls LLVM, inside guard_llvm() (fatal.hpp). If a fatal error of LLVM ends the work,
  /// LLVM's objects are never destroyed.
  Expected<void> guarded(llvm::function_ref<Expected<void>()> work);
  /// LLVM's analyses of the module, computed at their first use.
  Analyses& analyses();
  /// Invalidates the analyses after changes that do not preserve them.
  void forget_analyses();
  /// The error for a defect in quern.
  Diagnostic defect(const std::string& what) const;

  std::string kernel;
  llvm::TargetMachine& machine;
  std::unique_ptr<llvm::TargetMachine> owned_machine;  ///< owns `machine`; null if another object owns it
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<llvm::MemoryBuffer> object;         ///< null until make_object() was called
  std::unique_ptr<llvm::FunctionPassManager> passes;  ///< the pass that is running, or ran last
  std::set<const llvm::Function*> small;              ///< functions that are combined twice (optimise.cpp)
  // Data for the image.
  std::uint32_t frame_bytes = 0;
  bool waits = false;
  std::uint64_t streamed = 0;
  ir::AtomicUse atomics = ir::AtomicUse::none;

 private:
  void abandon() noexcept;
  std::unique_ptr<Analyses> analyses_;
};

}  // namespace quern::cpu::emit
