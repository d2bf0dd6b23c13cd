// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/machine_code.hpp"

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

#include "cpu/emit/llvm/fatal.hpp"

namespace quern::cpu::emit {
namespace {

/// Collects the errors of the code generator, which LLVM would otherwise print before it ends the process.
struct CollectErrors : llvm::DiagnosticHandler {
  explicit CollectErrors(std::string& text_) : text(text_) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() == llvm::DS_Error) {
      llvm::raw_string_ostream stream(text);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
      stream << "; ";
    }
    return true;
  }
  std::string& text;
};

Expected<void> generate(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type,
                        llvm::SmallVectorImpl<char>& out) {
  std::string errors;
  module.getContext().setDiagnosticHandler(std::make_unique<CollectErrors>(errors));
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager passes;
  const bool refused = machine.addPassesToEmitFile(passes, stream, nullptr, type);
  if (!refused) call_llvm([&] { passes.run(module); });
  module.getContext().setDiagnosticHandler(nullptr);
  if (!refused && errors.empty()) return {};
  return Diagnostic{.code = "internal",
                    .message = "LLVM could not make machine code of " + module.getName().str() + ": " +
                               (refused ? "the target emits no such file" : errors),
                    .hint = "This is a defect of the CPU device; please report it with the kernel's PTX."};
}

}  // namespace

Expected<std::unique_ptr<llvm::MemoryBuffer>> make_object(llvm::Module& module,
                                                          llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> bytes;
  if (auto done = generate(module, machine, llvm::CodeGenFileType::ObjectFile, bytes); !done)
    return done.errors();
  return std::unique_ptr<llvm::MemoryBuffer>(std::make_unique<llvm::SmallVectorMemoryBuffer>(
      std::move(bytes), module.getName(), /*RequiresNullTerminator=*/false));
}

Expected<std::string> make_assembly(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> bytes;
  if (auto done = generate(module, machine, llvm::CodeGenFileType::AssemblyFile, bytes); !done)
    return done.errors();
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace quern::cpu::emit
