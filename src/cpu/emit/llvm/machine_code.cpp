// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/machine_code.hpp"

#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "cpu/emit/llvm/fatal.hpp"
#include "cpu/emit/llvm/halves_in_turn.hpp"
#include "cpu/emit/llvm/long_blocks.hpp"
#include "cpu/emit/llvm/register_pressure.hpp"

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

/// Larger functions go without two passes of the code generator. The time of the first is quadratic in the
/// number of blocks: of 3,500 blocks it took 5 of 13 seconds. The second takes up to a sixth of the time, and
/// processors that execute out of order gain little from it.
constexpr unsigned kMaxRefinedInsts = 20'000;

bool is_large(const llvm::Module& module) {
  return std::ranges::any_of(module, [](const llvm::Function& function) {
    return function.getInstructionCount() > kMaxRefinedInsts;
  });
}

bool has_long_block(const llvm::Module& module) {
  return std::ranges::any_of(module, [](const llvm::Function& function) {
    return std::ranges::any_of(function,
                               [](const llvm::BasicBlock& block) { return block.size() > kMaxBlockInsts; });
  });
}

/// Adds a pass that cuts blocks behind the one that would join them again.
void add_cutting_pass(llvm::TargetPassConfig& config, llvm::Pass* pass) {
  const std::unique_ptr<llvm::Pass> last(llvm::createCodeGenPrepareLegacyPass());
  config.insertPass(last->getPassID(), pass);
}

/// AVX-512, of code that is worth the time.
bool takes_halves_in_turn(const llvm::TargetMachine& machine, bool large) {
  return machine.getMCSubtargetInfo()->checkFeatures("+avx512bw") && !large &&
         machine.getOptLevel() != llvm::CodeGenOptLevel::None;
}

/// Larger modules are generated once, whatever they spill.
constexpr unsigned kMaxRescheduledInsts = 10'000;

/// Code that is worth the time. Without AVX2 it was not measured.
bool may_reschedule(const llvm::Module& module, const llvm::TargetMachine& machine) {
  const llvm::MCSubtargetInfo& target = *machine.getMCSubtargetInfo();
  return target.checkFeatures("+avx2") && machine.getOptLevel() != llvm::CodeGenOptLevel::None &&
         module.getInstructionCount() <= kMaxRescheduledInsts;
}

/// TargetMachine::addPassesToEmitFile(), which gives no access to the list. Returns false if the target emits
/// no such file. `counts` may be null.
bool add_passes(llvm::legacy::PassManager& passes, llvm::LLVMTargetMachine& machine,
                llvm::raw_pwrite_stream& out, llvm::CodeGenFileType type, bool large, bool is_long,
                SpillCounts* counts) {
  auto* const info = new llvm::MachineModuleInfoWrapperPass(&machine);
  llvm::TargetPassConfig* const config = machine.createPassConfig(passes);
  config->setDisableVerify(true);
  if (large)
    for (const llvm::AnalysisID pass : {&llvm::MachineCSEID, &llvm::PostRASchedulerID})
      config->disablePass(pass);
  if (is_long) add_cutting_pass(*config, make_block_cutter());
  if (takes_halves_in_turn(machine, large)) add_cutting_pass(*config, make_halver());
  if (counts != nullptr) config->insertPass(&llvm::PrologEpilogCodeInserterID, make_spill_counter(*counts));
  passes.add(config);
  passes.add(info);
  if (config->addISelPasses()) return false;
  config->addMachinePasses();
  config->setInitialized();
  if (machine.addAsmPrinter(passes, out, nullptr, type, info->getMMI().getContext())) return false;
  passes.add(llvm::createFreeMachineFunctionPass());
  return true;
}

Expected<void> generate_once(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type,
                             llvm::SmallVectorImpl<char>& out, SpillCounts* counts = nullptr) {
  std::string errors;
  module.getContext().setDiagnosticHandler(std::make_unique<CollectErrors>(errors));
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager passes;
  auto& target = static_cast<llvm::LLVMTargetMachine&>(machine);
  const bool refused =
      !add_passes(passes, target, stream, type, is_large(module), has_long_block(module), counts);
  if (!refused) call_llvm([&] { passes.run(module); });
  module.getContext().setDiagnosticHandler(nullptr);
  if (!refused && errors.empty()) return {};
  return Diagnostic{.code = "internal",
                    .message = "LLVM could not make machine code of " + module.getName().str() + ": " +
                               (refused ? "the target emits no such file" : errors),
                    .hint = "This is a defect of the CPU device; please report it with the kernel's PTX."};
}

/// Generates functions that spill much twice, the second time in an order that needs fewer registers, and
/// takes the second code if it spills less. Code generation changes its module, so the first is of a copy.
Expected<void> generate(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type,
                        llvm::SmallVector<char, 0>& out) {
  if (!may_reschedule(module, machine)) return generate_once(module, machine, type, out);
  SpillCounts first, second;
  if (auto done = generate_once(*llvm::CloneModule(module), machine, type, out, &first); !done) return done;
  std::vector<llvm::StringRef> crowded;
  for (llvm::Function& function : module)
    if (const auto count = first.find(function.getName());
        count != first.end() && spills_much(count->second)) {
      save_registers(function);
      crowded.push_back(function.getName());
    }
  if (crowded.empty()) return {};
  llvm::SmallVector<char, 0> other;
  if (auto done = generate_once(module, machine, type, other, &second); !done) return done;
  if (std::ranges::all_of(crowded,
                          [&](llvm::StringRef name) { return spills_less(first[name], second[name]); }))
    out = std::move(other);
  return {};
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
