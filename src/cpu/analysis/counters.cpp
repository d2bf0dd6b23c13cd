// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/counters.hpp"

#include <algorithm>
#include <utility>

#include "cpu/ir/fold.hpp"

namespace quern::cpu::analysis {
namespace {

using ir::sign_extend;

__extension__ using Wide = __int128;

ir::Icmp negated(ir::Icmp how) {
  switch (how) {
    case ir::Icmp::eq:
      return ir::Icmp::ne;
    case ir::Icmp::ne:
      return ir::Icmp::eq;
    case ir::Icmp::slt:
      return ir::Icmp::sge;
    case ir::Icmp::sle:
      return ir::Icmp::sgt;
    case ir::Icmp::sgt:
      return ir::Icmp::sle;
    case ir::Icmp::sge:
      return ir::Icmp::slt;
    case ir::Icmp::ult:
      return ir::Icmp::uge;
    case ir::Icmp::ule:
      return ir::Icmp::ugt;
    case ir::Icmp::ugt:
      return ir::Icmp::ule;
    case ir::Icmp::uge:
      return ir::Icmp::ult;
  }
  return how;
}

/// `next` is phi + step.
std::optional<std::int64_t> step_of(const ir::Function& function, ir::Value phi, ir::Value next) {
  const ir::Inst& inst = function[next];
  if (inst.op != ir::Op::iadd && inst.op != ir::Op::isub) return std::nullopt;
  ir::Value by = inst.args[0] == phi ? inst.args[1] : ir::kNone;
  if (inst.op == ir::Op::iadd && inst.args[1] == phi) by = inst.args[0];
  if (by == ir::kNone || function[by].op != ir::Op::constant) return std::nullopt;
  const std::int64_t step = sign_extend(function[by].imm, ir::bit_size(inst.type));
  if (step == 0 || step == INT64_MIN) return std::nullopt;
  return inst.op == ir::Op::iadd ? step : -step;
}

void add_test(const ir::Function& function, const Analysis& analysis, std::uint32_t loop, ir::BlockId block,
              ir::Value phi, ir::Value next, Counter& counter) {
  const std::vector<ir::BlockId>& succs = function.blocks[block].succs;
  const ir::Inst& branch = function[function.blocks[block].insts.back()];
  if (branch.op != ir::Op::cond_br) return;
  const bool taken_stays = loop_contains(analysis, loop, succs[0]);
  if (taken_stays == loop_contains(analysis, loop, succs[1])) return;
  const ir::Inst& condition = function[branch.args[0]];
  if (condition.op != ir::Op::icmp) return;
  Counter::Test test;
  test.stay = taken_stays ? condition.attr.icmp : negated(condition.attr.icmp);
  const auto is_counter = [&](ir::Value value) { return value == phi || value == next; };
  const bool second = !is_counter(condition.args[0]);
  if (!is_counter(condition.args[second ? 1 : 0])) return;
  if (second) test.stay = ir::swapped(test.stay);
  test.on_next = condition.args[second ? 1 : 0] == next;
  test.limit = condition.args[second ? 0 : 1];
  counter.tests.push_back(test);
}

struct Span {
  Wide min;
  Wide max;
};

/// The largest possible value of the tested counter while the loop continues, for a loop that counts up. For
/// a loop that counts down, the caller negates values and limits.
std::optional<Wide> last_tested(ir::Icmp stay, const Span& start, const Span& limit, Wide step, bool down) {
  switch (stay) {
    case ir::Icmp::slt:
    case ir::Icmp::sgt:
      if ((stay == ir::Icmp::sgt) != down) return std::nullopt;
      return limit.max - 1;
    case ir::Icmp::sle:
    case ir::Icmp::sge:
      if ((stay == ir::Icmp::sge) != down) return std::nullopt;
      return limit.max;
    case ir::Icmp::ult:
    case ir::Icmp::ule:
      if (down || limit.min < 0 || start.min < 0) return std::nullopt;
      return stay == ir::Icmp::ult ? limit.max - 1 : limit.max;
    case ir::Icmp::ne: {
      const bool known = start.min == start.max && limit.min == limit.max;
      const Wide distance = limit.min - start.min;
      if (!known || distance <= 0 || distance % step != 0) return std::nullopt;
      return limit.min - step;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Counter> find_counter(const ir::Function& function, const Analysis& analysis, ir::Value phi) {
  const ir::BlockId header = function[phi].block;
  const std::uint32_t loop = analysis.loop_of[header];
  if (loop == ir::kNone || analysis.loops[loop].header != header) return std::nullopt;
  const std::vector<ir::BlockId>& preds = function.blocks[header].preds;
  if (preds.size() != 2 || ir::is_float(function[phi].type)) return std::nullopt;
  const std::size_t latch = loop_contains(analysis, loop, preds[1]) ? 1 : 0;
  if (!loop_contains(analysis, loop, preds[latch]) || loop_contains(analysis, loop, preds[1 - latch]))
    return std::nullopt;
  const ir::Value next = function[phi].args[latch];
  const std::optional<std::int64_t> step = step_of(function, phi, next);
  if (!step) return std::nullopt;
  Counter counter;
  counter.start = function[phi].args[1 - latch];
  counter.step = *step;
  // Every iteration that continues executes the blocks that dominate the latch.
  for (ir::BlockId block = preds[latch];; block = analysis.idom[block]) {
    add_test(function, analysis, loop, block, phi, next, counter);
    if (block == header) break;
  }
  if (counter.tests.empty()) return std::nullopt;
  return counter;
}

std::optional<Range> counter_range(const Counter& counter, std::uint32_t bits,
                                   const std::vector<LanePattern>& patterns) {
  const bool down = counter.step < 0;
  const auto span_of = [&](ir::Value value) {
    const LanePattern& pattern = patterns[value];
    return down ? Span{-Wide{pattern.max}, -Wide{pattern.min}} : Span{pattern.min, pattern.max};
  };
  const Range full = full_range(bits);
  const Wide highest = down ? -Wide{full.min} : Wide{full.max};
  const Wide step = down ? -Wide{counter.step} : Wide{counter.step};
  const Span start = span_of(counter.start);
  std::optional<Wide> most;
  for (const Counter::Test& test : counter.tests) {
    if (patterns[test.limit].kind == LanePatternKind::undefined) continue;
    const std::optional<Wide> last = last_tested(test.stay, start, span_of(test.limit), step, down);
    if (!last) continue;
    // The step before the test must not wrap either.
    const Wide reached = test.on_next ? *last : *last + step;
    const Wide computed = test.on_next ? std::max(start.max, *last) + step : reached;
    if (computed > highest) continue;
    const Wide bound = std::max(start.max, reached);
    most = most ? std::min(*most, bound) : bound;
  }
  if (!most) return std::nullopt;
  const auto narrow = [](Wide number) { return static_cast<std::int64_t>(number); };
  return down ? Range{narrow(-*most), narrow(-start.min)} : Range{narrow(start.min), narrow(*most)};
}

}  // namespace quern::cpu::analysis
