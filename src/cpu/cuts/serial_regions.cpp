// SPDX-License-Identifier: Apache-2.0
#include "cpu/cuts/serial_regions.hpp"

#include <algorithm>
#include <bit>

#include "cpu/analysis/structure.hpp"
#include "cpu/cuts/joint.hpp"

namespace quern::cpu::cuts {
namespace {

using analysis::Analysis;
using analysis::LanePattern;
using analysis::LanePatternKind;

/// Limit for the number of instructions in a region times the width of the gang: the code of each warp is
/// emitted separately.
constexpr std::size_t kMaxSerialInsts = 1200;
/// The same for all regions together.
constexpr std::size_t kMaxAllSerialInsts = 5000;
/// A value in this range is likely an index in the block.
constexpr std::int64_t kMaxBlockIndex = 1023;
constexpr std::uint32_t kAllLanes = 0xffffffffu;

class Finder {
 public:
  Finder(const ir::Function& function, const Analysis& facts, const Analysis& shape, const GangPlan& gang,
         const std::vector<std::vector<ir::Value>>& tests, KnownLanes* known)
      : function_(function),
        facts_(facts),
        patterns_(facts.patterns),
        shape_(shape),
        gang_(gang),
        tests_(tests),
        known_(known) {}

  SerialRegion find(ir::BlockId branch) const {
    const ir::BlockId join = shape_.ipostdom[branch];
    if (join == ir::kNone || shape_.position[join] <= shape_.position[branch]) return {};
    SerialRegion region{.join = join, .blocks = blocks_between(branch, join)};
    if (assumes_together(join)) return {};
    std::size_t insts = 0;
    for (const ir::BlockId id : region.blocks) {
      if (!is_allowed(id)) return {};
      insts += function_.blocks[id].insts.size();
    }
    if (insts * gang_.width > kMaxSerialInsts) return {};
    region.all_lanes = find_all_lanes(branch, region.blocks);
    if (known_ != nullptr) find_known_lanes(region, branch);
    if (gang_.width <= 1) return is_for_one_warp(region, branch) ? region : SerialRegion{};
    find_joint(region, branch);
    const std::uint32_t loop = shape_.loop_of[branch];
    const bool leaves = !analysis::loop_contains(shape_, loop, join);
    region.together = leaves || may_agree(terminator(branch).args[0]);
    return region;
  }

 private:
  const ir::Inst& terminator(ir::BlockId id) const { return function_[function_.blocks[id].insts.back()]; }

  /// The blocks on paths from `from` to `to`, without `to`, in order.
  std::vector<ir::BlockId> blocks_between(ir::BlockId from, ir::BlockId to) const {
    std::vector<bool> seen(function_.blocks.size(), false);
    std::vector<ir::BlockId> found, open{from};
    while (!open.empty()) {
      const ir::BlockId id = open.back();
      open.pop_back();
      for (const ir::BlockId successor : function_.blocks[id].succs) {
        if (successor == to || seen[successor]) continue;
        seen[successor] = true;
        found.push_back(successor);
        open.push_back(successor);
      }
    }
    std::ranges::sort(found, {}, [&](ir::BlockId id) { return shape_.position[id]; });
    return found;
  }

  void find_joint(SerialRegion& region, ir::BlockId branch) const {
    if (std::ranges::find(region.blocks, branch) != region.blocks.end()) return;
    for (const ir::BlockId id : function_.blocks[branch].succs) {
      if (id == region.join || function_.blocks[id].preds != std::vector{branch}) continue;
      region.joint_head = find_joint_head(function_, patterns_, gang_, id);
      if (region.joint_head == 0) continue;
      region.joint_block = id;
      return;
    }
  }

  bool assumes_together(ir::BlockId id) const {
    return std::ranges::any_of(function_.blocks[id].insts, [&](ir::Value value) {
      return function_[value].op == ir::Op::phi && facts_.together[value];
    });
  }

  bool is_allowed(ir::BlockId id) const {
    if (!tests_[id].empty() || assumes_together(id)) return false;
    const auto allowed = [&](ir::Value value) {
      switch (function_[value].op) {
        case ir::Op::barrier:
        case ir::Op::barrier_arrive:
        case ir::Op::barrier_reduce:
        case ir::Op::call:
        case ir::Op::trap:
        case ir::Op::ret:
        case ir::Op::exit:
          return false;
        default:
          return true;
      }
    };
    return std::ranges::all_of(function_.blocks[id].insts, allowed);
  }

  /// The lanes that may leave `id` to `successor`, if known: those with which the warp runs `id` are `lanes`.
  std::uint32_t lanes_on_edge(ir::BlockId id, ir::BlockId successor, std::uint32_t lanes) const {
    const ir::Inst& last = terminator(id);
    if (std::has_single_bit(lanes) || !splits_lanes(id)) return lanes;
    if (last.op != ir::Op::cond_br || function_.blocks[id].succs[0] == function_.blocks[id].succs[1])
      return 0;
    const std::uint32_t takes = known_->find(last.args[0], function_.blocks[id].succs[0] == successor);
    return lanes == kAllLanes ? takes : 0;
  }

  /// A block has known lanes if it is entered with the same ones over each edge.
  void find_known_lanes(SerialRegion& region, ir::BlockId branch) const {
    std::vector<std::uint32_t> lanes(function_.blocks.size(), 0);
    lanes[branch] = kAllLanes;
    for (const ir::BlockId id : region.blocks) {
      const std::vector<ir::BlockId>& preds = function_.blocks[id].preds;
      const auto from = [&](ir::BlockId pred) { return lanes_on_edge(pred, id, lanes[pred]); };
      const std::uint32_t first = id == branch ? 0 : from(preds[0]);
      lanes[id] =
          std::ranges::all_of(preds, [&](ir::BlockId pred) { return from(pred) == first; }) ? first : 0;
      region.known_lanes.push_back(lanes[id]);
    }
  }

  /// True if full code of one warp runs the region with lanes that are known at compile time, so that its
  /// accesses need no masks. Masked code is as good for other lanes, and better in loops.
  bool is_for_one_warp(const SerialRegion& region, ir::BlockId branch) const {
    const auto is_beside = [&](ir::BlockId id) { return shape_.loop_of[id] == shape_.loop_of[branch]; };
    if (!is_beside(region.join) || !std::ranges::all_of(region.blocks, is_beside)) return false;
    bool any = false;
    for (std::size_t i = 0; i < region.blocks.size(); ++i) {
      const bool known = region.known_lanes[i] != 0;
      if (!known && function_.blocks[region.blocks[i]].insts.size() > 1) return false;
      any |= known;
    }
    return any;
  }

  bool splits_lanes(ir::BlockId id) const {
    const ir::Inst& last = terminator(id);
    const bool chooses = last.op == ir::Op::cond_br || last.op == ir::Op::switch_br;
    return chooses && patterns_[last.args[0]].kind != LanePatternKind::uniform;
  }

  std::vector<bool> find_all_lanes(ir::BlockId branch, const std::vector<ir::BlockId>& blocks) const {
    std::vector<bool> some(function_.blocks.size(), false);
    const auto mark = [&](ir::BlockId id) {
      if (!splits_lanes(id)) return;
      for (const ir::BlockId each : blocks_between(id, shape_.ipostdom[id])) some[each] = true;
    };
    mark(branch);
    std::ranges::for_each(blocks, mark);
    std::vector<bool> result;
    for (const ir::BlockId id : blocks) result.push_back(!some[id]);
    return result;
  }

  /// False if the warps certainly or probably disagree: the condition depends on data, or compares an index
  /// in the block with a constant.
  bool may_agree(ir::Value condition) const {
    const ir::Inst& inst = function_[condition];
    if (inst.op == ir::Op::and_ || inst.op == ir::Op::or_)
      return std::ranges::all_of(inst.args, [&](ir::Value arg) { return may_agree(arg); });
    if (inst.op == ir::Op::xor_ && patterns_[inst.args[1]].constant) return may_agree(inst.args[0]);
    if (patterns_[condition].kind == LanePatternKind::uniform && inst.op != ir::Op::icmp) return true;
    if (inst.op != ir::Op::icmp || !patterns_[inst.args[0]].scalar() || !patterns_[inst.args[1]].scalar())
      return false;
    return !is_fixed(inst.args[0], inst.args[1]) && !is_fixed(inst.args[1], inst.args[0]);
  }
  bool is_fixed(ir::Value index, ir::Value bound) const {
    const LanePattern& a = patterns_[index];
    const LanePattern& b = patterns_[bound];
    return b.kind == LanePatternKind::uniform && b.constant && a.min >= 0 && a.max <= kMaxBlockIndex;
  }

  const ir::Function& function_;
  const Analysis& facts_;
  const std::vector<LanePattern>& patterns_;  ///< of facts_
  const Analysis& shape_;
  const GangPlan& gang_;
  const std::vector<std::vector<ir::Value>>& tests_;
  KnownLanes* const known_;
};

}  // namespace

bool leave_together(const ir::Function& function, const std::vector<LanePattern>& patterns,
                    const GangPlan& gang, ir::BlockId block) {
  const ir::Inst& last = function[function.blocks[block].insts.back()];
  if (last.op != ir::Op::cond_br && last.op != ir::Op::switch_br) return true;
  return (gang.width <= 1 || gang.shared[last.args[0]]) &&
         patterns[last.args[0]].kind == LanePatternKind::uniform;
}

std::vector<SerialRegion> find_serial_regions(const ir::Function& function, const Analysis& facts,
                                              const GangPlan& gang,
                                              const std::vector<std::vector<ir::Value>>& tests,
                                              KnownLanes* known) {
  std::vector<SerialRegion> regions(function.blocks.size());
  Analysis shape;
  if (!analysis::find_structure(function, shape)) return regions;
  const Finder finder(function, facts, shape, gang, tests, known);
  std::size_t total = 0;
  for (const ir::BlockId id : shape.order) {
    const bool chooses = function[function.blocks[id].insts.back()].op == ir::Op::cond_br;
    if (!chooses || !tests[id].empty() || leave_together(function, facts.patterns, gang, id)) continue;
    SerialRegion region = finder.find(id);
    for (const ir::BlockId each : region.blocks) total += function.blocks[each].insts.size() * gang.width;
    if (total <= kMaxAllSerialInsts) regions[id] = std::move(region);
  }
  return regions;
}

std::vector<bool> find_lockstep_blocks(const ir::Function& function,
                                       const std::vector<SerialRegion>& regions) {
  std::vector<bool> reached(function.blocks.size(), false);
  std::vector<ir::BlockId> open{0};
  reached[0] = true;
  while (!open.empty()) {
    const ir::BlockId id = open.back();
    open.pop_back();
    const auto visit = [&](ir::BlockId next) {
      if (reached[next]) return;
      reached[next] = true;
      open.push_back(next);
    };
    if (regions[id].join != ir::kNone) visit(regions[id].join);
    if (regions[id].join == ir::kNone || regions[id].together)
      std::ranges::for_each(function.blocks[id].succs, visit);
  }
  return reached;
}

}  // namespace quern::cpu::cuts
