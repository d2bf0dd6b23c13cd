// SPDX-License-Identifier: Apache-2.0
// The masked version of the blocks, laid out in Analysis::order. Each block has a variable `waiting`: the
// lanes that must run it. A block is skipped if the variable is empty. Otherwise it clears the variable,
// runs, and adds its lanes to the variables of its successors. Invariants:
//  - a value's masked slot is correct in the lanes that ran its definition; other lanes contain any defined
//    value (never undef);
//  - in full code every waiting variable is empty.
// LLVM sees paths that no lane can take; MaskedVariables limits the live ranges there.
#pragma once

#include "cpu/analysis/structure.hpp"
#include "cpu/emit/warp/barriers.hpp"
#include "cpu/emit/warp/conversions.hpp"
#include "cpu/emit/warp/instructions.hpp"
#include "cpu/emit/warp/lane_code.hpp"

namespace quern::cpu::emit {

class MaskedCode : private BodyPart {
 public:
  MaskedCode(BodyState& body, Slots& slots, Values& values, EngineCalls& engine, Edges& edges,
             Conversions& conversions, MaskedVariables& variables, Instructions& instructions,
             Barriers& barriers, LaneCode& lanes)
      : BodyPart(body),
        slots_(slots),
        values_(values),
        engine_(engine),
        edges_(edges),
        conversions_(conversions),
        variables_(variables),
        instructions_(instructions),
        barriers_(barriers),
        lanes_(lanes) {}

  /// Must be called before any other member function, unless the body is a gang's or dispatched.
  void find_dominance() { dominance_ = analysis::Dominance(plan_.masked); }
  void emit();

  // Called from full code.
  /// At a branch at which the lanes diverge: the lanes of each successor wait there, and masked code
  /// continues.
  void enter_at_branch(ir::BlockId block);
  /// All lanes together pass an edge of `block`.
  void enter_behind(ir::BlockId block, unsigned successor_index = 0);

 private:
  void emit_block(ir::BlockId block);
  bool may_run_empty(ir::BlockId block) const;
  void emit_terminator(ir::BlockId block);
  void emit_uniform_branch(ir::BlockId block);
  void emit_divergent_branch(ir::BlockId block);
  void emit_edge(ir::BlockId block, unsigned successor_index, llvm::Value* lanes);
  void retire(llvm::Value* lanes);
  bool only_from(ir::BlockId block, ir::BlockId other) const;
  void leave(ir::BlockId block, ir::BlockId target, bool certain);
  std::uint32_t next_needed(std::uint32_t position) const;
  llvm::BasicBlock* next_test(std::uint32_t position);

  Slots& slots_;
  Values& values_;
  EngineCalls& engine_;
  Edges& edges_;
  Conversions& conversions_;
  MaskedVariables& variables_;
  Instructions& instructions_;
  Barriers& barriers_;
  LaneCode& lanes_;
  analysis::Dominance dominance_;
};

}  // namespace quern::cpu::emit
