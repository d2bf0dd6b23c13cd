// SPDX-License-Identifier: Apache-2.0
#include "cpu/cuts/eager_loops.hpp"

#include <algorithm>
#include <cstdlib>

#include "cpu/analysis/regular.hpp"
#include "cpu/cuts/joint.hpp"
#include "cpu/cuts/passes.hpp"

namespace quern::cpu::cuts {
namespace {

using analysis::Analysis;
using analysis::LanePattern;
using analysis::LanePatternKind;

/// A mispredicted branch costs about as much as so many operations.
constexpr std::size_t kMaxInsts = 48;

class Loop {
 public:
  Loop(const ir::Function& function, const Analysis& masked, std::uint32_t number)
      : function_(function), masked_(masked), number_(number), loop_(masked.loops[number]) {}

  ir::BlockId last() const { return loop_.blocks.back(); }
  const std::vector<ir::BlockId>& blocks() const { return loop_.blocks; }

  bool may_run_empty() const {
    return loop_.divergent && is_innermost() && ends_with_latch() && all_insts([&](ir::Value value) {
             const ir::Op op = function_[value].op;
             return op == ir::Op::phi || op == ir::Op::br || op == ir::Op::cond_br || is_plain_load(value) ||
                    cuts::may_run_empty(function_, masked_.patterns, value);
           });
  }

  bool is_profitable(const std::vector<LanePattern>& full) const {
    std::size_t count = 0;
    for (const ir::BlockId block : loop_.blocks) count += function_.blocks[block].insts.size();
    return count <= kMaxInsts && leaves_by_data(full) && all_insts([&](ir::Value value) {
             return function_[value].op != ir::Op::load || loads_neighbours(full, value);
           });
  }

 private:
  template <class Predicate>
  bool all_insts(const Predicate& holds) const {
    return std::ranges::all_of(loop_.blocks, [&](ir::BlockId block) {
      return std::ranges::all_of(function_.blocks[block].insts, holds);
    });
  }

  bool is_innermost() const {
    return std::ranges::none_of(masked_.loops,
                                [&](const analysis::Loop& other) { return other.parent == number_; });
  }

  /// The last block only returns to the header, which has one other edge.
  bool ends_with_latch() const {
    const ir::Block& latch = function_.blocks[last()];
    const std::vector<ir::BlockId>& before = function_.blocks[loop_.header].preds;
    return last() != loop_.header && latch.succs.size() == 1 && latch.succs[0] == loop_.header &&
           before.size() == 2 && std::ranges::find(before, last()) != before.end();
  }

  bool is_plain_load(ir::Value value) const {
    const ir::Inst& inst = function_[value];
    return inst.op == ir::Op::load && inst.attr.count == 1 && !ir::is_ordered(inst.attr) &&
           inst.attr.space != ir::Space::local && inst.attr.space != ir::Space::param;
  }

  bool loads_neighbours(const std::vector<LanePattern>& full, ir::Value load) const {
    const LanePattern& address = full[function_[load].args[0]];
    if (address.kind == LanePatternKind::uniform) return true;
    return address.kind == LanePatternKind::affine &&
           std::ranges::all_of(address.terms, [&](const analysis::Term& term) {
             return term.coefficient == ir::kNone &&
                    std::abs(term.offsets[1]) <= std::int64_t{ir::byte_size(function_[load].type)};
           });
  }

  bool leaves_by_data(const std::vector<LanePattern>& full) const {
    bool loads = false, leaves = false;
    for (const ir::BlockId block : loop_.blocks) {
      for (const ir::Value value : function_.blocks[block].insts)
        loads |= function_[value].op == ir::Op::load;
      const ir::Inst& branch = function_[function_.blocks[block].insts.back()];
      leaves |= branch.op == ir::Op::cond_br && leaves_loop(block) && !full[branch.args[0]].scalar() &&
                analysis::depends_on_data(function_, full, branch.args[0]);
    }
    return loads && leaves;
  }
  bool leaves_loop(ir::BlockId block) const {
    return std::ranges::any_of(function_.blocks[block].succs, [&](ir::BlockId next) {
      return std::ranges::find(loop_.blocks, next) == loop_.blocks.end();
    });
  }

  const ir::Function& function_;
  const Analysis& masked_;
  const std::uint32_t number_;
  const analysis::Loop& loop_;
};

}  // namespace

std::vector<ir::BlockId> find_eager_loops(const ir::Function& function, const Analysis& masked,
                                          const std::vector<LanePattern>* full) {
  std::vector<ir::BlockId> result(function.blocks.size(), ir::kNone);
  for (std::uint32_t i = 0; i < masked.loops.size(); ++i) {
    const Loop loop(function, masked, i);
    if (!loop.may_run_empty() || (full != nullptr && !loop.is_profitable(*full))) continue;
    for (const ir::BlockId block : loop.blocks()) result[block] = loop.last();
  }
  return result;
}

void begin_loops_eagerly(ir::Function& function, Plan& plan, const Specialisation& specialisation) {
  plan.eager.assign(function.blocks.size(), ir::kNone);
  if (plan.dispatched || !plan.has_full || plan.gang.width > 1) return;
  // AVX2 has no masks of bytes: an iteration under a mask costs as much as a mispredicted branch.
  if (specialisation.isa != Isa::avx512 && !specialisation.eager_loops) return;
  plan.eager =
      find_eager_loops(function, plan.masked, specialisation.eager_loops ? nullptr : &plan.full.patterns);
  for (ir::BlockId id = 0; id < function.blocks.size(); ++id)
    if (plan.lane_loop[id] != ir::kNone) plan.eager[id] = ir::kNone;
}

}  // namespace quern::cpu::cuts
