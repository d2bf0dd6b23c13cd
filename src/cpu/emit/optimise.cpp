// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/optimise.hpp"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/BasicAliasAnalysis.h>
#include <llvm/Analysis/BlockFrequencyInfo.h>
#include <llvm/Analysis/BranchProbabilityInfo.h>
#include <llvm/Analysis/IVUsers.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/MemoryDependenceAnalysis.h>
#include <llvm/Analysis/MemorySSA.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Analysis/PhiValues.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/IR/PassManager.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopStrengthReduce.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/CanonicalizeFreezeInLoops.h>

#include "cpu/emit/chosen_bits.hpp"
#include "cpu/emit/fatal.hpp"
#include "cpu/emit/mask_words.hpp"
#include "cpu/emit/slots.hpp"

namespace quern::cpu::emit {
namespace {

/// The analyses that the pass list needs, registered by hand: LLVM's PassBuilder would link all passes.
class Analyses {
 public:
  Analyses(llvm::Module& module, llvm::TargetMachine& machine)
      : library_(llvm::Triple(module.getTargetTriple())) {
    // The code may call only functions that it names: no libm, no libc idioms.
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
  llvm::FunctionAnalysisManager& functions() { return functions_; }

 private:
  void register_function_analyses(llvm::TargetMachine& machine) {
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

  llvm::TargetLibraryInfoImpl library_;
  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::ModuleAnalysisManager modules_;
};

/// Larger functions are combined once only, after equal values have been merged: before that, in chains of
/// sums with conditions between them, LLVM evaluates each sum for every outcome of the conditions before it,
/// and 9,000 instructions took it 10 seconds.
constexpr unsigned kMaxCombinedTwice = 6000;

/// Measured on kernels of this shape: the same code as -O2 makes, in a third of its time.
llvm::FunctionPassManager pass_list(bool combine_twice) {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::SimplifyCFGPass());
  if (combine_twice) passes.addPass(llvm::InstCombinePass());
  passes.addPass(
      llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::ADCEPass());
  passes.addPass(llvm::SimplifyCFGPass());
  return passes;
}

/// These passes are the ones that the code generator runs first by default (llvm_target.cpp disables them).
llvm::FunctionPassManager loop_pass_list() {
  llvm::LoopPassManager passes;
  passes.addPass(llvm::CanonicalizeFreezeInLoopsPass());
  passes.addPass(llvm::LoopStrengthReducePass());
  llvm::FunctionPassManager list;
  list.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(passes)));
  return list;
}

/// Functions of more loops do without: for each loop, scalar evolution gathers the conditions of all loops
/// before it, and 500 loops took it 12 seconds.
constexpr std::size_t kMaxReducedLoops = 64;

void run_passes_on(llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
                   llvm::FunctionPassManager& loop_passes) {
  promote_slots(function, analyses.getResult<llvm::DominatorTreeAnalysis>(function));
  pass_list(function.getInstructionCount() <= kMaxCombinedTwice).run(function, analyses);
  const auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  if (loops.getLoopsInPreorder().size() <= kMaxReducedLoops) loop_passes.run(function, analyses);
}

void run_passes(llvm::Module& module, llvm::TargetMachine& machine) {
  Analyses analyses(module, machine);
  llvm::FunctionPassManager loop_passes = loop_pass_list();
  for (llvm::Function& function : module)
    if (!function.isDeclaration())
      call_llvm([&] { run_passes_on(function, analyses.functions(), loop_passes); });
}

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

void optimise(llvm::Module& module, llvm::TargetMachine& machine, unsigned opt_level) {
  if (opt_level != 0) run_passes(module, machine);
  if (!machine.getMCSubtargetInfo()->checkFeatures("+avx512bw")) return;
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    compute_masks_as_words(function);
    keep_logic_from_choices(function);
  }
}

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
