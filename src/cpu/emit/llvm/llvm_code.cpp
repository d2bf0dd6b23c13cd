// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/llvm_code.hpp"

#include <optional>

#include "cpu/emit/llvm/fatal.hpp"

namespace quern::cpu::emit {

LlvmCode::LlvmCode(const std::string& name, llvm::TargetMachine& target)
    : kernel(name),
      machine(target),
      context(std::make_unique<llvm::LLVMContext>()),
      module(std::make_unique<llvm::Module>(name, *context)) {
  module->setTargetTriple(machine.getTargetTriple().str());
  module->setDataLayout(machine.createDataLayout());
}

Expected<void> LlvmCode::guarded(llvm::function_ref<Expected<void>()> work) {
  std::optional<Expected<void>> result;
  try {
    if (Expected<void> done = guard_llvm(kernel, [&] { result.emplace(work()); }); !done) {
      abandon();
      return done;
    }
  } catch (...) {
    abandon();
    throw;
  }
  return *std::move(result);
}

/// Releases LLVM's objects without destroying them: they may point into frames that a jump has left
/// (fatal.hpp).
void LlvmCode::abandon() noexcept {
  static_cast<void>(passes.release());
  static_cast<void>(analyses_.release());
  static_cast<void>(object.release());
  static_cast<void>(module.release());
  static_cast<void>(context.release());
  static_cast<void>(owned_machine.release());
}

Analyses& LlvmCode::analyses() {
  if (analyses_ == nullptr) analyses_ = std::make_unique<Analyses>(*module, machine);
  return *analyses_;
}

void LlvmCode::forget_analyses() { analyses_.reset(); }

Diagnostic LlvmCode::defect(const std::string& what) const {
  return Diagnostic{.code = "internal",
                    .message = "compiling kernel " + kernel + " for the CPU device: " + what,
                    .hint = "This is a defect of the CPU device; please report it with the kernel's PTX."};
}

}  // namespace quern::cpu::emit
