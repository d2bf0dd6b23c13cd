// SPDX-License-Identifier: Apache-2.0
// if (threadIdx.y == 0) row[threadIdx.x] = in[i - width];
//
// The index is widened to 64 bits in the side of a branch, where full code assumes that it does not wrap. A
// gang would end at the branch, since its warps cannot leave full code in a region that they run one after
// another (serial_regions.hpp). Before the branch, all of them test the index together.
#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "cpu/analysis/regular.hpp"
#include "cpu/analysis/shared.hpp"
#include "cpu/cuts/gang_plan.hpp"
#include "cpu/cuts/passes.hpp"

namespace quern::cpu::cuts {
namespace {

/// Limit for the operations and constants that move with a widening: warps that do not take the side compute
/// them too.
constexpr std::size_t kMaxMoved = 8;

/// The branches whose sides are looked at: those at which lanes of a warp may disagree, or only warps.
enum class Disagree : std::uint8_t { lanes, warps };

class Hoister {
 public:
  Hoister(ir::Function& function, const analysis::Analysis& facts, const Specialisation& specialisation)
      : function_(function), facts_(facts), specialisation_(specialisation) {}

  /// Returns true if anything has moved.
  bool run(Disagree which) {
    for (const ir::BlockId branch : facts_.order) {
      if (!parts_small_sides(branch, which)) continue;
      for (const ir::BlockId side : function_.blocks[branch].succs) hoist_from(side, branch);
    }
    return !before_.empty();
  }

  /// Puts everything back.
  void undo() {
    for (auto& [block, insts] : before_) {
      for (const ir::Value value : insts) function_[value].block = block;
      function_.blocks[block].insts = std::move(insts);
    }
  }

 private:
  /// True if warps may disagree at the branch by their indices. Lanes that part by the data leave full code
  /// anyway.
  bool parts_small_sides(ir::BlockId branch, Disagree which) {
    if (!ir::parts_and_joins(function_, branch)) return false;
    const ir::Inst& end = function_[function_.blocks[branch].insts.back()];
    if (end.op != ir::Op::cond_br || facts_.divergent_branch[branch] != (which == Disagree::lanes) ||
        std::ranges::none_of(function_.blocks[branch].succs, [&](ir::BlockId side) { return assumes(side); }))
      return false;
    if (shared_.empty()) shared_ = analysis::find_shared(function_, specialisation_);
    return !shared_[end.args[0]] && !analysis::depends_on_data(function_, facts_.patterns, end.args[0]);
  }

  bool assumes(ir::BlockId block) const {
    return std::ranges::any_of(function_.blocks[block].insts,
                               [&](ir::Value value) { return facts_.assumed[value]; });
  }

  void hoist_from(ir::BlockId side, ir::BlockId branch) {
    std::vector<ir::Value> moved;
    for (const ir::Value value : function_.blocks[side].insts) {
      if (!facts_.assumed[value]) continue;
      std::vector<ir::Value> needed = moved;
      // An unsigned index may well wrap where its branch excludes that: if (i > 0) a[i - 1].
      if (function_[value].op != ir::Op::sext || !collect(value, side, needed)) return;
      moved = std::move(needed);
    }
    if (moved.empty()) return;
    std::vector<ir::Value>& from = function_.blocks[side].insts;
    std::vector<ir::Value>& to = function_.blocks[branch].insts;
    before_.try_emplace(side, from);
    before_.try_emplace(branch, to);
    std::erase_if(from, [&](ir::Value value) { return std::ranges::find(moved, value) != moved.end(); });
    const bool waits = to.size() > 1 && ir::is_barrier(function_[to[to.size() - 2]].op);
    to.insert(to.end() - (waits ? 2 : 1), moved.begin(), moved.end());
    for (const ir::Value value : moved) function_[value].block = branch;
  }

  /// Appends `value` to `needed`, after what it needs of the block. Returns false if that is not a few
  /// operations on scalars.
  bool collect(ir::Value value, ir::BlockId block, std::vector<ir::Value>& needed) const {
    const ir::Inst& inst = function_[value];
    if (inst.block != block || std::ranges::find(needed, value) != needed.end()) return true;
    const bool is_constant = inst.op == ir::Op::constant;
    if (!is_constant && (!ir::has_trait(inst.op, 'q') || !facts_.patterns[value].scalar())) return false;
    for (const ir::Value operand : inst.args)
      if (!collect(operand, block, needed)) return false;
    needed.push_back(value);
    return needed.size() <= kMaxMoved;
  }

  ir::Function& function_;
  const analysis::Analysis& facts_;
  const Specialisation& specialisation_;
  std::vector<bool> shared_;  ///< by Value: the same in all warps of the block; empty: not computed yet
  std::map<ir::BlockId, std::vector<ir::Value>> before_;  ///< the instructions of changed blocks
};

/// Hoists from branches at which only warps disagree, if there is a gang then: full code of one warp takes
/// one side of such a branch, and would compute the other's indices in vain.
Expected<void> hoist_for_gang(ir::Function& function, Plan& plan, const Specialisation& specialisation) {
  if (specialisation.warps() < 2) return {};
  Hoister hoister(function, plan.uncut, specialisation);
  if (!hoister.run(Disagree::warps)) return {};
  analysis::Analysis facts = std::move(plan.uncut);
  if (const auto done = analyse_uncut(function, plan, specialisation); !done) return done;
  if (choose_gang(function, plan.uncut, specialisation, plan.has_barriers).width > 1) return {};
  hoister.undo();
  plan.uncut = std::move(facts);
  return {};
}

}  // namespace

Expected<void> hoist_widenings(ir::Function& function, Plan& plan, const Specialisation& specialisation) {
  if (!plan.has_full || plan.dispatched) return {};
  if (Hoister(function, plan.uncut, specialisation).run(Disagree::lanes))
    if (const auto done = analyse_uncut(function, plan, specialisation); !done) return done;
  return hoist_for_gang(function, plan, specialisation);
}

}  // namespace quern::cpu::cuts
