// SPDX-License-Identifier: Apache-2.0
// if (c) out[i] = a; else out[i] = b;
//
// becomes out[i] = c ? a : b. NVRTC keeps both stores. On the CPU device the lanes of a warp would part, and
// store under masks.
#include <algorithm>
#include <utility>
#include <vector>

#include "cpu/lower/ssa/passes.hpp"
#include "cpu/lower/ssa/phis.hpp"

namespace quern::cpu::lower {
namespace {

using ir::BlockId;
using ir::Op;
using ir::Value;

class Merger {
 public:
  explicit Merger(FunctionBuilder& builder) : builder_(builder), function_(builder.function) {}

  /// Returns whether it merged any.
  bool run() {
    bool merged = false;
    for (BlockId test = 0; test < function_.blocks.size(); ++test) {
      if (!ir::parts_and_joins(function_, test)) continue;
      const std::vector<BlockId> succs = function_.blocks[test].succs;
      if (store_of_both(succs) == ir::kNone) continue;
      const BlockId join = join_of(succs);
      const std::vector<BlockId> sides = function_.blocks[join].preds;
      std::vector<Value> stores;
      for (Value last = store_of_both(sides); last != ir::kNone; last = store_of_both(sides)) {
        take_store(sides, join);
        stores.push_back(last);
      }
      function_.blocks[join].insts.insert(behind_phis(join), stores.rbegin(), stores.rend());
      choose_without_branch(test, sides, join);
      merged = true;
    }
    return merged;
  }

 private:
  std::vector<Value>::iterator behind_phis(BlockId block) {
    return function_.blocks[block].insts.begin() +
           static_cast<std::ptrdiff_t>(phis_of(function_, block).size());
  }

  /// The last instruction before the branch, or ir::kNone.
  Value last_of(BlockId side) const {
    const std::vector<Value>& insts = function_.blocks[side].insts;
    return insts.size() < 2 ? ir::kNone : insts[insts.size() - 2];
  }

  /// The store at the end of the first side, if both end with stores that differ in their values only.
  Value store_of_both(const std::vector<BlockId>& sides) const {
    const Value first = last_of(sides[0]), second = last_of(sides[1]);
    if (first == ir::kNone || second == ir::kNone) return ir::kNone;
    const ir::Inst &a = function_[first], &b = function_[second];
    if (a.op != Op::store || b.op != Op::store || ir::is_ordered(a.attr) || a.attr != b.attr ||
        a.imm != b.imm || a.args.size() != b.args.size() || a.args[0] != b.args[0])
      return ir::kNone;
    for (std::size_t i = 1; i < a.args.size(); ++i)
      if (function_[a.args[i]].type != function_[b.args[i]].type) return ir::kNone;
    return first;
  }

  /// The block with no predecessors but the sides: the one that they lead to, or a new one before it.
  BlockId join_of(const std::vector<BlockId>& sides) {
    const BlockId after = function_.blocks[sides[0]].succs[0];
    const std::vector<BlockId> preds = function_.blocks[after].preds;
    if (preds.size() == 2) return after;
    const BlockId join = builder_.new_block();
    ir::Inst branch;
    branch.op = Op::br;
    branch.location = function_[function_.blocks[sides[0]].insts.back()].location;
    builder_.append(join, std::move(branch));
    for (const BlockId side : preds)  // in this order, which is that of the phis' values
      if (side == sides[0] || side == sides[1]) builder_.redirect(side, 0, join);
    builder_.connect(join, after);
    for (const Value phi : phis_of(function_, after)) {
      std::vector<Value> of_sides, others;
      for (std::size_t i = 0; i < preds.size(); ++i)
        (preds[i] == sides[0] || preds[i] == sides[1] ? of_sides : others).push_back(function_[phi].args[i]);
      others.push_back(joined(join, std::move(of_sides), function_[phi].location));
      function_[phi].args = std::move(others);
    }
    return join;
  }

  /// Removes the last stores of the sides; that of the first side gets phis as its values.
  void take_store(const std::vector<BlockId>& sides, BlockId join) {
    const Value merged = last_of(sides[0]), other = last_of(sides[1]);
    for (std::size_t i = 1; i < function_[merged].args.size(); ++i) {
      const Value both =
          joined(join, {function_[merged].args[i], function_[other].args[i]}, function_[merged].location);
      function_[merged].args[i] = both;
    }
    for (const BlockId side : sides) {
      std::vector<Value>& insts = function_.blocks[side].insts;
      insts.erase(insts.end() - 2);
    }
    function_[merged].block = join;
  }
  Value joined(BlockId join, std::vector<Value> values, std::uint32_t location) {
    if (values[0] == values[1]) return values[0];
    const ir::Type type = function_[values[0]].type;
    const Value phi = builder_.append(
        ir::kNone,
        {.op = Op::phi, .type = type, .args = std::move(values), .block = join, .location = location});
    function_.blocks[join].insts.insert(behind_phis(join), phi);
    return phi;
  }

  /// If nothing is left of the sides, the phis become choices by the condition of the branch.
  void choose_without_branch(BlockId test, const std::vector<BlockId>& sides, BlockId join) {
    if (std::ranges::any_of(sides, [&](BlockId side) { return function_.blocks[side].insts.size() > 1; }))
      return;
    ir::Inst& branch = function_[function_.blocks[test].insts.back()];
    if (branch.op != Op::cond_br) return;
    const std::size_t taken = function_.blocks[test].succs[0] == sides[0] ? 0 : 1;
    for (const Value value : phis_of(function_, join)) {
      ir::Inst& phi = function_[value];
      phi.op = Op::select;
      phi.args = {branch.args[0], phi.args[taken], phi.args[1 - taken]};
    }
    branch.op = Op::br;
    branch.args.clear();
    function_.blocks[test].succs = {join};
    function_.blocks[join].preds = {test};
    for (const BlockId side : sides) function_.blocks[side] = {};
  }

  FunctionBuilder& builder_;
  ir::Function& function_;
};

}  // namespace

void merge_stores(FunctionBuilder& builder) {
  if (Merger(builder).run()) merge_chains(builder);
}

}  // namespace quern::cpu::lower
