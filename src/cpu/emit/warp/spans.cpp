// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/spans.hpp"

#include <algorithm>
#include <tuple>

#include "cpu/analysis/structure.hpp"

namespace quern::cpu::emit {
namespace {

class Finder {
 public:
  explicit Finder(const Plan& plan) : plan_(plan), function_(*plan.function), facts_(plan.masked) {}

  std::vector<MaskedVariable> run() {
    values_.resize(function_.insts.size());
    waiting_.resize(function_.blocks.size());
    for (const ir::BlockId block : facts_.order)
      if (plan_.masked_needed[block] || plan_.has_full) begin_in(block);
    for (const ir::BlockId block : facts_.order)
      if (plan_.masked_needed[block]) read_in(block);
    if (plan_.has_barriers) keep_for_barriers();
    return list();
  }

 private:
  struct Range {
    ir::BlockId first = ir::kNone;
    bool read = false;
    bool always = false;
    std::uint32_t end = 0;
  };

  bool is_phi(ir::Value value) const { return function_[value].op == ir::Op::phi; }

  void begin_in(ir::BlockId block) {
    const ir::BlockId meeting = before_meeting(block);
    waiting_[block].first = meeting;
    for (const ir::Value value : function_.blocks[block].insts)
      values_[value].first = is_phi(value) ? meeting : needed_above(block);
  }

  /// The nearest block with masked code, starting from `block` and going up the dominator tree.
  ir::BlockId needed_above(ir::BlockId block) const {
    while (block != ir::kNone && !plan_.masked_needed[block]) block = above(block);
    return block;
  }
  ir::BlockId above(ir::BlockId block) const { return block == 0 ? ir::kNone : facts_.idom[block]; }

  /// Returns a block that masked code runs before any lane is sent to `block`, and does not run again while
  /// lanes wait at `block` that left a loop in an earlier iteration than others.
  ir::BlockId before_meeting(ir::BlockId block) const {
    ir::BlockId at = needed_above(above(block));
    while (at != ir::kNone && analysis::leaves_divergent_loop(facts_, at, block))
      at = needed_above(above(at));
    return at;
  }

  void read_in(ir::BlockId block) {
    read(waiting_[block], block);
    for (const ir::Value value : plan_.live_in[block]) read(values_[value], block);
    for (const ir::Value value : function_.blocks[block].insts) read(values_[value], block);
    // predecessors read the variables to add their lanes
    for (const ir::BlockId pred : function_.blocks[block].preds) {
      if (!plan_.masked_needed[pred]) continue;
      read(waiting_[block], pred);
      for (const ir::Value value : function_.blocks[block].insts) {
        if (!is_phi(value)) break;
        read(values_[value], pred);
      }
    }
  }

  void read(Range& range, ir::BlockId block) {
    range.read = true;
    range.end = std::max(range.end, facts_.position[block]);
    for (std::uint32_t loop = facts_.loop_of[block]; loop != ir::kNone; loop = facts_.loops[loop].parent) {
      if (range.first != ir::kNone && analysis::loop_contains(facts_, loop, range.first)) break;
      range.end = std::max(range.end, facts_.position[facts_.loops[loop].blocks.back()]);
    }
  }

  /// A barrier at which lanes are missing runs the lanes that are about to trap, so these variables are
  /// always read.
  void keep_for_barriers() {
    for (const ir::BlockId block : facts_.order) {
      if (function_[function_.blocks[block].insts.back()].op != ir::Op::trap) continue;
      waiting_[block].always = true;
      for (const ir::Value value : plan_.live_in[block]) values_[value].always = true;
      for (const ir::Value value : function_.blocks[block].insts)
        if (is_phi(value)) values_[value].always = true;
    }
  }

  std::vector<MaskedVariable> list() const {
    std::vector<MaskedVariable> variables;
    const auto add = [&](const Range& range, ir::Value value, ir::BlockId waiting) {
      if (!range.read) return;
      MaskedVariable made{.value = value, .waiting = waiting, .begin = 0, .end = range.end};
      if (range.always)
        made.end = static_cast<std::uint32_t>(facts_.order.size());
      else if (range.first != ir::kNone)
        made.begin = facts_.position[range.first] + 1;
      variables.push_back(made);
    };
    for (ir::Value value = 0; value < values_.size(); ++value)
      if (plan_.crosses[value]) add(values_[value], value, ir::kNone);
    for (ir::BlockId block = 0; block < waiting_.size(); ++block) add(waiting_[block], ir::kNone, block);
    std::ranges::sort(variables, {}, [](const MaskedVariable& each) {
      return std::tuple(each.begin, each.value, each.waiting);
    });
    return variables;
  }

  const Plan& plan_;
  const ir::Function& function_;
  const analysis::Analysis& facts_;
  std::vector<Range> values_;
  std::vector<Range> waiting_;
};

}  // namespace

Spans::Spans(const Plan& plan) : variables_(Finder(plan).run()) {}

std::span<const MaskedVariable> Spans::between(std::uint32_t first, std::uint32_t last) const {
  const auto begin = std::ranges::lower_bound(variables_, first, {}, &MaskedVariable::begin);
  const auto end = std::ranges::upper_bound(variables_, last, {}, &MaskedVariable::begin);
  return begin < end ? std::span(begin, end) : std::span<const MaskedVariable>{};
}

std::vector<MaskedVariable> Spans::passed(std::uint32_t first_begin, std::uint32_t to) const {
  std::vector<MaskedVariable> result;
  for (const MaskedVariable& each : between(first_begin, to))
    if (each.end >= to) result.push_back(each);
  return result;
}

}  // namespace quern::cpu::emit
