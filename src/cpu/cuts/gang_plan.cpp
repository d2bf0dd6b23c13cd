// SPDX-License-Identifier: Apache-2.0
#include "cpu/cuts/gang_plan.hpp"

#include <algorithm>

#include "cpu/abi/warp_size.hpp"
#include "cpu/analysis/shared.hpp"
#include "cpu/cuts/liveness.hpp"

namespace quern::cpu::cuts {
namespace {

/// Wider gangs gain nothing: eight accumulators hide the latency of one operation.
constexpr std::uint32_t kMaxWidth = 8;
/// Limit for the number of instructions times the width. Above it, the compile time outweighs the gain. The
/// second one is for gangs that are a block with barriers, which need no other code unless they split.
constexpr std::size_t kMaxInsts = 2500;
constexpr std::size_t kMaxBlockInsts = 5000;

/// True for a branch in a loop that depends on data: the gang would soon split.
bool parts_by_data(const ir::Function& function, const analysis::Analysis& facts) {
  return std::ranges::any_of(facts.order, [&](ir::BlockId id) {
    if (!facts.divergent_branch[id] || facts.loop_of[id] == ir::kNone) return false;
    const ir::Inst& condition = function[function[function.blocks[id].insts.back()].args[0]];
    return condition.op != ir::Op::icmp ||
           !std::ranges::all_of(condition.args, [&](ir::Value arg) { return facts.patterns[arg].scalar(); });
  });
}

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

/// Bytes in each lane of the vectors that a warp of the gang keeps, at the block boundary that needs most.
std::uint64_t pressure(const ir::Function& function, const analysis::Analysis& facts,
                       const std::vector<bool>& shared) {
  const Liveness liveness = find_liveness(function, {&facts});
  std::uint64_t worst = 0;
  for (const ir::BlockId id : facts.order) {
    std::uint64_t bytes = 0;
    const auto count = [&](ir::Value value) {
      if (!facts.patterns[value].scalar() && !shared[value])
        bytes += std::max(8u, ir::bit_size(function[value].type)) / 8;
    };
    std::ranges::for_each(liveness.live_in[id], count);
    for (const ir::Value value : function.blocks[id].insts)
      if (function[value].op == ir::Op::phi) count(value);
    worst = std::max(worst, bytes);
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
  const bool gains =
      barriers || loads_in_loop(function, facts) || takes_from_counter(function, facts, specialisation);
  if (full_warps < 2 || !gains || parts_by_data(function, facts)) return {};
  std::vector<bool> shared = analysis::find_shared(function, specialisation);
  const std::uint64_t bytes = kWarpSize * std::max<std::uint64_t>(4, pressure(function, facts, shared));
  const bool may_be_block = barriers && full_warps <= kMaxWidth && specialisation.warps() == full_warps;
  const std::size_t max_insts = may_be_block ? kMaxBlockInsts : kMaxInsts;
  const std::uint64_t most =
      std::min<std::uint64_t>({kMaxWidth, full_warps, register_bytes(specialisation.isa) / bytes,
                               max_insts / std::max<std::size_t>(1, function.insts.size())});
  for (auto width = static_cast<std::uint32_t>(most); width >= 2; --width)
    if (full_warps % width == 0) return {width, std::move(shared)};
  return {};
}

}  // namespace quern::cpu::cuts
