// SPDX-License-Identifier: Apache-2.0
// Barriers of a body that is not dispatched: where a block has several warps, the step returns
// (resume_points.hpp); with a single warp nothing waits.
#pragma once

#include "cpu/emit/warp/engine_calls.hpp"
#include "cpu/emit/warp/resume_points.hpp"

namespace quern::cpu::emit {

class Barriers : private BodyPart {
 public:
  Barriers(BodyState& body, Slots& slots, Values& values, EngineCalls& engine, ResumePoints& states)
      : BodyPart(body), slots_(slots), values_(values), engine_(engine), states_(states) {}

  /// The barrier at the end of `block`; then control goes to its successor.
  void emit(ir::BlockId block);
  /// The same in masked code, where only the lanes that have exited may be missing.
  void emit_masked(ir::BlockId block);
  /// The result of a barrier_reduce for every lane, from the counts over the block.
  llvm::Value* reduction(ir::Value which, llvm::Value* true_lanes, llvm::Value* arrived_lanes);

 private:
  Slots& slots_;
  Values& values_;
  EngineCalls& engine_;
  ResumePoints& states_;
};

}  // namespace quern::cpu::emit
