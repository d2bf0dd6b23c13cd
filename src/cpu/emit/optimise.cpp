// SPDX-License-Identifier: Apache-2.0
// LLVM's passes, with the names of compiler/passes.cpp. Measured on kernels: they produce the same code as
// -O2 in a third of its time.
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/MC/MCSubtargetInfo.h>
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

#include <utility>

#include "cpu/emit/emit.hpp"
#include "cpu/emit/llvm/check_bases.hpp"
#include "cpu/emit/llvm/choose_extremes.hpp"
#include "cpu/emit/llvm/compose_shuffles.hpp"
#include "cpu/emit/llvm/fatal.hpp"
#include "cpu/emit/llvm/forward_shared.hpp"
#include "cpu/emit/llvm/join_halves.hpp"
#include "cpu/emit/llvm/keep_load_order.hpp"
#include "cpu/emit/llvm/lane_masks.hpp"
#include "cpu/emit/llvm/llvm_code.hpp"
#include "cpu/emit/llvm/llvm_target.hpp"
#include "cpu/emit/llvm/loop_over_lanes.hpp"
#include "cpu/emit/llvm/mask_words.hpp"
#include "cpu/emit/llvm/masked_ternlog.hpp"
#include "cpu/emit/llvm/narrow_accesses.hpp"
#include "cpu/emit/llvm/packed_halves.hpp"
#include "cpu/emit/llvm/prefetch_masked.hpp"
#include "cpu/emit/llvm/promote_slots.hpp"
#include "cpu/emit/llvm/share_checks.hpp"

namespace quern::cpu::emit {
namespace {

/// Larger functions are combined only once, after equal values have been merged. Before that, in chains of
/// sums with conditions between them, LLVM evaluates each sum for every outcome of the earlier conditions;
/// 9,000 instructions took it 10 seconds.
constexpr unsigned kMaxCombinedTwice = 6000;

/// Strength reduction is skipped for functions with more loops: for each loop, scalar evolution collects the
/// conditions of all earlier loops; 500 loops took it 12 seconds.
constexpr std::size_t kMaxReducedLoops = 64;

/// Calls `change` for each function with a body.
Expected<void> for_each_function(LlvmCode& code, llvm::function_ref<void(llvm::Function&)> change) {
  return code.guarded([&]() -> Expected<void> {
    for (llvm::Function& function : *code.module)
      if (!function.isDeclaration()) call_llvm([&] { change(function); });
    return {};
  });
}

/// The code owns the pass: after a fatal error the pass must not be destroyed either.
template <class Pass>
void set_pass(LlvmCode& code, Pass pass) {
  code.passes = std::make_unique<llvm::FunctionPassManager>();
  code.passes->addPass(std::move(pass));
}

template <class Pass>
Expected<void> run_on_functions(LlvmCode& code, Pass pass) {
  set_pass(code, std::move(pass));
  return for_each_function(
      code, [&](llvm::Function& function) { code.passes->run(function, code.analyses().functions()); });
}

/// For targets with AVX-512, which has mask registers, or for the others only.
Expected<void> for_each_function_of(LlvmCode& code, bool mask_registers, void (*change)(llvm::Function&)) {
  if (code.machine.getMCSubtargetInfo()->checkFeatures("+avx512bw") != mask_registers) return {};
  code.forget_analyses();
  return code.guarded([&]() -> Expected<void> {
    for (llvm::Function& function : *code.module)
      if (!function.isDeclaration()) change(function);
    return {};
  });
}

}  // namespace

Expected<void> promote_slots(LlvmCode& code) {
  return for_each_function(code, [&](llvm::Function& function) {
    promote_slots(function, code.analyses().functions().getResult<llvm::DominatorTreeAnalysis>(function));
    if (function.getInstructionCount() <= kMaxCombinedTwice) code.small.insert(&function);
  });
}

Expected<void> replace_aggregates(LlvmCode& code) {
  return run_on_functions(code, llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
}

Expected<void> merge_equal_values(LlvmCode& code) { return run_on_functions(code, llvm::EarlyCSEPass()); }

Expected<void> simplify_control_flow(LlvmCode& code) {
  return run_on_functions(code, llvm::SimplifyCFGPass());
}

Expected<void> combine_small_functions(LlvmCode& code) {
  set_pass(code, llvm::InstCombinePass());
  return for_each_function(code, [&](llvm::Function& function) {
    if (code.small.contains(&function)) code.passes->run(function, code.analyses().functions());
  });
}

Expected<void> hoist_out_of_loops(LlvmCode& code) {
  return run_on_functions(code, llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                                      /*UseMemorySSA=*/true));
}

Expected<void> remove_redundant_loads(LlvmCode& code) { return run_on_functions(code, llvm::GVNPass()); }

Expected<void> forward_shared(LlvmCode& code) {
  code.forget_analyses();
  return for_each_function(code, [](llvm::Function& function) { forward_shared(function); });
}

Expected<void> choose_extremes(LlvmCode& code) {
  code.forget_analyses();
  return for_each_function(code, [](llvm::Function& function) { choose_extremes(function); });
}

Expected<void> join_halves(LlvmCode& code) {
  code.forget_analyses();
  return for_each_function(code, [](llvm::Function& function) { join_halves(function); });
}

Expected<void> compose_shuffles(LlvmCode& code) {
  const llvm::MCSubtargetInfo& target = *code.machine.getMCSubtargetInfo();
  if (!target.checkFeatures("+avx2")) return {};
  const unsigned register_bits = target.checkFeatures("+avx512bw") ? 512 : 256;
  code.forget_analyses();
  return for_each_function(code,
                           [&](llvm::Function& function) { compose_shuffles(function, register_bits); });
}

Expected<void> combine_instructions(LlvmCode& code) {
  return run_on_functions(code, llvm::InstCombinePass());
}

Expected<void> remove_dead_code(LlvmCode& code) { return run_on_functions(code, llvm::ADCEPass()); }

Expected<void> keep_halves_packed(LlvmCode& code) {
  code.forget_analyses();
  const llvm::MCSubtargetInfo& target = *code.machine.getMCSubtargetInfo();
  const bool sorts = target.checkFeatures("+avx2") && !target.checkFeatures("+avx512bw");
  return for_each_function(code, [&](llvm::Function& function) {
    keep_halves_packed(function);
    if (sorts) sort_halves(function);
  });
}

Expected<void> check_bases(LlvmCode& code) {
  code.forget_analyses();
  return for_each_function(code, [](llvm::Function& function) { check_bases(function); });
}

Expected<void> share_checks(LlvmCode& code) {
  code.forget_analyses();
  return for_each_function(code, [](llvm::Function& function) { share_checks(function); });
}

/// By default, the code generator runs these passes first (llvm_target.cpp disables them).
Expected<void> reduce_loop_strength(LlvmCode& code) {
  llvm::LoopPassManager loop_passes;
  loop_passes.addPass(llvm::CanonicalizeFreezeInLoopsPass());
  loop_passes.addPass(llvm::LoopStrengthReducePass());
  set_pass(code, llvm::createFunctionToLoopPassAdaptor(std::move(loop_passes)));
  return for_each_function(code, [&](llvm::Function& function) {
    auto& analyses = code.analyses().functions();
    const auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
    if (loops.getLoopsInPreorder().size() <= kMaxReducedLoops) code.passes->run(function, analyses);
  });
}

Expected<void> narrow_accesses(LlvmCode& code) {
  code.forget_analyses();
  return for_each_function(code, [](llvm::Function& function) { narrow_accesses(function); });
}

Expected<void> keep_load_order(LlvmCode& code) {
  return for_each_function(code, [](llvm::Function& function) { keep_load_order(function); });
}

/// For AMD's processors. Measured on Zen 5 (docs/decisions/0057-masked-accesses.md).
Expected<void> prefetch_masked(LlvmCode& code) {
  if (!is_zen(code.machine.getTargetCPU())) return {};
  code.forget_analyses();
  return for_each_function(code, [](llvm::Function& function) { prefetch_masked(function); });
}

/// Not with mask registers: they were not measured.
Expected<void> loop_over_lanes(LlvmCode& code) {
  const llvm::MCSubtargetInfo& target = *code.machine.getMCSubtargetInfo();
  if (target.checkFeatures("+avx512bw")) return {};
  const unsigned register_bits = target.checkFeatures("+avx2") ? 256 : 128;
  code.forget_analyses();
  return for_each_function(code, [&](llvm::Function& function) { loop_over_lanes(function, register_bits); });
}

Expected<void> compute_masks_as_lanes(LlvmCode& code) {
  return for_each_function_of(code, false, &compute_masks_as_lanes);
}

Expected<void> compute_masks_as_words(LlvmCode& code) {
  return for_each_function_of(code, true, &compute_masks_as_words);
}

Expected<void> keep_logic_from_selects(LlvmCode& code) {
  return for_each_function_of(code, true, &keep_logic_from_selects);
}

}  // namespace quern::cpu::emit
