// SPDX-License-Identifier: Apache-2.0
// If a block has several warps, a warp's body is left at a barrier and entered again: the body is a state
// machine. At a barrier it returns the state from which to continue, and it is called again with that state
// when all warps of the block have arrived. Values that are live across a barrier are stored to the warp's
// frame at their definitions, so a barrier itself only costs the reloads.
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
  /// gang. Vectors come first, each in separate cache lines.
  void lay_out_frame();
  /// The offset in the frame of a value's full slot; 0: it has none there.
  std::uint32_t frame_offset(ir::Value value) const;

  /// Emits the switch over the states; `start` is the code without a state.
  void begin(llvm::BasicBlock* start);
  /// Adds the states that were created as cases of that switch.
  void finish();

  /// Returns from the step at the barrier of `block`. Then moves the builder to the code of the next step,
  /// with the live values in their slots.
  void suspend(ir::BlockId block);
  /// The step with `state` continues at the builder's current position.
  void add(std::uint32_t state) { resumes_[state] = code_.GetInsertBlock(); }
  /// In the body of one warp: adds the states from which it continues after its gang has split.
  void add_split_states();

  /// By state - 1, the barrier (an index into Function::insts) from which the state continues; ir::kNone for
  /// a state after leaving the gang. The barriers in full code come first.
  const std::vector<ir::Value>& states() const { return states_; }
  /// The number of states that continue in full code after a barrier.
  std::uint32_t full_states() const { return static_cast<std::uint32_t>(full_state_.size()); }
  /// The state after the barrier at the end of `block`, in full code.
  std::uint32_t full_state(ir::BlockId block) const { return full_state_.at(block); }
  /// The state of a warp that left its gang at the end of `block`.
  std::uint32_t split_state(ir::BlockId block) const { return split_state_.at(block); }

 private:
  void resume_at(std::uint32_t state, ir::BlockId next);

  Slots& slots_;
  Values& values_;
  MaskedVariables& variables_;
  std::uint32_t live_frame_ = 0;  ///< offset in the frame of the lanes that have not exited
  std::vector<ir::Value> states_;
  std::map<std::uint32_t, llvm::BasicBlock*> resumes_;  ///< by state
  std::map<ir::BlockId, std::uint32_t> full_state_;
  std::map<ir::BlockId, std::uint32_t> split_state_;
  llvm::SwitchInst* resume_ = nullptr;
};

}  // namespace quern::cpu::emit
