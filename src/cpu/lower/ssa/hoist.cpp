// SPDX-License-Identifier: Apache-2.0
// Moves loop-invariant pure values out of loops. LLVM would do that for speed; here it serves the analysis:
// the widening of a shared-memory index is then analysed (and, if necessary, tested) once and not in every
// iteration.
#include <algorithm>

#include "cpu/lower/ssa/passes.hpp"

namespace quern::cpu::lower {
namespace {

using ir::BlockId;
using ir::Value;

class Hoister {
 public:
  explicit Hoister(FunctionBuilder& builder)
      : builder_(builder),
        order_(order_blocks(builder.function)),
        nest_(find_loops(builder.function, order_)) {}

  void run() {
    for (const BlockId block : order_.blocks) {
      if (nest_.innermost[block] == ir::kNone) continue;
      std::erase_if(builder_.function.blocks[block].insts, [&](Value value) { return moves(value, block); });
    }
  }

 private:
  /// Moves `value` out of as many loops as possible. Returns false if it stays in its block.
  bool moves(Value value, BlockId block) {
    ir::Inst& inst = builder_.function[value];
    if (!ir::has_trait(inst.op, 'p') || inst.op == ir::Op::phi || inst.args.empty()) return false;
    BlockId place = block;
    for (std::uint32_t loop = nest_.innermost[block]; loop != ir::kNone; loop = nest_.loops[loop].parent) {
      const Ends ends = ends_of(loop);
      // Hoists only values that every iteration computes: a value under a condition may not be needed at all.
      if (ends.preheader == ir::kNone || !order_.dominates(place, ends.latch) || !invariant(inst, loop))
        break;
      place = ends.preheader;
    }
    if (place == block) return false;
    inst.block = place;
    auto& insts = builder_.function.blocks[place].insts;
    insts.insert(insts.end() - 1, value);
    return true;
  }

  bool invariant(const ir::Inst& inst, std::uint32_t loop) const {
    return std::none_of(inst.args.begin(), inst.args.end(),
                        [&](Value arg) { return nest_.contains(loop, builder_.function[arg].block); });
  }

  struct Ends {
    BlockId preheader = ir::kNone;
    BlockId latch = ir::kNone;
  };
  Ends ends_of(std::uint32_t loop) const {
    const BlockId header = nest_.loops[loop].header;
    const auto& preds = builder_.function.blocks[header].preds;
    if (preds.size() != 2) return {};
    const bool first_is_latch = nest_.contains(loop, preds[0]);
    return {preds[first_is_latch ? 1 : 0], preds[first_is_latch ? 0 : 1]};
  }

  FunctionBuilder& builder_;
  Order order_;
  LoopNest nest_;
};

}  // namespace

void hoist_invariants(FunctionBuilder& builder) { Hoister(builder).run(); }

}  // namespace quern::cpu::lower
