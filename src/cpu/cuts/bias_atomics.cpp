// SPDX-License-Identifier: Apache-2.0
// Finds kernels whose atomic operations are all made by warps at neighbouring addresses, others in each
// block: there, each region of memory mostly has one worker that updates it. See
// docs/decisions/0068-biased-regions.md.
#include <algorithm>

#include "cpu/abi/bias.hpp"
#include "cpu/analysis/block_step.hpp"
#include "cpu/cuts/accesses.hpp"
#include "cpu/cuts/passes.hpp"

namespace quern::cpu::cuts {
namespace {

using ir::Op;

/// True if the instruction may write memory that other workers update at the same time.
bool competes(const ir::Inst& inst) {
  if (!may_be_global(inst)) return false;
  return inst.op == Op::store ? ir::is_ordered(inst.attr)
                              : inst.op == Op::atomic && inst.attr.scope != ir::Scope::cta;
}

/// True if the lanes access elements that are near each other, but not all the same one, as far as full code
/// is concerned.
bool is_near(const analysis::LanePattern& pattern, std::int64_t bytes) {
  if (pattern.kind != analysis::LanePatternKind::affine || pattern.terms.size() != 1) return false;
  const analysis::Term& term = pattern.terms[0];
  if (term.coefficient != ir::kNone) return false;
  const auto [least, greatest] = std::ranges::minmax(term.offsets);
  return greatest - least + bytes <= static_cast<std::int64_t>(engine::kBiasRegionBytes);
}

bool can_be_biased(const Plan& plan, const ir::Inst& inst) {
  if (inst.op != Op::atomic) return false;
  const std::uint32_t bytes = ir::byte_size((*plan.function)[inst.args[1]].type);
  return is_unordered(inst) && inst.attr.scope != ir::Scope::sys && (bytes == 4 || bytes == 8) &&
         is_near(plan.full.patterns[inst.args[0]], bytes) &&
         !analysis::same_in_all_blocks(*plan.function, inst.args[0]);
}

}  // namespace

void bias_atomics(ir::Function& function, Plan& plan, const Specialisation& specialisation) {
  if (specialisation.alone || plan.module == nullptr || &function != &plan.module->functions[0]) return;
  bool any = false, all = plan.has_full && !plan.dispatched && plan.module->functions.size() == 1;
  for (const ir::Function& each : plan.module->functions)
    for (const ir::Block& block : each.blocks)
      for (const ir::Value value : block.insts) {
        const ir::Inst& inst = each[value];
        if (!competes(inst)) continue;
        any = true;
        all = all && can_be_biased(plan, inst);
      }
  if (!any) return;
  plan.atomics = all ? ir::AtomicUse::biased : ir::AtomicUse::other;
  if (!all) return;
  for (const ir::Block& block : function.blocks)
    for (const ir::Value value : block.insts) function[value].attr.biased = competes(function[value]);
}

}  // namespace quern::cpu::cuts
