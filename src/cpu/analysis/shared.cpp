// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/shared.hpp"

#include <algorithm>

#include "cpu/abi/warp_size.hpp"
#include "cpu/analysis/divergence.hpp"
#include "cpu/analysis/structure.hpp"

namespace quern::cpu::analysis {
namespace {

/// tid.d is the same in every warp if a warp is a whole number of rows (planes), or if there is only one
/// index.
bool same_in_every_warp(ir::Special which, const std::array<std::uint32_t, 3>& block) {
  const auto whole = [](std::uint64_t threads) { return threads <= kWarpSize && kWarpSize % threads == 0; };
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

/// True if `inst`, which is no phi, gives the same result in every warp for equal operands.
bool same_of_same(const ir::Inst& inst, const Specialisation& specialisation) {
  const bool local = inst.attr.space == ir::Space::local;  // each thread has separate local memory
  switch (inst.op) {
    case ir::Op::special:
      return same_in_every_warp(static_cast<ir::Special>(inst.imm), specialisation.block);
    case ir::Op::load:
      return !local && !ir::is_ordered(inst.attr) &&
             inst.attr.space != ir::Space::generic;  // a generic address may be in local memory
    case ir::Op::to_generic:
    case ir::Op::from_generic:
      return !local;
    default:
      return ir::has_trait(inst.op, 'p');
  }
}

/// Assumes that all values are shared, and removes values that cannot be until nothing changes. A branch at
/// which warps diverge affects later phis as a branch at which lanes diverge does.
class Finder {
 public:
  Finder(const ir::Function& function, const Specialisation& specialisation, const Structure& structure,
         Analysis& of_warps)
      : function_(function),
        specialisation_(specialisation),
        warps_(of_warps),
        divergence_(structure, of_warps),
        split_(function.blocks.size(), false),
        shared_(function.insts.size(), true) {}

  std::vector<bool> run() {
    for (bool changed = true; changed;) {
      changed = split_branches();
      for (ir::Value value = 0; value < function_.insts.size(); ++value)
        if (shared_[value] && !holds(value)) {
          shared_[value] = false;
          changed = true;
        }
    }
    return std::move(shared_);
  }

 private:
  bool split_branches() {
    bool changed = false;
    for (const ir::BlockId block : warps_.order) {
      const ir::Inst& last = function_[function_.blocks[block].insts.back()];
      const bool chooses = last.op == ir::Op::cond_br || last.op == ir::Op::switch_br;
      if (!chooses || split_[block] || shared_[last.args[0]]) continue;
      split_[block] = true;
      std::vector<ir::BlockId> joins;
      divergence_.split(block, joins);
      changed = true;
    }
    return changed;
  }

  bool holds(ir::Value value) const {
    const ir::Inst& inst = function_[value];
    if (inst.op == ir::Op::barrier_reduce) return true;
    const bool operands = std::ranges::all_of(inst.args, [&](ir::Value arg) { return shared_[arg]; });
    if (inst.op != ir::Op::phi) return operands && same_of_same(inst, specialisation_);
    return operands && !divergence_.is_join(inst.block) && !leaves_divergent_loop(inst) &&
           !waits_in_divergent_loop();
  }

  /// True if warps may leave the loop with the phi's value in different iterations.
  bool leaves_divergent_loop(const ir::Inst& phi) const {
    return std::ranges::any_of(function_.blocks[phi.block].preds, [&](ir::BlockId pred) {
      if (warps_.position[pred] == ir::kNone) return false;
      for (std::uint32_t loop = warps_.loop_of[pred]; loop != ir::kNone; loop = warps_.loops[loop].parent)
        if (warps_.loops[loop].divergent && !loop_contains(warps_, loop, phi.block)) return true;
      return false;
    });
  }

  /// Warps that leave a loop with a barrier in different iterations may later meet at a barrier in different
  /// iterations of an outer loop.
  bool waits_in_divergent_loop() const {
    return std::ranges::any_of(warps_.loops, [&](const Loop& loop) {
      return loop.divergent && std::ranges::any_of(loop.blocks, [&](ir::BlockId block) {
               return std::ranges::any_of(function_.blocks[block].insts, [&](ir::Value value) {
                 return ir::is_barrier(function_[value].op);
               });
             });
    });
  }

  const ir::Function& function_;
  const Specialisation& specialisation_;
  Analysis& warps_;
  DivergencePropagation divergence_;
  std::vector<bool> split_;
  std::vector<bool> shared_;
};

}  // namespace

std::vector<bool> find_shared(const ir::Function& function, const Specialisation& specialisation) {
  Analysis of_warps;
  const Expected<Structure> structure = find_structure(function, of_warps);
  if (!structure) return std::vector<bool>(function.insts.size(), false);
  return Finder(function, specialisation, *structure, of_warps).run();
}

}  // namespace quern::cpu::analysis
