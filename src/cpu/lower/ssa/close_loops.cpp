// SPDX-License-Identifier: Apache-2.0
// Builds loop-closed SSA. Each value that is used outside its loop is treated as a variable again: every exit
// block of every loop around the definition gets a phi of it, and uses outside the loop read the definition
// that reaches them.
#include <utility>

#include "cpu/lower/ssa/passes.hpp"
#include "cpu/lower/ssa/phis.hpp"

namespace quern::cpu::lower {
namespace {

using ir::BlockId;
using ir::Value;

class LoopCloser {
 public:
  LoopCloser(FunctionBuilder& builder, const LoopNest& nest) : builder_(builder), nest_(nest) {}

  void run() {
    collect_uses();
    for (const Use& use : uses_) {
      const BlockId where = use.block;
      const Value reaching = use.at_end ? value_at_end(where, use.value) : value_at_start(where, use.value);
      builder_.function[use.user].args[use.index] = reaching;
    }
    for (std::size_t i = 0; i < merges_.size(); ++i) fill(merges_[i]);
    remove_trivial();
    place();
    Replacements::apply(replaced_, builder_.function);
  }

 private:
  struct Use {
    Value value;
    Value user;
    std::uint32_t index;
    BlockId block;
    bool at_end;  ///< a phi's operand is read at the end of the predecessor
  };
  struct Phi {
    Value phi;
    Value value;
  };

  bool escapes(Value value, BlockId use) const {
    const std::uint32_t loop = nest_.innermost[builder_.function[value].block];
    return loop != ir::kNone && !nest_.contains(loop, use);
  }

  void collect_uses() {
    const ir::Function& function = builder_.function;
    for (BlockId block = 0; block < function.blocks.size(); ++block) {
      const ir::Block& b = function.blocks[block];
      for (const Value user : b.insts) {
        const ir::Inst& inst = function[user];
        const bool phi = inst.op == ir::Op::phi;
        for (std::uint32_t i = 0; i < inst.args.size(); ++i) {
          const BlockId at = phi ? b.preds[i] : block;
          if (escapes(inst.args[i], at)) uses_.push_back({inst.args[i], user, i, at, phi});
        }
      }
    }
  }

  /// True for a block reached only from inside a loop that contains `value`'s definition but not the block.
  bool leaves_loop(BlockId block, Value value) const {
    const auto& preds = builder_.function.blocks[block].preds;
    if (preds.size() != 1) return false;
    for (std::uint32_t loop = nest_.innermost[builder_.function[value].block]; loop != ir::kNone;
         loop = nest_.loops[loop].parent) {
      if (nest_.contains(loop, preds[0]) && !nest_.contains(loop, block)) return true;
    }
    return false;
  }

  Value value_at_end(BlockId block, Value value) {
    return block == builder_.function[value].block ? value : value_at_start(block, value);
  }

  Value value_at_start(BlockId block, Value value) {
    for (;;) {
      if (const Value known = at_start_.find(block, value); known != ir::kNone) return known;
      const auto& preds = builder_.function.blocks[block].preds;
      if (preds.size() != 1 || leaves_loop(block, value)) return new_phi(block, value);
      block = preds[0];
      if (block == builder_.function[value].block) return value;
    }
  }

  Value new_phi(BlockId block, Value value) {
    const ir::Inst& original = builder_.function[value];
    const Value phi = builder_.append(
        ir::kNone, {.op = ir::Op::phi, .type = original.type, .block = block, .location = original.location});
    at_start_.set(block, value, phi);
    merges_.push_back({phi, value});
    return phi;
  }

  void fill(Phi phi) {
    std::vector<Value> operands;
    for (const BlockId pred : builder_.function.blocks[builder_.function[phi.phi].block].preds) {
      operands.push_back(value_at_end(pred, phi.value));
    }
    builder_.function[phi.phi].args = std::move(operands);
  }

  void remove_trivial() {
    std::vector<Value> joins;
    for (const Phi& phi : merges_) {
      if (builder_.function[phi.phi].args.size() > 1) joins.push_back(phi.phi);
    }
    remove_trivial_phis(builder_, joins, replaced_);
  }

  void place() {
    for (const Phi& phi : merges_) {
      if (replaced_.find(phi.phi) != phi.phi) continue;
      auto& insts = builder_.function.blocks[builder_.function[phi.phi].block].insts;
      insts.insert(insts.begin(), phi.phi);
    }
  }

  FunctionBuilder& builder_;
  const LoopNest& nest_;
  std::vector<Use> uses_;
  ValueMap at_start_;
  std::vector<Phi> merges_;  ///< exit phis, and phis at joins that a read passed
  Replacements replaced_;
};

}  // namespace

void close_loops(FunctionBuilder& builder) {
  const Order order = order_blocks(builder.function);
  const LoopNest nest = find_loops(builder.function, order);
  if (!nest.loops.empty()) LoopCloser(builder, nest).run();
}

}  // namespace quern::cpu::lower
