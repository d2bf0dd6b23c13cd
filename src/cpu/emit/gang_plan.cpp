// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/gang_plan.hpp"

#include <algorithm>

#include "cpu/emit/liveness.hpp"

namespace quern::cpu::emit {
namespace {

constexpr std::uint32_t kWarp = 32;
/// Wider gangs gain nothing more: eight accumulators hide the latency of one operation.
constexpr std::uint32_t kMaxWidth = 8;
/// Instructions times width: beyond, the compile time outweighs what is won.
constexpr std::size_t kMaxInsts = 2500;

/// tid.d is the same in every warp where a warp is a whole number of rows (planes) or there is one index.
bool same_in_every_warp(ir::Special which, const std::array<std::uint32_t, 3>& block) {
  const auto whole = [](std::uint64_t threads) { return threads <= kWarp && kWarp % threads == 0; };
  const std::uint64_t row = block[0], plane = row * block[1], all = plane * block[2];
  switch (which) {
    case ir::Special::tid_x:
      return block[0] == 1 || whole(row);
    case ir::Special::tid_y:
      return block[1] == 1 || whole(plane);
    case ir::Special::tid_z:
      return block[2] == 1 || whole(all);
    case ir::Special::warpid:
    case ir::Special::clock:
    case ir::Special::clock_hi:
    case ir::Special::clock64:
    case ir::Special::globaltimer:
    case ir::Special::globaltimer_lo:
    case ir::Special::globaltimer_hi:
      return false;
    default:
      return true;
  }
}

/// Whether `inst` gives the same in every warp, given the same operands.
bool same_of_same(const ir::Inst& inst, const Specialisation& specialisation) {
  const bool local = inst.attr.space == ir::Space::local;  // each thread has its own
  switch (inst.op) {
    case ir::Op::special:
      return same_in_every_warp(static_cast<ir::Special>(inst.imm), specialisation.block);
    case ir::Op::load:
      return !local && !inst.attr.is_volatile && inst.attr.semantics == ir::Semantics::weak &&
             inst.attr.space != ir::Space::generic;  // generic: may be local
    case ir::Op::to_generic:
    case ir::Op::from_generic:
      return !local;
    case ir::Op::barrier_reduce:
      return true;
    default:
      return ir::has_trait(inst.op, 'p');
  }
}

std::vector<bool> find_shared(const ir::Function& function, const Specialisation& specialisation) {
  std::vector<bool> shared(function.insts.size(), true);
  for (bool changed = true; changed;) {
    changed = false;
    for (ir::Value value = 0; value < function.insts.size(); ++value) {
      if (!shared[value]) continue;
      const ir::Inst& inst = function[value];
      const bool same = inst.op == ir::Op::barrier_reduce ||
                        (same_of_same(inst, specialisation) &&
                         std::ranges::all_of(inst.args, [&](ir::Value arg) { return shared[arg]; }));
      if (same) continue;
      shared[value] = false;
      changed = true;
    }
  }
  return shared;
}

/// A branch in a loop whose lanes part by what the data says: the gang would not last.
bool parts_by_data(const ir::Function& function, const analysis::Analysis& facts) {
  return std::ranges::any_of(facts.order, [&](ir::BlockId id) {
    if (!facts.divergent_branch[id] || facts.loop_of[id] == ir::kNone) return false;
    const ir::Inst& condition = function[function[function.blocks[id].insts.back()].args[0]];
    return condition.op != ir::Op::icmp ||
           !std::ranges::all_of(condition.args, [&](ir::Value arg) { return facts.shapes[arg].scalar(); });
  });
}

bool loads_in_loop(const ir::Function& function, const analysis::Analysis& facts) {
  return std::ranges::any_of(facts.order, [&](ir::BlockId id) {
    return facts.loop_of[id] != ir::kNone &&
           std::ranges::any_of(function.blocks[id].insts,
                               [&](ir::Value value) { return function[value].op == ir::Op::load; });
  });
}

/// Bytes a lane of the vectors that a warp of the gang keeps, at the worst place between two blocks.
std::uint64_t pressure(const ir::Function& function, const analysis::Analysis& facts,
                       const std::vector<bool>& shared) {
  const Liveness liveness = find_liveness(function, {&facts});
  std::uint64_t worst = 0;
  for (const ir::BlockId id : facts.order) {
    std::uint64_t bytes = 0;
    const auto count = [&](ir::Value value) {
      if (!facts.shapes[value].scalar() && !shared[value])
        bytes += std::max(8u, ir::bit_size(function[value].type)) / 8;
    };
    std::ranges::for_each(liveness.live_in[id], count);
    for (const ir::Value value : function.blocks[id].insts)
      if (function[value].op == ir::Op::phi) count(value);
    worst = std::max(worst, bytes);
  }
  return worst;
}

/// Registers for what the instructions make on the way are left over.
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
  const std::uint32_t full_warps = specialisation.threads() / kWarp;
  if (specialisation.gang != 0) {
    if (specialisation.gang < 2 || full_warps % specialisation.gang != 0 || full_warps == 0) return {};
    return {specialisation.gang, find_shared(function, specialisation)};
  }
  if (full_warps < 2 || !(barriers || loads_in_loop(function, facts)) || parts_by_data(function, facts))
    return {};
  std::vector<bool> shared = find_shared(function, specialisation);
  const std::uint64_t bytes = kWarp * std::max<std::uint64_t>(4, pressure(function, facts, shared));
  const std::uint64_t most =
      std::min<std::uint64_t>({kMaxWidth, full_warps, register_bytes(specialisation.isa) / bytes,
                               kMaxInsts / std::max<std::size_t>(1, function.insts.size())});
  for (auto width = static_cast<std::uint32_t>(most); width >= 2; --width)
    if (full_warps % width == 0) return {width, std::move(shared)};
  return {};
}

}  // namespace quern::cpu::emit
