// SPDX-License-Identifier: Apache-2.0
#include "cpu/cuts/gang_plan.hpp"

#include <algorithm>

#include "cpu/abi/warp_size.hpp"
#include "cpu/analysis/regular.hpp"
#include "cpu/analysis/shared.hpp"
#include "cpu/analysis/structure.hpp"
#include "cpu/cuts/joint.hpp"
#include "cpu/cuts/liveness.hpp"
#include "cpu/cuts/serial_regions.hpp"

namespace quern::cpu::cuts {
namespace {

/// Wider gangs gain nothing: eight accumulators hide the latency of one operation.
constexpr std::uint32_t kMaxWidth = 8;
/// Limit for the number of instructions times the width. Above it, the compile time outweighs the gain. The
/// second one is for gangs that are a block with barriers, which need no other code unless they split.
constexpr std::size_t kMaxInsts = 2500;
constexpr std::size_t kMaxBlockInsts = 6500;
/// A gang that is a block with barriers may keep so many times in loops what the registers contain.
constexpr std::uint64_t kMaxBlockPressure = 4;

ir::Value condition_of(const ir::Function& function, ir::BlockId branch) {
  return function[function.blocks[branch].insts.back()].args[0];
}

/// The branches in loops that depend on data.
std::vector<ir::BlockId> find_data_branches(const ir::Function& function, const analysis::Analysis& facts) {
  std::vector<ir::BlockId> found;
  for (const ir::BlockId id : facts.order)
    if (facts.divergent_branch[id] && facts.loop_of[id] != ir::kNone &&
        analysis::depends_on_data(function, facts.patterns, condition_of(function, id)))
      found.push_back(id);
  return found;
}

bool has_barriers_in_loops(const ir::Function& function, const analysis::Analysis& facts) {
  return std::ranges::any_of(facts.order, [&](ir::BlockId id) {
    return facts.loop_of[id] != ir::kNone &&
           std::ranges::any_of(function.blocks[id].insts,
                               [&](ir::Value value) { return ir::is_barrier(function[value].op); });
  });
}

/// The branches in loops at which lanes may part, except comparisons of indices that are the lane number plus
/// a number of the warp.
std::vector<ir::BlockId> find_irregular_branches(const ir::Function& function,
                                                 const analysis::Analysis& facts) {
  std::vector<ir::BlockId> found;
  const auto is_scalar = [&](ir::Value arg) { return facts.patterns[arg].scalar(); };
  for (const ir::BlockId id : facts.order) {
    if (!facts.divergent_branch[id] || facts.loop_of[id] == ir::kNone) continue;
    const ir::Inst& condition = function[condition_of(function, id)];
    if (condition.op != ir::Op::icmp || !std::ranges::all_of(condition.args, is_scalar)) found.push_back(id);
  }
  return found;
}

/// Finds the branches at which warps of a gang may disagree, for the decision whether there is a gang.
class Splits {
 public:
  Splits(const ir::Function& function, const analysis::Analysis& facts, const GangPlan& gang)
      : function_(function),
        facts_(facts),
        gang_(gang),
        regions_(find_serial_regions(function, facts, gang,
                                     std::vector<std::vector<ir::Value>>(function.blocks.size()), nullptr)),
        data_branches_(find_data_branches(function, facts)),
        waits_in_loops_(has_barriers_in_loops(function, facts)) {}

  /// True if the gang splits only where an index wraps (decision 2) and no loop ends by what the data says.
  /// If there are barriers in loops, it may also split at regular branches, at which few warps disagree;
  /// other kernels spend their time in loops that gain nothing.
  bool stays_whole() const {
    const auto rarely_splits = [&](ir::BlockId id) {
      return waits_in_loops_ && analysis::is_regular(function_, facts_.patterns, condition_of(function_, id));
    };
    const auto stays = [&](ir::BlockId id) {
      return leave_together(function_, facts_.patterns, gang_, id) || rejoins(id) || rarely_splits(id);
    };
    const auto stays_in_loop = [&](ir::BlockId id) {
      const ir::BlockId join = regions_[id].join;
      return join == ir::kNone || analysis::loop_contains(facts_, facts_.loop_of[id], join);
    };
    return std::ranges::all_of(facts_.order, stays) && std::ranges::all_of(data_branches_, stays_in_loop);
  }

  /// True if the gang would split behind a loop over the data that NVRTC has unrolled, and not meet again in
  /// loops with barriers. Such a loop gains less from a gang than it loses.
  bool parts_by_counts() const {
    return !waits_in_loops_ &&
           std::ranges::any_of(find_irregular_branches(function_, facts_), [&](ir::BlockId id) {
             return analysis::is_regular(function_, facts_.patterns, condition_of(function_, id));
           });
  }

  /// True if the gang would soon split at a branch in a loop that depends on data.
  bool parts_by_data() const {
    return !std::ranges::all_of(data_branches_, [&](ir::BlockId id) { return meets_again(id); });
  }

 private:
  /// True if warps that disagree at the branch are in lockstep again before the iteration ends.
  bool meets_again(ir::BlockId branch) const {
    const auto is_beside = [&](ir::BlockId id) { return facts_.loop_of[id] == facts_.loop_of[branch]; };
    return rejoins(branch) && is_beside(regions_[branch].join) &&
           std::ranges::all_of(regions_[branch].blocks, is_beside);
  }

  /// The branch has a region, which will not be cut before assumed widenings.
  bool rejoins(ir::BlockId branch) const {
    return regions_[branch].join != ir::kNone &&
           std::ranges::none_of(regions_[branch].blocks, [&](ir::BlockId id) {
             return std::ranges::any_of(function_.blocks[id].insts,
                                        [&](ir::Value value) { return facts_.assumed[value]; });
           });
  }

  const ir::Function& function_;
  const analysis::Analysis& facts_;
  const GangPlan& gang_;
  const std::vector<SerialRegion> regions_;
  const std::vector<ir::BlockId> data_branches_;
  const bool waits_in_loops_;
};

bool loads_in_loop(const ir::Function& function, const analysis::Analysis& facts) {
  return std::ranges::any_of(facts.order, [&](ir::BlockId id) {
    return facts.loop_of[id] != ir::kNone &&
           std::ranges::any_of(function.blocks[id].insts,
                               [&](ir::Value value) { return function[value].op == ir::Op::load; });
  });
}

/// True if the warps of all workers update one address and use its old value (a counter from which each warp
/// takes its places). Warps in lockstep do so one directly after the other, and the cache line stays with
/// their worker meanwhile.
bool takes_from_counter(const ir::Function& function, const analysis::Analysis& facts,
                        const Specialisation& specialisation) {
  if (specialisation.alone) return false;
  const auto takes = [&](ir::Value value) {
    const ir::Inst& inst = function[value];
    return inst.op == ir::Op::atomic && !inst.attr.unused_result && inst.attr.space != ir::Space::shared &&
           inst.attr.scope != ir::Scope::cta &&
           facts.patterns[inst.args[0]].kind == analysis::LanePatternKind::uniform;
  };
  return std::ranges::any_of(facts.order, [&](ir::BlockId id) {
    return facts.loop_of[id] == ir::kNone && std::ranges::any_of(function.blocks[id].insts, takes);
  });
}

/// True if the gang has an addition that its warps make as one.
bool joins_additions(const ir::Function& function, const analysis::Analysis& facts, const GangPlan& gang) {
  return std::ranges::any_of(facts.order, [&](ir::BlockId id) {
    return std::ranges::any_of(function.blocks[id].insts, [&](ir::Value value) {
      return is_joint(function, facts.patterns, gang, value);
    });
  });
}

/// Bytes in each lane of the vectors that a warp of the gang keeps, at the block boundary that needs most.
struct Pressure {
  std::uint64_t in_loops = 0;
  std::uint64_t anywhere = 0;
};

Pressure find_pressure(const ir::Function& function, const analysis::Analysis& facts,
                       const std::vector<bool>& shared) {
  const Liveness liveness = find_liveness(function, {&facts});
  Pressure worst;
  for (const ir::BlockId id : facts.order) {
    std::uint64_t bytes = 0;
    const auto count = [&](ir::Value value) {
      if (!facts.patterns[value].scalar() && !shared[value])
        bytes += std::max(8u, ir::bit_size(function[value].type)) / 8;
    };
    std::ranges::for_each(liveness.live_in[id], count);
    for (const ir::Value value : function.blocks[id].insts)
      if (function[value].op == ir::Op::phi) count(value);
    worst.anywhere = std::max(worst.anywhere, bytes);
    if (facts.loop_of[id] != ir::kNone) worst.in_loops = std::max(worst.in_loops, bytes);
  }
  return worst;
}

/// The bytes of the registers available for these values; other registers hold intermediate results.
std::uint64_t register_bytes(Isa isa) {
  switch (isa) {
    case Isa::avx512:
      return 64 * (32 - 12);
    case Isa::avx2:
      return 32 * (16 - 6);
    case Isa::baseline:
      break;
  }
  return 16 * (16 - 6);
}

}  // namespace

GangPlan choose_gang(const ir::Function& function, const analysis::Analysis& facts,
                     const Specialisation& specialisation, bool barriers) {
  const std::uint32_t full_warps = specialisation.threads() / kWarpSize;
  if (specialisation.gang != 0) {
    if (specialisation.gang < 2 || full_warps % specialisation.gang != 0 || full_warps == 0) return {};
    return {specialisation.gang, analysis::find_shared(function, specialisation)};
  }
  const bool takes = takes_from_counter(function, facts, specialisation);
  const bool gains = barriers || loads_in_loop(function, facts) || takes;
  if (full_warps < 2 || !gains) return {};
  GangPlan gang{std::min(full_warps, kMaxWidth), analysis::find_shared(function, specialisation)};
  const Splits splits(function, facts, gang);
  const Pressure pressure = find_pressure(function, facts, gang.shared);
  const std::uint64_t registers = register_bytes(specialisation.isa) / kWarpSize;  // for each lane
  const std::size_t insts = std::max<std::size_t>(1, function.insts.size());

  // Barriers of a gang that is the whole block cost nothing. Those of other gangs store and load all that
  // their warps keep, so a block may keep more than the registers contain.
  const bool may_be_block = barriers && full_warps <= kMaxWidth && specialisation.warps() == full_warps;
  if (may_be_block && insts * full_warps <= kMaxBlockInsts &&
      pressure.in_loops * full_warps <= kMaxBlockPressure * registers && splits.stays_whole())
    return gang;

  if (barriers ? splits.parts_by_data() || splits.parts_by_counts()
               : !find_irregular_branches(function, facts).empty())
    return {};
  const std::size_t max_insts = may_be_block ? kMaxBlockInsts : kMaxInsts;
  const std::uint64_t in_registers = registers / std::max<std::uint64_t>(4, pressure.anywhere);
  // A locked operation costs more than spilled registers, and wider gangs make fewer.
  const bool saves_locks = takes && joins_additions(function, facts, gang);
  const std::uint64_t most = std::min<std::uint64_t>(
      {kMaxWidth, full_warps, saves_locks ? kMaxWidth : in_registers, max_insts / insts});
  for (gang.width = static_cast<std::uint32_t>(most); gang.width >= 2; --gang.width)
    if (full_warps % gang.width == 0) return gang;
  return {};
}

}  // namespace quern::cpu::cuts
