// SPDX-License-Identifier: Apache-2.0
// The code that one warp runs, or a gang of warps in lockstep. WarpBody owns the parts and is the Context of
// the operations. Each part is a class in a separate file and uses only parts above it:
//
//   BodyState                             the state that all parts share
//   Slots, Values                         values in memory, and those of the block being emitted
//   LaunchConstants, EngineCalls          fields of the engine's structures, calls of its functions
//   Edges, Conversions                    phis and lanes on edges; values from one version to the other
//   MaskedVariables                       live ranges of masked code's variables
//   ResumePoints, Barriers                the states of a body that is left at barriers
//   Calls, Prefetcher, Instructions       the instructions of a block
//   LaneCode                              loops that lanes run one after another
//   MaskedCode, DispatchedCode            control flow where not all lanes agree
//   GangCode, SerialCode                  control flow where not all warps of a gang agree
//   FullCode                              control flow where they do
//
// Memory form: every phi and every value read outside its block has a slot for each version. Definitions
// store to it, reads load from it, and promote_slots turns it into SSA form. So switching between the
// versions, or continuing after a barrier, only requires storing to slots.
#pragma once

#include "cpu/emit/warp/full_code.hpp"

namespace quern::cpu::emit {

class WarpBody final : public Context {
 public:
  WarpBody(const Plan& plan, const Specialisation& specialisation, const BodyInputs& inputs,
           const DeviceFunctions& callees, Gang gang = {});

  /// Emits everything between inputs.begin and inputs.done.
  void emit();
  /// Valid after emit(): the frame that a warp needs, including its header; 0 without barriers.
  std::uint32_t frame_bytes() const { return body_.inputs.frame == nullptr ? 0 : body_.frame_end; }
  /// Valid after emit(): the states in which the body is entered.
  const ResumePoints& resume_points() const { return states_; }
  /// The arguments and results of a device function.
  Calls& calls() { return calls_; }

  // --- Context
  const analysis::Analysis& analysis() const override { return body_.plan.facts(body_.version); }
  llvm::Value* scalar(ir::Value value) override { return values_.scalar(value); }
  llvm::Value* vector(ir::Value value) override { return values_.vector(value); }
  void define(ir::Value value, llvm::Value* what) override { values_.define(value, what); }
  void define_element(ir::Value value, unsigned index, llvm::Value* what) override {
    values_.define_element(value, index, what);
  }
  bool full() const override { return body_.full(); }
  llvm::Value* mask() override { return body_.mask(); }
  llvm::Value* mask_bits() override { return body_.mask_bits(); }
  bool may_be_empty() const override { return !body_.full() && !body_.running.certain; }
  llvm::Value* params() override { return constants_.params(); }
  llvm::Value* window_base() override { return constants_.window_base(); }
  llvm::Value* window_bytes() override { return constants_.window_bytes(); }
  llvm::Value* window_limit(std::uint32_t param, std::uint32_t mask, std::uint32_t low) override {
    return constants_.window_limit(param, mask, low);
  }
  llvm::Value* streams(ir::Value store) override { return constants_.streams(store); }
  llvm::Value* shared_base() override { return constants_.shared_base(); }
  llvm::Value* local_base() override { return constants_.local_base(); }
  llvm::Value* local_stride() override { return constants_.local_stride(); }
  llvm::Value* local_begin() override { return constants_.local_begin(); }
  llvm::Value* launch() override { return body_.inputs.launch; }
  llvm::Value* worker() override { return body_.inputs.worker; }
  llvm::Value* ctaid(unsigned dimension) override { return body_.inputs.ctaid[dimension]; }
  llvm::Value* warp_index() override { return body_.warp_index(); }
  llvm::Value* live_bits() override { return body_.live_bits(); }
  llvm::FunctionCallee helper(std::string_view name, llvm::FunctionType* type) override {
    return engine_.function(name, type);
  }
  llvm::BasicBlock* new_block(const char* name) override;

 private:
  void create_warps();
  void create_blocks();
  void emit_begin();

  BodyState body_;
  Slots slots_;
  Values values_;
  LaunchConstants constants_;
  EngineCalls engine_;
  Edges edges_;
  Conversions conversions_;
  MaskedVariables variables_;
  ResumePoints states_;
  Barriers barriers_;
  Calls calls_;
  Prefetcher prefetcher_;
  Instructions instructions_;
  LaneCode lanes_;
  MaskedCode masked_;
  DispatchedCode dispatched_;
  GangCode gang_;
  SerialCode serial_;
  FullCode full_;
};

}  // namespace quern::cpu::emit
