// SPDX-License-Identifier: Apache-2.0
// The states of a body that is left at a barrier and entered again: if a block has several warps, the body is
// a state machine. At a barrier it returns the state from which to continue, and is called again with it when
// all warps of the block have arrived. Values that are live across a barrier are stored to the warp's frame
// at their definitions, so that a barrier itself costs only the reloads.
#pragma once

#include <map>

#include "cpu/emit/warp/masked_variables.hpp"
#include "cpu/emit/warp/values.hpp"

namespace quern::cpu::emit {

class ResumePoints : private BodyPart {
 public:
  ResumePoints(BodyState& body, Slots& slots, Values& values, MaskedVariables& variables)
      : BodyPart(body), slots_(slots), values_(values), variables_(variables) {}

  /// Assigns offsets in the frame to all slots that are read after a barrier, or after a warp has left its
  /// gang: vectors first, each on its own cache lines.
  void lay_out_frame();
  /// The offset in the frame of a value's full slot; 0: it has none.
  std::uint32_t frame_offset(ir::Value value) const;

  /// Emits the switch over the states; `start` begins without one.
  void begin(llvm::BasicBlock* start);
  /// The states that were made become cases of that switch.
  void finish();

  /// Returns from the step at the barrier of `block`; then positions the builder where the next step
  /// continues, with the live values in their slots.
  void suspend(ir::BlockId block);
  /// The step with `state` continues at the builder's position.
  void add(std::uint32_t state) { resumes_[state] = code_.GetInsertBlock(); }
  /// In the body of one warp: the states where it continues after its gang has split.
  void add_split_states();

  /// By state - 1, the barrier (an index into Function::insts) that the state continues from; ir::kNone where
  /// the warp left its gang. The barriers in full code come first.
  const std::vector<ir::Value>& states() const { return states_; }
  /// The number of states that continue in full code after a barrier.
  std::uint32_t full_states() const { return static_cast<std::uint32_t>(full_state_.size()); }
  /// The state after the barrier at the end of `block`, in full code.
  std::uint32_t full_state(ir::BlockId block) const { return full_state_.at(block); }
  /// The state at the end of `block` of a warp that its gang has left there.
  std::uint32_t split_state(ir::BlockId block) const { return split_state_.at(block); }

 private:
  void resume_at(std::uint32_t state, ir::BlockId next);

  Slots& slots_;
  Values& values_;
  MaskedVariables& variables_;
  std::uint32_t live_frame_ = 0;  ///< offset of the lanes that have not exited
  std::vector<ir::Value> states_;
  std::map<std::uint32_t, llvm::BasicBlock*> resumes_;  ///< by state
  std::map<ir::BlockId, std::uint32_t> full_state_;
  std::map<ir::BlockId, std::uint32_t> split_state_;
  llvm::SwitchInst* resume_ = nullptr;
};

}  // namespace quern::cpu::emit
