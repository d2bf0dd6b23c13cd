// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "cpu/analysis/algebra.hpp"
#include "cpu/analysis/below.hpp"
#include "cpu/analysis/control.hpp"
#include "cpu/analysis/counters.hpp"
#include "cpu/analysis/divergence.hpp"
#include "cpu/analysis/halves.hpp"
#include "cpu/analysis/regular.hpp"
#include "cpu/analysis/residues.hpp"
#include "cpu/analysis/rules.hpp"
#include "cpu/analysis/source_location.hpp"
#include "cpu/analysis/structure.hpp"

namespace quern::cpu::analysis {
namespace {

/// After the first number of evaluations of a value its bounds are dropped; after the second one it becomes
/// varying.
constexpr std::uint32_t kWidenAfter = 3;
constexpr std::uint32_t kGiveUpAfter = 100;
/// Depth of the search for operands that are the same in every iteration of a loop.
constexpr unsigned kInvarianceDepth = 6;

bool same(const LanePattern& a, const LanePattern& b) {
  return a.kind == b.kind && a.constant == b.constant && a.base_align == b.base_align && a.terms == b.terms &&
         a.exact == b.exact && a.index == b.index && a.index_signed == b.index_signed && a.scale == b.scale &&
         a.min == b.min && a.max == b.max;
}

/// Computes patterns and divergence together, optimistically: every value starts as undefined and only
/// becomes less precise.
class Solver {
 public:
  Solver(const ir::Module& module, const ir::Function& function, const Specialisation& specialisation,
         Assumption assumption, const Structure& structure, Analysis& analysis)
      : function_(function),
        structure_(structure),
        analysis_(analysis),
        apart_(assumption == Assumption::apart),
        optimistic_(assumption == Assumption::optimistic),
        rules_(module, function, specialisation, assumption, analysis.patterns),
        by_data_(analysis),
        divergence_(structure, analysis),
        data_divergence_(structure, by_data_),
        number_(function.insts.size(), ir::kNone),
        users_(function.insts.size()),
        counters_(function.insts.size()),
        evaluations_(function.insts.size()) {
    analysis_.patterns.assign(function.insts.size(), LanePattern{});
    analysis_.assumed.assign(function.insts.size(), false);
    analysis_.together.assign(function.insts.size(), false);
    analysis_.divergent_branch.assign(function.blocks.size(), false);
  }

  void run() {
    prepare();
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
      const ir::Value value = sequence_[queue_.back()];
      queued_[queue_.back()] = false;
      queue_.pop_back();
      if (ir::has_trait(function_[value].op, 't')) {
        check_branch(value);
      } else {
        update(value);
      }
    }
  }

 private:
  void prepare() {
    for (const ir::BlockId block : analysis_.order)
      for (const ir::Value value : function_.blocks[block].insts) {
        number_[value] = static_cast<std::uint32_t>(sequence_.size());
        sequence_.push_back(value);
        for (const ir::Value arg : function_[value].args) users_[arg].push_back(value);
        if (asks_for_sign(function_[value]))
          for (const ir::Value number : numbers_of_sign(function_, function_[value]))
            users_[number].push_back(value);
        if (function_[value].op != ir::Op::phi) continue;
        counters_[value] = find_counter(function_, analysis_, value);
        if (counters_[value])
          for (const Counter::Test& test : counters_[value]->tests) users_[test.limit].push_back(value);
      }
    queued_.assign(sequence_.size(), true);
    for (std::uint32_t i = 0; i < sequence_.size(); ++i) queue_.push_back(i);  // sorted, so it is a heap
  }
  /// Its pattern may depend on those of numbers_of_sign, which are not always its operands.
  static bool asks_for_sign(const ir::Inst& inst) {
    return inst.op == ir::Op::lshr || inst.op == ir::Op::ashr || inst.op == ir::Op::icmp;
  }
  void enqueue(ir::Value value) {
    const std::uint32_t number = number_[value];
    if (number == ir::kNone || queued_[number]) return;
    queued_[number] = true;
    queue_.push_back(number);
    std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
  }

  void check_branch(ir::Value terminator) {
    const ir::Inst& inst = function_[terminator];
    const ir::BlockId block = inst.block;
    if (inst.args.empty() || analysis_.divergent_branch[block] || apart_) return;
    const LanePatternKind kind = analysis_.patterns[inst.args[0]].kind;
    const std::vector<ir::BlockId>& succs = structure_.graph.succs[block];
    const bool one_way =
        std::all_of(succs.begin(), succs.end(), [&](ir::BlockId to) { return to == succs[0]; });
    if (kind == LanePatternKind::undefined || kind == LanePatternKind::uniform || one_way) return;
    analysis_.divergent_branch[block] = true;
    std::vector<ir::BlockId> changed;
    divergence_.split(block, changed);
    if (optimistic_ && !is_regular(function_, analysis_.patterns, inst.args[0]))
      data_divergence_.split(block, changed);
    for (const ir::BlockId join : changed)
      for (const ir::Value value : function_.blocks[join].insts)
        if (function_[value].op == ir::Op::phi) enqueue(value);
  }

  void update(ir::Value value) {
    LanePattern& old = analysis_.patterns[value];
    const bool is_phi = function_[value].op == ir::Op::phi;
    Rules::Result result = is_phi ? Rules::Result{phi(value)} : rules_.evaluate(value);
    LanePattern& pattern = result.pattern;
    const std::uint32_t bits = ir::bit_size(function_[value].type);
    if (apart_ && !is_phi && bits != 0 && pattern.kind != LanePatternKind::undefined &&
        !is_timeless(function_[value]))
      make_varying(pattern, bits);
    if (old.kind != LanePatternKind::undefined) {
      const bool regained = pattern.kind < old.kind;
      const bool other_terms = pattern.kind == old.kind &&
                               (pattern.terms != old.terms || pattern.index != old.index ||
                                pattern.index_signed != old.index_signed || pattern.scale != old.scale);
      if (regained || other_terms || ++evaluations_[value] >= kGiveUpAfter) pattern = varying_pattern(bits);
    }
    analysis_.assumed[value] = result.assumed && pattern.kind != LanePatternKind::varying;
    if (same(pattern, old)) return;
    old = std::move(pattern);
    for (const ir::Value user : users_[value]) enqueue(user);
  }

  static void make_varying(LanePattern& pattern, std::uint32_t bits) {
    const Range range = range_of(pattern);
    pattern = varying_pattern(bits);
    set_range(pattern, range);
  }
  static bool is_clock(const ir::Inst& inst) {
    const auto which = static_cast<ir::Special>(inst.imm);
    return inst.op == ir::Op::special && which >= ir::Special::clock && which <= ir::Special::globaltimer_hi;
  }
  /// True if equal operands always give equal results, at any time and in any lanes.
  static bool is_timeless(const ir::Inst& inst) {
    if (inst.op == ir::Op::load) return inst.attr.invariant;
    return ir::has_trait(inst.op, 'p') && !is_clock(inst);
  }

  // --- phis
  LanePattern phi(ir::Value value) {
    const ir::Inst& inst = function_[value];
    const std::uint32_t bits = ir::bit_size(inst.type);
    LanePattern pattern;
    for (const ir::Value arg : inst.args) pattern = join(pattern, analysis_.patterns[arg]);
    if (pattern.kind == LanePatternKind::undefined) return pattern;
    const bool apart = (apart_ || divergence_.is_join(inst.block)) && !one_value(inst);
    analysis_.together[value] = false;
    if (loses_operands(inst, pattern))
      make_varying(pattern, bits);
    else if (apart || differs_in_time(inst, analysis_))
      assume_together(value, pattern);
    set_range(pattern, stable_range(value, pattern, bits));
    if (analysis_.together[value]) normalise(pattern, bits);
    return pattern;
  }
  /// Keeps the pattern of a phi at which lanes may be apart only if they are likely together. Lanes of
  /// different edges may form the pattern by wrapping, so only bounds tell that it is exact.
  void assume_together(ir::Value value, LanePattern& pattern) {
    const ir::Inst& inst = function_[value];
    const bool likely = optimistic_ && pattern.kind == LanePatternKind::affine &&
                        !data_divergence_.is_join(inst.block) && !differs_in_time(inst, by_data_);
    if (!likely) return make_varying(pattern, ir::bit_size(inst.type));
    pattern.exact = false;
    analysis_.together[value] = true;
  }
  /// True if the phi has the same value over every edge, independent of the lanes that take it.
  bool one_value(const ir::Inst& inst) const {
    const auto is_first = [&](ir::Value arg) { return arg == inst.args[0]; };
    if (std::all_of(inst.args.begin(), inst.args.end(), is_first)) return true;
    const LanePattern& first = analysis_.patterns[inst.args[0]];
    const std::uint32_t bits = ir::bit_size(inst.type);
    const auto lanes = known_lanes(first, bits);
    return lanes && std::all_of(inst.args.begin(), inst.args.end(), [&](ir::Value arg) {
             const LanePattern& pattern = analysis_.patterns[arg];
             return pattern.kind == LanePatternKind::undefined || known_lanes(pattern, bits) == lanes;
           });
  }
  /// True for a value with which some lanes leave a divergent loop in an earlier iteration than others.
  bool differs_in_time(const ir::Inst& inst, const Analysis& divergence) const {
    const std::vector<ir::BlockId>& preds = function_.blocks[inst.block].preds;
    for (std::size_t i = 0; i < preds.size(); ++i) {
      if (analysis_.position[preds[i]] == ir::kNone) continue;
      std::uint32_t loop = analysis_.loop_of[preds[i]];
      for (; loop != ir::kNone && !loop_contains(analysis_, loop, inst.block);
           loop = analysis_.loops[loop].parent)
        if (divergence.loops[loop].divergent && !is_invariant(inst.args[i], loop)) return true;
    }
    return false;
  }
  /// True if the value is the same in every iteration of `loop`. During the iteration over patterns this may
  /// change only with the value's own pattern; its users are then visited again.
  bool is_invariant(ir::Value value, std::uint32_t loop) const {
    const bool known =
        known_lanes(analysis_.patterns[value], ir::bit_size(function_[value].type)).has_value();
    return known || computes_the_same(value, loop, kInvarianceDepth);
  }
  bool computes_the_same(ir::Value value, std::uint32_t loop, unsigned depth) const {
    const ir::Inst& inst = function_[value];
    if (!loop_contains(analysis_, loop, inst.block)) return true;
    const bool steady = ir::has_trait(inst.op, 'p') && inst.op != ir::Op::phi && inst.op != ir::Op::extract &&
                        !is_clock(inst);
    const auto same = [&](ir::Value arg) { return computes_the_same(arg, loop, depth - 1); };
    return steady && depth > 0 && std::all_of(inst.args.begin(), inst.args.end(), same);
  }
  /// True if the pattern has terms or an index computed in a loop that does not contain the instruction.
  bool loses_operands(const ir::Inst& inst, const LanePattern& pattern) const {
    const auto inside = [&](ir::Value operand) {
      return operand == ir::kNone ||
             loop_contains(analysis_, analysis_.loop_of[function_[operand].block], inst.block);
    };
    if (pattern.kind == LanePatternKind::offset32) return !inside(pattern.index);
    return !std::all_of(pattern.terms.begin(), pattern.terms.end(),
                        [&](const Term& term) { return inside(term.coefficient); });
  }
  Range stable_range(ir::Value value, const LanePattern& pattern, std::uint32_t bits) const {
    const Range range = range_of(pattern);
    const LanePattern& old = analysis_.patterns[value];
    if (counters_[value] && pattern.kind == LanePatternKind::uniform && !pattern.constant)
      if (const std::optional<Range> counted = counter_range(*counters_[value], bits, analysis_.patterns))
        return *counted;
    if (old.kind == LanePatternKind::undefined || evaluations_[value] < kWidenAfter) return range;
    const Range full = full_range(ir::is_float(function_[value].type) ? 0 : bits);
    return {range.min < old.min ? full.min : std::min(range.min, old.min),
            range.max > old.max ? full.max : std::max(range.max, old.max)};
  }

  const ir::Function& function_;
  const Structure& structure_;
  Analysis& analysis_;
  bool apart_;
  bool optimistic_;
  Rules rules_;
  Analysis by_data_;  ///< the divergence that branches cause which are not regular
  DivergencePropagation divergence_;
  DivergencePropagation data_divergence_;
  std::vector<std::uint32_t> number_;  ///< by value: index in sequence_
  std::vector<ir::Value> sequence_;    ///< reachable values in the order of blocks
  std::vector<std::vector<ir::Value>> users_;
  std::vector<std::optional<Counter>> counters_;
  std::vector<std::uint32_t> evaluations_;
  std::vector<std::uint32_t> queue_;  ///< heap of indices in sequence_
  std::vector<bool> queued_;
};

/// Patterns of values that leave a divergent loop are correct only if the values leave through phis.
Expected<void> check_loop_exits(const ir::Function& function, const Analysis& analysis) {
  for (const ir::BlockId block : analysis.order)
    for (const ir::Value user : function.blocks[block].insts) {
      const ir::Inst& inst = function[user];
      for (std::size_t i = 0; i < inst.args.size(); ++i) {
        const ir::BlockId at = inst.op == ir::Op::phi ? function.blocks[block].preds[i] : block;
        const ir::Inst& used = function[inst.args[i]];
        if (used.op == ir::Op::constant || analysis.position[at] == ir::kNone) continue;
        std::uint32_t loop = analysis.loop_of[used.block];
        for (; loop != ir::kNone && !loop_contains(analysis, loop, at); loop = analysis.loops[loop].parent) {
          if (!analysis.loops[loop].divergent) continue;
          Diagnostic diagnostic;
          diagnostic.code = "internal";
          diagnostic.span = span_of(function, user);
          diagnostic.message =
              fmt::format("'{}' in kernel '{}' uses a value of a loop outside of it without a phi",
                          ir::name(inst.op), function.name);
          return diagnostic;
        }
      }
    }
  return {};
}

}  // namespace

Expected<Analysis> analyse(const ir::Module& module, const ir::Function& function,
                           const Specialisation& specialisation, Assumption assumption) {
  Analysis analysis;
  const bool apart = assumption == Assumption::apart;
  Expected<Structure> structure = find_structure(function, analysis, apart);
  if (!structure) return std::move(structure).errors();
  Solver(module, function, specialisation, assumption, *structure, analysis).run();
  analysis.residues = find_residues(module, function, analysis);
  analysis.halves = find_halves(function, analysis);
  analysis.below = find_below(function, analysis);
  if (apart) {
    analysis.divergent_control.assign(function.blocks.size(), true);
    return analysis;
  }
  find_divergent_control(function, *structure, analysis);
  if (Expected<void> checked = check_loop_exits(function, analysis); !checked)
    return std::move(checked).errors();
  return analysis;
}

}  // namespace quern::cpu::analysis
