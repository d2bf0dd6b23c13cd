// SPDX-License-Identifier: Apache-2.0
// Barriers of a body that is not dispatched. If a block has several warps, the step returns
// (resume_points.hpp). A single warp does not wait.
#pragma once

#include "cpu/emit/warp/engine_calls.hpp"
#include "cpu/emit/warp/resume_points.hpp"

namespace quern::cpu::emit {

class Barriers : private BodyPart {
 public:
  Barriers(BodyState& body, Slots& slots, Values& values, EngineCalls& engine, ResumePoints& states)
      : BodyPart(body), slots_(slots), values_(values), engine_(engine), states_(states) {}

  /// Emits the barrier at the end of `block`, and the jump to its successor.
  void emit(ir::BlockId block);
  /// The same for masked code, in which only lanes that have exited may be missing.
  void emit_masked(ir::BlockId block);
  /// The result of a barrier_reduce for every lane, from the counts of the whole block.
  llvm::Value* reduction(ir::Value which, llvm::Value* true_lanes, llvm::Value* arrived_lanes);

 private:
  Slots& slots_;
  Values& values_;
  EngineCalls& engine_;
  ResumePoints& states_;
};

}  // namespace quern::cpu::emit
