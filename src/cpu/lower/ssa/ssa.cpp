// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "cpu/lower/ssa/passes.hpp"
#include "cpu/lower/ssa/phis.hpp"

namespace quern::cpu::lower {
namespace {

using ir::BlockId;
using ir::Value;

class SsaBuilder {
 public:
  explicit SsaBuilder(FunctionBuilder& builder) : builder_(builder) {}

  void run() {
    for (BlockId block = 0; block < builder_.live_ins.size(); ++block) {
      for (const LiveIn& live : builder_.live_ins[block]) pending_.push_back({block, live});
    }
    // The list grows during the loop: reading through a block adds a phi of that block.
    for (std::size_t i = 0; i < pending_.size(); ++i) fill(pending_[i]);
    std::vector<Value> phis;
    for (const Pending& pending : pending_) phis.push_back(pending.live.value);
    remove_trivial_phis(builder_, phis, replaced_);
    place();
    Replacements::apply(replaced_, builder_.function);
  }

 private:
  struct Pending {
    BlockId block;
    LiveIn live;
  };

  void fill(Pending pending) {
    std::vector<Value> operands;
    for (const BlockId pred : builder_.function.blocks[pending.block].preds) {
      operands.push_back(value_at_end(pred, pending.live.variable));
    }
    builder_.function[pending.live.value].args = std::move(operands);
  }

  Value value_at_end(BlockId block, Variable variable) {
    for (;;) {
      if (const Value known = builder_.definitions.find(block, variable); known != ir::kNone) return known;
      const auto& preds = builder_.function.blocks[block].preds;
      if (preds.size() != 1) break;
      block = preds[0];
    }
    if (builder_.function.blocks[block].preds.empty())
      return builder_.nullary(ir::Op::undef, builder_.variable_types[variable], 0);
    const Value phi = builder_.append(
        ir::kNone, {.op = ir::Op::phi, .type = builder_.variable_types[variable], .block = block});
    builder_.definitions.set(block, variable, phi);
    pending_.push_back({block, {variable, phi}});
    return phi;
  }

  void place() {
    ir::Function& function = builder_.function;
    std::vector<std::vector<Value>> phis(function.blocks.size());
    for (const Pending& pending : pending_) {
      const Value phi = pending.live.value;
      if (replaced_.find(phi) == phi) phis[pending.block].push_back(phi);
    }
    for (BlockId block = 0; block < phis.size(); ++block) {
      auto& insts = function.blocks[block].insts;
      for (const Value phi : phis[block])
        function[phi].location = insts.empty() ? ir::kNone : function[insts[0]].location;
      insts.insert(insts.begin(), phis[block].begin(), phis[block].end());
    }
  }

  FunctionBuilder& builder_;
  std::vector<Pending> pending_;
  Replacements replaced_;
};

}  // namespace

void build_ssa(FunctionBuilder& builder) { SsaBuilder(builder).run(); }

}  // namespace quern::cpu::lower
