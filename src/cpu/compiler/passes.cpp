// SPDX-License-Identifier: Apache-2.0
#include "cpu/compiler/passes.hpp"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

#include "cpu/analysis/analysis.hpp"
#include "cpu/cuts/passes.hpp"
#include "cpu/emit/emit.hpp"
#include "cpu/lower/lower.hpp"
#include "cpu/lower/ssa/passes.hpp"

namespace quern::cpu {
namespace {

Expected<void> translate(Compilation& c) {
  Expected<lower::Translation> translation = lower::translate(*c.ptx, *c.entry, c.file_name, c.calls);
  if (!translation) return std::move(translation).errors();
  c.translation = std::move(*translation);
  return {};
}

/// A pass over each function under construction.
template <void (*kPass)(lower::FunctionBuilder&)>
Expected<void> builder(Compilation& c) {
  for (lower::FunctionBuilder& builder : c.translation.builders) kPass(builder);
  return {};
}

Expected<void> collect_functions(Compilation& c) {
  c.module = lower::collect_functions(std::exchange(c.translation, {}));
  return {};
}

/// Functions that are not inlined are called, unless threads wait for others in them or (in tests) the
/// dispatcher is requested.
Expected<void> choose_call_form(Compilation& c) {
  if (c.keeps_call_form || c.module.functions.size() == 1 || c.calls == lower::CallForm::activations)
    return {};
  if (!c.specialisation.dispatch && !analysis::waits_in_calls(c.module, c.specialisation)) return {};
  c.calls = lower::CallForm::activations;
  c.translate_again = true;
  return {};
}

Expected<void> check_operations(Compilation& c) { return emit::check_emittable(c.module); }

/// A pass over each function of finished IR and its plan.
template <auto kPass>
Expected<void> plan(Compilation& c) {
  for (std::size_t i = 0; i < c.plans.size(); ++i) {
    ir::Function& function = c.module.functions[i];
    if constexpr (std::is_void_v<decltype(kPass(function, c.plans[i], c.specialisation))>)
      kPass(function, c.plans[i], c.specialisation);
    else if (Expected<void> done = kPass(function, c.plans[i], c.specialisation); !done)
      return done;
  }
  return {};
}

Expected<void> choose_dispatch(Compilation& c) {
  c.plans.clear();
  for (ir::Function& function : c.module.functions) {
    cuts::Plan& made = c.plans.emplace_back();
    made.module = &c.module;
    made.function = &function;
  }
  return plan<cuts::choose_dispatch>(c);
}

Expected<void> gather_locations(Compilation& c) {
  c.locations = emit::gather_locations(c.module);
  return {};
}

Expected<void> emit_llvm(Compilation& c) {
  Expected<emit::OwnedLlvmCode> code = emit::emit_llvm(c.module, c.plans, c.specialisation, c.sites);
  if (!code) return std::move(code).errors();
  c.llvm = std::move(*code);
  return {};
}

/// A pass over the LLVM IR.
template <Expected<void> (*kPass)(emit::LlvmCode&)>
Expected<void> llvm(Compilation& c) {
  return kPass(*c.llvm);
}

/// Compact windows have no gaps that hold an index.
Expected<void> check_bases(Compilation& c) {
  return c.specialisation.compact ? Expected<void>() : emit::check_bases(*c.llvm);
}

/// Good code keeps its vectors in registers.
Expected<void> loop_over_lanes(Compilation& c) {
  return c.specialisation.opt_level == kQuickLevel ? emit::loop_over_lanes(*c.llvm) : Expected<void>();
}

Expected<void> link_image(Compilation& c) {
  Expected<CodeImage> image = emit::link_image(*c.llvm, c.module, std::move(c.locations));
  if (!image) return std::move(image).errors();
  c.image = std::move(*image);
  return {};
}

}  // namespace

std::span<const Pass> pass_list() {
  static constexpr Pass kPasses[] = {
      // PTX -> SIMT IR, function by function (lower/ssa/passes.hpp)
      {"translate", Form::builder, &translate},
      {"drop_unreachable", Form::builder, &builder<lower::drop_unreachable>},
      {"simplify_loops", Form::builder, &builder<lower::simplify_loops>},
      {"split_critical_edges", Form::builder, &builder<lower::split_critical_edges>},
      {"build_ssa", Form::builder, &builder<lower::build_ssa>},
      {"propagate", Form::builder, &builder<lower::propagate>},
      {"forget_lost_bits", Form::builder, &builder<lower::forget_lost_bits>},
      {"share_values", Form::builder, &builder<lower::share_values>},
      {"join_divisions", Form::builder, &builder<lower::join_divisions>},
      {"narrow_to_low_words", Form::builder, &builder<lower::narrow_to_low_words>},
      {"join_conversions", Form::builder, &builder<lower::join_conversions>},
      {"narrow_compares", Form::builder, &builder<lower::narrow_compares>},
      {"hoist_invariants", Form::builder, &builder<lower::hoist_invariants>},
      {"remove_dead", Form::builder, &builder<lower::remove_dead>},
      {"settle_nan_bits", Form::builder, &builder<lower::settle_nan_bits>},
      {"merge_chains", Form::builder, &builder<lower::merge_chains>},
      {"merge_stores", Form::builder, &builder<lower::merge_stores>},
      {"order_loads", Form::builder, &builder<lower::order_loads>},
      {"close_loops", Form::builder, &builder<lower::close_loops>},
      {"number_all", Form::builder, &builder<lower::number_all>},
      {"interleave_local", Form::builder, &builder<lower::interleave_local>},
      {"collect_functions", Form::simt, &collect_functions},
      {"choose_call_form", Form::simt, &choose_call_form},
      {"check_operations", Form::checked, &check_operations},
      {"choose_dispatch", Form::checked, &choose_dispatch},
      // SIMT IR -> plans (cuts/passes.hpp)
      {"load_both_places", Form::cut, &plan<cuts::load_both_places>},
      {"unroll_rounds", Form::cut, &plan<cuts::unroll_rounds>},
      {"join_sides", Form::cut, &plan<cuts::join_sides>},
      {"place_extracts", Form::cut, &plan<cuts::place_extracts>},
      {"cut_at_waits", Form::cut, &plan<cuts::cut_at_waits>},
      {"cut_after_barriers", Form::cut, &plan<cuts::cut_after_barriers>},
      {"analyse_uncut", Form::cut, &plan<cuts::analyse_uncut>},
      {"merge_neighbours", Form::cut, &plan<cuts::merge_neighbours>},
      {"hoist_widenings", Form::cut, &plan<cuts::hoist_widenings>},
      {"choose_gangs", Form::cut, &plan<cuts::choose_gangs>},
      {"cut_before_assumed", Form::cut, &plan<cuts::cut_before_assumed>},
      {"cut_where_gangs_part", Form::cut, &plan<cuts::cut_where_gangs_part>},
      {"analyse_masked", Form::cut, &plan<cuts::analyse_masked>},
      {"analyse_full", Form::cut, &plan<cuts::analyse_full>},
      {"find_serial_code", Form::cut, &plan<cuts::find_serial_code>},
      {"find_lanes_in_turn", Form::cut, &plan<cuts::find_lanes_in_turn>},
      {"begin_loops_eagerly", Form::cut, &plan<cuts::begin_loops_eagerly>},
      {"find_ends", Form::cut, &plan<cuts::find_ends>},
      {"find_waits", Form::cut, &plan<cuts::find_waits>},
      {"choose_versions", Form::cut, &plan<cuts::choose_versions>},
      {"find_live_values", Form::cut, &plan<cuts::find_live_values>},
      {"find_streamed_stores", Form::cut, &plan<cuts::find_streamed_stores>},
      {"find_bounded_branches", Form::cut, &plan<cuts::find_bounded_branches>},
      {"bias_atomics", Form::cut, &plan<cuts::bias_atomics>},
      {"gather_updates", Form::cut, &plan<cuts::gather_updates>},
      {"gather_locations", Form::cut, &gather_locations},
      // SIMT IR + plans -> LLVM IR -> machine code (emit/emit.hpp)
      {"emit_llvm", Form::llvm, &emit_llvm},
      {"verify_llvm", Form::llvm, &llvm<emit::verify_llvm>},
      {"promote_slots", Form::llvm, &llvm<emit::promote_slots>, kQuickLevel},
      {"replace_aggregates", Form::llvm, &llvm<emit::replace_aggregates>, kQuickLevel},
      {"merge_equal_values", Form::llvm, &llvm<emit::merge_equal_values>, kQuickLevel},
      {"simplify_control_flow", Form::llvm, &llvm<emit::simplify_control_flow>, kQuickLevel},
      {"combine_small_functions", Form::llvm, &llvm<emit::combine_small_functions>, kGoodLevel},
      {"hoist_out_of_loops", Form::llvm, &llvm<emit::hoist_out_of_loops>, kGoodLevel},
      {"forward_shared", Form::llvm, &llvm<emit::forward_shared>, kGoodLevel},
      {"remove_redundant_loads", Form::llvm, &llvm<emit::remove_redundant_loads>, kGoodLevel},
      {"choose_extremes", Form::llvm, &llvm<emit::choose_extremes>, kGoodLevel},
      {"join_halves", Form::llvm, &llvm<emit::join_halves>, kGoodLevel},
      {"compose_shuffles", Form::llvm, &llvm<emit::compose_shuffles>, kGoodLevel},
      {"combine_instructions", Form::llvm, &llvm<emit::combine_instructions>, kGoodLevel},
      {"remove_dead_code", Form::llvm, &llvm<emit::remove_dead_code>, kQuickLevel},
      {"simplify_control_flow_again", Form::llvm, &llvm<emit::simplify_control_flow>, kGoodLevel},
      {"keep_halves_packed", Form::llvm, &llvm<emit::keep_halves_packed>, kGoodLevel},
      {"check_bases", Form::llvm, &check_bases, kGoodLevel},
      {"share_checks", Form::llvm, &llvm<emit::share_checks>, kGoodLevel},
      {"reduce_loop_strength", Form::llvm, &llvm<emit::reduce_loop_strength>, kGoodLevel},
      {"narrow_accesses", Form::llvm, &llvm<emit::narrow_accesses>, kQuickLevel},
      {"keep_load_order", Form::llvm, &llvm<emit::keep_load_order>, kQuickLevel},
      {"prefetch_masked", Form::llvm, &llvm<emit::prefetch_masked>, kQuickLevel},
      {"loop_over_lanes", Form::llvm, &loop_over_lanes, kQuickLevel},
      {"compute_masks_as_lanes", Form::llvm, &llvm<emit::compute_masks_as_lanes>, kGoodLevel},
      {"compute_masks_as_words", Form::llvm, &llvm<emit::compute_masks_as_words>},
      {"keep_logic_from_selects", Form::llvm, &llvm<emit::keep_logic_from_selects>},
      {"make_object", Form::object, &llvm<emit::make_object>},
      {"link_image", Form::image, &link_image},
  };
  return kPasses;
}

Expected<void> run_passes(Compilation& compilation, Form from, Form to, std::span<const AfterPass> hooks) {
  return run_passes(compilation, std::ranges::find(pass_list(), from, &Pass::form)->name, to, hooks);
}

Expected<void> run_passes(Compilation& compilation, std::string_view first, Form to,
                          std::span<const AfterPass> hooks) {
  const std::span<const Pass> passes = pass_list();
  const auto begin = std::ranges::find(passes, first, &Pass::name);
  const auto makes_last = [&](const Pass& pass) { return pass.form == to; };
  const auto end = std::find_if(passes.rbegin(), passes.rend(), makes_last).base();
  for (auto pass = begin; pass < end;) {
    const auto start = std::chrono::steady_clock::now();
    if (compilation.specialisation.opt_level >= pass->least_level)
      if (Expected<void> done = pass->run(compilation); !done) return done;
    const auto time = std::chrono::steady_clock::now() - start;
    for (const AfterPass& hook : hooks)
      if (Expected<void> done = hook(*pass, compilation, time); !done) return done;
    pass = std::exchange(compilation.translate_again, false) ? begin : std::next(pass);
  }
  return {};
}

}  // namespace quern::cpu
