// SPDX-License-Identifier: Apache-2.0
// Emits the function that the scheduler calls: a loop over blocks, and in it the warps. For kernels with
// barriers, the warps run in rounds of steps.
#include "cpu/emit/block_loop.hpp"

#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <initializer_list>
#include <memory>

#include "cpu/abi/warp_size.hpp"
#include "cpu/abi/warps.hpp"
#include "cpu/emit/llvm/forward_shared.hpp"
#include "cpu/emit/llvm/llvm_target.hpp"

namespace quern::cpu::emit {
namespace {

/// One of the two kinds of warp: its code (with barriers or gangs: its step function) and the warps of that
/// kind.
struct WarpKind {
  const Plan* plan = nullptr;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t lanes = 0xffffffffu;
  llvm::Function* step = nullptr;
  std::vector<ir::Value> states;
  // The number of warps in a gang, and the code of the gang.
  std::uint32_t width = 1;
  llvm::Function* gang = nullptr;
  std::uint32_t last_common_state = 0;  ///< the gang can continue from the states up to this one
};

class RunEmitter {
 public:
  RunEmitter(llvm::Module& module, const Plan& plan, const Specialisation& specialisation,
             const DeviceFunctions& callees)
      : module_(module),
        context_(module.getContext()),
        plan_(plan),
        partial_plan_(masked_only(plan)),
        specialisation_(specialisation),
        callees_(callees),
        at_(context_) {
    const std::uint32_t full_warps = specialisation.threads() / kWarpSize;
    const std::uint32_t rest = specialisation.threads() % kWarpSize;
    if (full_warps != 0) kinds_.push_back({.plan = &plan_, .count = full_warps, .width = plan.gang.width});
    if (rest != 0)
      kinds_.push_back(
          {.plan = &partial_plan_, .first = full_warps, .count = 1, .lanes = (std::uint32_t{1} << rest) - 1});
  }

  std::uint32_t run() {
    steps_ = ((plan_.has_barriers && specialisation_.warps() > 1) || plan_.gang.width > 1) && !never_waits();
    if (plan_.dispatched)
      emit_dispatched_steps();
    else if (steps_)
      emit_steps();
    begin_function();
    emit_block_loop();
    return frame_bytes_;
  }

 private:
  llvm::Type* word() { return at_.getInt32Ty(); }
  llvm::Type* pointer() { return at_.getPtrTy(); }
  llvm::BasicBlock* block(const char* name) { return llvm::BasicBlock::Create(context_, name, function_); }
  llvm::Value* field(llvm::Value* base, std::uint64_t offset) {
    return at_.CreateConstInBoundsGEP1_64(at_.getInt8Ty(), base, offset);
  }

  /// The block is one gang that never splits: no warp ever waits for another.
  bool never_waits() const {
    return plan_.gang.width == specialisation_.warps() && plan_.gang.width > 1 &&
           std::ranges::none_of(plan_.full.order, [&](ir::BlockId id) { return plan_.parts[id]; });
  }

  void set_state_attributes(llvm::Function& function) {
    for (unsigned i = 0; i < 2; ++i) {
      llvm::AttrBuilder attributes(context_);
      attributes.addAttribute(llvm::Attribute::NonNull)
          .addAttribute(llvm::Attribute::NoAlias)
          .addAttribute(llvm::Attribute::NoUndef);
      attributes.addDereferenceableAttr(i == 0 ? sizeof(engine::LaunchState) : sizeof(engine::WorkerState));
      attributes.addAlignmentAttr(llvm::Align(8));
      function.addParamAttrs(i, attributes);
    }
    function.addParamAttr(0, llvm::Attribute::ReadOnly);
    set_function_attributes(function, specialisation_.isa);
  }

  // --- a warp or a gang with barriers: step(launch, worker, frame, ctaid.x, .y, .z, warp, state, true lanes,
  // arrived lanes) -> next state
  void emit_steps() {
    std::vector<std::unique_ptr<WarpBody>> bodies;
    for (WarpKind& kind : kinds_) {
      kind.step = create_step(kind.lanes == 0xffffffffu ? "step" : "step_partial");
      BodyInputs inputs = step_inputs(kind.step);
      inputs.lanes = at_.getInt32(kind.lanes);
      bodies.push_back(std::make_unique<WarpBody>(*kind.plan, specialisation_, inputs, callees_));
      emit_body(*bodies.back(), inputs);
      kind.states = bodies.back()->resume_points().states();
      frame_bytes_ = std::max(frame_bytes_, bodies.back()->frame_bytes());
    }
    frame_bytes_ = (frame_bytes_ + 63) / 64 * 64;
    for (std::size_t i = 0; i < kinds_.size(); ++i)
      if (kinds_[i].width > 1) emit_gang_step(kinds_[i], bodies[i]->resume_points());
  }

  void emit_gang_step(WarpKind& kind, const ResumePoints& single) {
    Gang gang{kind.width, frame_bytes_, kind.width == specialisation_.warps(), false, &single};
    // If the gang is a whole block and can split only where an index wraps, its warps need not continue
    // together after a split.
    gang.resumes = plan_.has_barriers && (!gang.whole_block || parts_at_branches());
    if (gang.resumes) kind.last_common_state = single.full_states();
    kind.gang = create_step("gang");
    BodyInputs inputs = step_inputs(kind.gang);
    if (gang.whole_block) inputs.warp = at_.getInt32(0);
    if (!gang.resumes) inputs.state = nullptr;
    WarpBody body(*kind.plan, specialisation_, inputs, callees_, gang);
    emit_body(body, inputs);
  }
  bool parts_at_branches() const {
    for (const ir::BlockId id : plan_.full.order)
      if (plan_.parts[id] && plan_.tested[id].empty()) return true;
    return false;
  }

  // --- with the dispatcher: step(launch, worker, frame, ctaid.x, .y, .z, warp) -> engine::StepEnd; turns and
  // the engine handles barriers
  void emit_dispatched_steps() {
    for (WarpKind& kind : kinds_) {
      kind.step = create_dispatched_step(kind.lanes == 0xffffffffu ? "step" : "step_partial");
      function_ = kind.step;
      BodyInputs inputs = new_inputs();
      llvm::IRBuilder<>(inputs.entry).CreateBr(inputs.begin);
      inputs.launch = kind.step->getArg(0);
      inputs.worker = kind.step->getArg(1);
      inputs.frame = kind.step->getArg(2);
      for (unsigned d = 0; d < 3; ++d) inputs.ctaid[d] = kind.step->getArg(3 + d);
      inputs.warp = kind.step->getArg(6);
      inputs.lanes = at_.getInt32(kind.lanes);
      WarpBody body(*kind.plan, specialisation_, inputs, callees_);
      emit_body(body, inputs);
      frame_bytes_ = std::max(frame_bytes_, body.frame_bytes());
    }
  }

  llvm::Function* create_dispatched_step(const char* name) {
    llvm::FunctionType* type = llvm::FunctionType::get(
        word(), {pointer(), pointer(), pointer(), word(), word(), word(), word()}, false);
    llvm::Function* made = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, module_);
    set_state_attributes(*made);
    made->addParamAttr(2, llvm::Attribute::getWithAlignment(context_, llvm::Align(64)));
    return made;
  }

  void emit_run_warps() {
    llvm::Constant* none = llvm::ConstantPointerNull::get(at_.getPtrTy());
    std::array<llvm::Constant*, 2> steps{none, none};
    std::uint32_t full_count = 0;
    std::uint32_t rest = 0;
    for (const WarpKind& kind : kinds_) {
      const bool full = kind.lanes == 0xffffffffu;
      steps[full ? 0 : 1] = kind.step;
      (full ? full_count : rest) = full ? kind.count : kind.lanes;
    }
    llvm::Constant* fields[] = {steps[0], steps[1], at_.getInt32(full_count), at_.getInt32(rest),
                                at_.getInt32(frame_bytes_)};
    llvm::Constant* value = llvm::ConstantStruct::getAnon(context_, fields);
    auto* table = new llvm::GlobalVariable(module_, value->getType(), true, llvm::GlobalValue::PrivateLinkage,
                                           value, "warp_steps");
    llvm::FunctionType* type = llvm::FunctionType::get(
        at_.getVoidTy(), {pointer(), pointer(), pointer(), word(), word(), word()}, false);
    at_.CreateCall(module_.getOrInsertFunction("quern_cpu_run_warps", type),
                   {launch_, worker_, table, ctaid_[0], ctaid_[1], ctaid_[2]});
  }

  llvm::Function* create_step(const char* name) {
    llvm::FunctionType* type = llvm::FunctionType::get(
        word(), {pointer(), pointer(), pointer(), word(), word(), word(), word(), word(), word(), word()},
        false);
    llvm::Function* made = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, module_);
    set_state_attributes(*made);
    made->addParamAttr(2, llvm::Attribute::NoAlias);  // no other pointer refers to the frames
    return made;
  }

  BodyInputs step_inputs(llvm::Function* step) {
    function_ = step;
    BodyInputs inputs = new_inputs();
    llvm::IRBuilder<>(inputs.entry).CreateBr(inputs.begin);
    inputs.launch = step->getArg(0);
    inputs.worker = step->getArg(1);
    inputs.frame = step->getArg(2);
    for (unsigned d = 0; d < 3; ++d) inputs.ctaid[d] = step->getArg(3 + d);
    inputs.warp = step->getArg(6);
    inputs.state = step->getArg(7);
    inputs.true_lanes = step->getArg(8);
    inputs.arrived_lanes = step->getArg(9);
    return inputs;
  }

  void emit_body(WarpBody& body, const BodyInputs& inputs) {
    body.emit();
    // the same value as engine::StepEnd::ended
    llvm::IRBuilder<>(inputs.done).CreateRet(at_.getInt32(frame::kDone));
  }

  BodyInputs new_inputs() {
    BodyInputs inputs;
    inputs.function = function_;
    inputs.entry = block("entry");
    inputs.begin = block("begin");
    inputs.done = block("done");
    return inputs;
  }

  // --- the function itself
  void begin_function() {
    llvm::FunctionType* type = llvm::FunctionType::get(
        at_.getVoidTy(), {pointer(), pointer(), at_.getInt64Ty(), at_.getInt64Ty()}, false);
    function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, kRunName, module_);
    set_state_attributes(*function_);
    launch_ = function_->getArg(0);
    worker_ = function_->getArg(1);
    entry_ = block("entry");
  }

  /// Computes ctaid for each block by incrementing that of the block before, with carry.
  void emit_block_loop() {
    llvm::Value* first = function_->getArg(2);
    llvm::Value* count = function_->getArg(3);
    llvm::BasicBlock* setup = block("setup");
    llvm::BasicBlock* head = block("blocks");
    llvm::BasicBlock* end = block("end");
    at_.SetInsertPoint(entry_);
    at_.CreateCondBr(at_.CreateICmpEQ(count, at_.getInt64(0)), end, setup);
    at_.SetInsertPoint(end);
    // Stores that bypass the caches are not ordered before what tells others that the blocks are complete.
    if (streamed_parameters(plan_) != 0) at_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
    at_.CreateRetVoid();

    at_.SetInsertPoint(setup);
    std::array<llvm::Value*, 2> grid{};
    for (unsigned d = 0; d < 2; ++d)
      grid[d] = at_.CreateAlignedLoad(word(), field(launch_, offsetof(engine::LaunchState, grid) + 4 * d),
                                      llvm::Align(4));
    llvm::Value* wide_x = at_.CreateZExt(grid[0], at_.getInt64Ty());
    llvm::Value* wide_y = at_.CreateZExt(grid[1], at_.getInt64Ty());
    llvm::Value* row = at_.CreateUDiv(first, wide_x);
    const std::array<llvm::Value*, 3> start{at_.CreateTrunc(at_.CreateURem(first, wide_x), word()),
                                            at_.CreateTrunc(at_.CreateURem(row, wide_y), word()),
                                            at_.CreateTrunc(at_.CreateUDiv(row, wide_y), word())};
    at_.CreateBr(head);

    at_.SetInsertPoint(head);
    llvm::PHINode* left = at_.CreatePHI(at_.getInt64Ty(), 2, "blocks_left");
    left->addIncoming(count, setup);
    std::array<llvm::PHINode*, 3> ctaid{};
    for (unsigned d = 0; d < 3; ++d) {
      ctaid[d] = at_.CreatePHI(word(), 2, "ctaid");
      ctaid[d]->addIncoming(start[d], setup);
      ctaid_[d] = ctaid[d];
    }
    note_running(offsetof(engine::WorkerState, blocks_left), left);
    if (plan_.dispatched)
      emit_run_warps();
    else if (steps_)
      emit_rounds();
    else
      for (const WarpKind& kind : kinds_) kind.width > 1 ? emit_gang(kind) : emit_warps(kind);

    // Compute ctaid of the next block.
    llvm::Value* x = at_.CreateAdd(ctaid[0], at_.getInt32(1));
    llvm::Value* x_wraps = at_.CreateICmpEQ(x, grid[0]);
    llvm::Value* y = at_.CreateAdd(ctaid[1], at_.CreateZExt(x_wraps, word()));
    llvm::Value* y_wraps = at_.CreateICmpEQ(y, grid[1]);
    llvm::BasicBlock* latch = at_.GetInsertBlock();
    ctaid[0]->addIncoming(at_.CreateSelect(x_wraps, at_.getInt32(0), x), latch);
    ctaid[1]->addIncoming(at_.CreateSelect(y_wraps, at_.getInt32(0), y), latch);
    ctaid[2]->addIncoming(at_.CreateAdd(ctaid[2], at_.CreateZExt(y_wraps, word())), latch);
    llvm::Value* next = at_.CreateSub(left, at_.getInt64(1));
    left->addIncoming(next, latch);
    llvm::BranchInst* const branch = at_.CreateCondBr(at_.CreateICmpEQ(next, at_.getInt64(0)), end, head);
    branch->setMetadata(kBlockEnds, llvm::MDNode::get(context_, {}));
  }

  /// Stores data for the report of a fault. The store is atomic, because LLVM does not know that code may
  /// fault and would move it to the end of the loop. (A volatile store would keep LLVM from moving later code
  /// out of the loop.)
  void note_running(std::uint64_t offset, llvm::Value* what) {
    const llvm::Align align(what->getType()->isIntegerTy(64) ? 8 : 4);
    at_.CreateAlignedStore(what, field(worker_, offset), align)->setAtomic(llvm::AtomicOrdering::Monotonic);
  }
  void note_warps(llvm::Value* first, std::uint32_t count) {
    llvm::Value* what =
        count == 1 ? first : at_.CreateOr(first, at_.getInt32(count << engine::kRunningWarpBits));
    note_running(offsetof(engine::WorkerState, running_warps), what);
  }

  /// For kernels without barriers: emits the body in a loop over the warps, so that values that they share
  /// are computed once.
  void emit_warps(const WarpKind& kind) {
    // With several warps, do not record which one runs: an extra store per warp slows short kernels.
    note_warps(at_.getInt32(specialisation_.warps() == 1 ? 0 : engine::kUnknownWarp), 1);
    llvm::BasicBlock* before = at_.GetInsertBlock();
    llvm::BasicBlock* head = block("warps");
    at_.CreateBr(head);
    at_.SetInsertPoint(head);
    llvm::PHINode* warp = at_.CreatePHI(word(), 2, "warp");
    warp->addIncoming(at_.getInt32(kind.first), before);

    BodyInputs inputs = run_inputs();
    at_.CreateBr(inputs.begin);
    inputs.warp = kind.count == 1 ? static_cast<llvm::Value*>(at_.getInt32(kind.first)) : warp;
    inputs.lanes = at_.getInt32(kind.lanes);
    WarpBody(*kind.plan, specialisation_, inputs, callees_).emit();

    at_.SetInsertPoint(inputs.done);
    llvm::BasicBlock* after = block("warps_done");
    llvm::Value* next = at_.CreateAdd(warp, at_.getInt32(1));
    warp->addIncoming(next, inputs.done);
    at_.CreateCondBr(at_.CreateICmpEQ(next, at_.getInt32(kind.first + kind.count)), after, head);
    at_.SetInsertPoint(after);
  }

  /// For blocks that are one gang, which never splits: emits its body.
  void emit_gang(const WarpKind& kind) {
    note_warps(at_.getInt32(0), kind.width);
    BodyInputs inputs = run_inputs();
    at_.CreateBr(inputs.begin);
    inputs.warp = at_.getInt32(0);
    const Gang gang{.width = kind.width, .whole_block = true};
    WarpBody(*kind.plan, specialisation_, inputs, callees_, gang).emit();
    at_.SetInsertPoint(inputs.done);
  }

  BodyInputs run_inputs() {
    BodyInputs inputs;
    inputs.function = function_;
    inputs.entry = entry_;
    inputs.begin = block("begin");
    inputs.done = block("done");
    inputs.launch = launch_;
    inputs.worker = worker_;
    for (unsigned d = 0; d < 3; ++d) inputs.ctaid[d] = ctaid_[d];
    return inputs;
  }

  // --- with barriers: every warp makes a step, until no warp is left. A round ends when all warps have
  // reached the barrier.
  void emit_rounds() {
    llvm::Value* frames = at_.CreateAlignedLoad(
        pointer(), field(worker_, offsetof(engine::WorkerState, frames)), llvm::Align(8));
    for (std::uint32_t warp = 0; warp < specialisation_.warps(); ++warp)
      at_.CreateStore(at_.getInt32(0), field(frames, std::uint64_t{warp} * frame_bytes_ + frame::kState));
    llvm::BasicBlock* before = at_.GetInsertBlock();
    llvm::BasicBlock* round = block("round");
    at_.CreateBr(round);
    at_.SetInsertPoint(round);
    true_lanes_ = at_.CreatePHI(word(), 2, "true_lanes");
    arrived_lanes_ = at_.CreatePHI(word(), 2, "arrived_lanes");
    for (llvm::PHINode* phi : {true_lanes_, arrived_lanes_}) phi->addIncoming(at_.getInt32(0), before);
    Round sum{at_.getInt32(0), at_.getInt32(0), at_.getInt32(0), at_.getInt32(0)};
    for (const WarpKind& kind : kinds_) sum = emit_steps_of(kind, frames, sum);

    llvm::BasicBlock* after = block("rounds_done");
    if (distinct_ids()) check_one_barrier(sum);
    true_lanes_->addIncoming(sum.true_lanes, at_.GetInsertBlock());
    arrived_lanes_->addIncoming(sum.arrived_lanes, at_.GetInsertBlock());
    at_.CreateCondBr(at_.CreateICmpEQ(sum.waiting, at_.getInt32(0)), after, round);
    at_.SetInsertPoint(after);
  }

  /// Sums over the warps in one round.
  struct Round {
    llvm::Value* waiting;  ///< warps at a barrier
    llvm::Value* true_lanes;
    llvm::Value* arrived_lanes;
    llvm::Value* ids;  ///< bit i: some warp is at barrier i
  };

  static constexpr std::array<llvm::Value * Round::*, 4> kSums{&Round::waiting, &Round::true_lanes,
                                                               &Round::arrived_lanes, &Round::ids};

  Round emit_steps_of(const WarpKind& kind, llvm::Value* frames, const Round& so_far) {
    llvm::Value* first = at_.getInt32(kind.first);
    if (kind.gang == nullptr) return emit_step_loop(kind, frames, first, kind.count, so_far);
    return emit_loop(first, kind.count, kind.width, so_far, [&](llvm::Value* warp, const Round& sum) {
      return emit_gang_call(kind, frames, warp, sum);
    });
  }

  /// Each of the `count` warps from `first` on that has not ended makes one step.
  Round emit_step_loop(const WarpKind& kind, llvm::Value* frames, llvm::Value* first, std::uint32_t count,
                       const Round& so_far) {
    return emit_loop(first, count, 1, so_far, [&](llvm::Value* warp, const Round& sum) {
      llvm::Value* frame = frame_of(frames, warp);
      llvm::Value* state = at_.CreateLoad(word(), field(frame, frame::kState));
      llvm::BasicBlock* ended = at_.GetInsertBlock();
      llvm::BasicBlock* step = block("step");
      llvm::BasicBlock* arrived = block("arrived");
      llvm::BasicBlock* next = block("next");
      at_.CreateCondBr(at_.CreateICmpEQ(state, at_.getInt32(frame::kDone)), next, step);

      at_.SetInsertPoint(step);
      note_warps(warp, 1);
      llvm::Value* to = emit_step_call(kind.step, frame, warp, state);
      at_.CreateStore(to, field(frame, frame::kState));
      at_.CreateCondBr(at_.CreateICmpEQ(to, at_.getInt32(frame::kDone)), next, arrived);

      at_.SetInsertPoint(arrived);
      const Round added = add_arrived(kind, sum, frame, 1, to);
      at_.CreateBr(next);
      at_.SetInsertPoint(next);
      return merge({{sum, ended}, {sum, step}, {added, arrived}});
    });
  }

  /// Warps of a gang with equal inputs make their step together if the gang can continue from there. Other
  /// warps, and those that leave the gang in the step, make it one by one.
  Round emit_gang_call(const WarpKind& kind, llvm::Value* frames, llvm::Value* warp, const Round& sum) {
    llvm::BasicBlock* together = block("together");
    llvm::BasicBlock* joint = block("joint");
    llvm::BasicBlock* arrived = block("arrived");
    llvm::BasicBlock* apart = block("apart");
    llvm::BasicBlock* next = block("next");
    llvm::Value* frame = frame_of(frames, warp);
    const auto state_of = [&](std::uint32_t i) {
      return field(frame, std::uint64_t{i} * frame_bytes_ + frame::kState);
    };
    llvm::Value* state = at_.CreateLoad(word(), state_of(0));
    llvm::Value* agree = at_.CreateICmpULE(state, at_.getInt32(kind.last_common_state));
    for (std::uint32_t i = 1; i < kind.width; ++i)
      agree = at_.CreateAnd(agree, at_.CreateICmpEQ(at_.CreateLoad(word(), state_of(i)), state));
    at_.CreateCondBr(agree, together, apart);

    at_.SetInsertPoint(together);
    note_warps(warp, kind.width);
    llvm::Value* to = emit_step_call(kind.gang, frame, warp, state);
    at_.CreateCondBr(at_.CreateICmpEQ(to, at_.getInt32(frame::kParted)), apart, joint);
    at_.SetInsertPoint(joint);
    for (std::uint32_t i = 0; i < kind.width; ++i) at_.CreateStore(to, state_of(i));
    at_.CreateCondBr(at_.CreateICmpEQ(to, at_.getInt32(frame::kDone)), next, arrived);
    at_.SetInsertPoint(arrived);
    const Round added = add_arrived(kind, sum, frame, kind.width, to);
    at_.CreateBr(next);

    at_.SetInsertPoint(apart);
    const Round alone = emit_step_loop(kind, frames, warp, kind.width, sum);
    llvm::BasicBlock* alone_done = at_.GetInsertBlock();
    at_.CreateBr(next);
    at_.SetInsertPoint(next);
    return merge({{sum, joint}, {added, arrived}, {alone, alone_done}});
  }

  llvm::Value* frame_of(llvm::Value* frames, llvm::Value* warp) {
    llvm::Value* index = at_.CreateZExt(warp, at_.getInt64Ty());
    return at_.CreateGEP(at_.getInt8Ty(), frames, at_.CreateMul(index, at_.getInt64(frame_bytes_)));
  }

  llvm::Value* emit_step_call(llvm::Function* step, llvm::Value* frame, llvm::Value* warp,
                              llvm::Value* state) {
    return at_.CreateCall(step, {launch_, worker_, frame, ctaid_[0], ctaid_[1], ctaid_[2], warp, state,
                                 true_lanes_, arrived_lanes_});
  }

  /// Adds to `sum` the `count` warps whose frames start at `frame`, which have arrived at the barrier of
  /// state `to`.
  Round add_arrived(const WarpKind& kind, Round sum, llvm::Value* frame, std::uint32_t count,
                    llvm::Value* to) {
    sum.waiting = at_.CreateAdd(sum.waiting, at_.getInt32(count));
    for (std::uint32_t i = 0; reduces() && i < count; ++i) {
      const auto load = [&](std::uint32_t offset) {
        return at_.CreateLoad(word(), field(frame, std::uint64_t{i} * frame_bytes_ + offset));
      };
      sum.true_lanes = at_.CreateAdd(sum.true_lanes, load(frame::kTrueLanes));
      sum.arrived_lanes = at_.CreateAdd(sum.arrived_lanes, load(frame::kArrivedLanes));
    }
    if (distinct_ids()) sum.ids = at_.CreateOr(sum.ids, id_bit(kind, to));
    return sum;
  }

  Round merge(std::initializer_list<std::pair<Round, llvm::BasicBlock*>> from) {
    Round result{};
    for (llvm::Value* Round::* sum : kSums) {
      llvm::PHINode* phi = at_.CreatePHI(word(), static_cast<unsigned>(from.size()));
      for (const auto& [round, block] : from) phi->addIncoming(round.*sum, block);
      result.*sum = phi;
    }
    return result;
  }

  /// for (warp = first; warp != first + count; warp += step) sum = body(warp, sum)
  template <class Body>
  Round emit_loop(llvm::Value* first, std::uint32_t count, std::uint32_t step, const Round& so_far,
                  const Body& body) {
    llvm::BasicBlock* before = at_.GetInsertBlock();
    llvm::BasicBlock* head = block("steps");
    llvm::BasicBlock* after = block("steps_done");
    llvm::Value* end = at_.CreateAdd(first, at_.getInt32(count));
    at_.CreateBr(head);
    at_.SetInsertPoint(head);
    llvm::PHINode* warp = at_.CreatePHI(word(), 2, "warp");
    warp->addIncoming(first, before);
    Round sum{};
    for (llvm::Value* Round::* each : kSums) {
      llvm::PHINode* phi = at_.CreatePHI(word(), 2);
      phi->addIncoming(so_far.*each, before);
      sum.*each = phi;
    }
    const Round added = body(warp, sum);
    llvm::Value* following = at_.CreateAdd(warp, at_.getInt32(step));
    llvm::BasicBlock* latch = at_.GetInsertBlock();
    warp->addIncoming(following, latch);
    for (llvm::Value* Round::* each : kSums)
      llvm::cast<llvm::PHINode>(sum.*each)->addIncoming(added.*each, latch);
    at_.CreateCondBr(at_.CreateICmpEQ(following, end), after, head);
    at_.SetInsertPoint(after);
    return added;
  }

  // --- barrier ids: constants 0..15 (check.cpp refuses others)
  std::uint32_t id_of(ir::Value barrier) const {
    const ir::Function& function = *plan_.function;
    const std::size_t operand = function[barrier].op == ir::Op::barrier_reduce ? 1 : 0;
    return static_cast<std::uint32_t>(function[function[barrier].args[operand]].imm) & 15;
  }
  bool reduces() const {
    return std::any_of(plan_.barrier.begin(), plan_.barrier.end(), [&](ir::Value barrier) {
      return barrier != ir::kNone && (*plan_.function)[barrier].op == ir::Op::barrier_reduce;
    });
  }
  bool distinct_ids() const {
    std::uint32_t ids = 0;
    for (const ir::Value barrier : plan_.barrier)
      if (barrier != ir::kNone) ids |= std::uint32_t{1} << id_of(barrier);
    return (ids & (ids - 1)) != 0;
  }
  llvm::Value* id_bit(const WarpKind& kind, llvm::Value* state) {
    std::vector<std::uint32_t> bits{0};
    for (const ir::Value barrier : kind.states)
      bits.push_back(barrier == ir::kNone ? 0 : std::uint32_t{1} << id_of(barrier));
    llvm::Constant* table = llvm::ConstantDataArray::get(context_, bits);
    auto* global = new llvm::GlobalVariable(module_, table->getType(), true,
                                            llvm::GlobalValue::PrivateLinkage, table, "barrier_ids");
    return at_.CreateLoad(word(), at_.CreateInBoundsGEP(table->getType(), global, {at_.getInt32(0), state}));
  }
  /// Reports a fault if warps wait at different barriers, since they would wait forever.
  void check_one_barrier(const Round& sum) {
    llvm::BasicBlock* one = block("one_barrier");
    llvm::BasicBlock* several = block("several_barriers");
    llvm::Value* more = at_.CreateAnd(sum.ids, at_.CreateSub(sum.ids, at_.getInt32(1)));
    at_.CreateCondBr(at_.CreateICmpEQ(more, at_.getInt32(0)), one, several);
    at_.SetInsertPoint(several);
    llvm::FunctionType* type = llvm::FunctionType::get(at_.getVoidTy(), {pointer(), word()}, false);
    at_.CreateCall(module_.getOrInsertFunction("quern_cpu_trap", type),
                   {worker_, at_.getInt32(static_cast<std::uint32_t>(ir::Trap::divergent_barrier))});
    at_.CreateUnreachable();
    at_.SetInsertPoint(one);
  }

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const Plan& plan_;
  const Plan partial_plan_;
  const Specialisation& specialisation_;
  const DeviceFunctions& callees_;
  llvm::IRBuilder<> at_;
  std::vector<WarpKind> kinds_;
  bool steps_ = false;
  std::uint32_t frame_bytes_ = 0;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;
  llvm::Value* launch_ = nullptr;
  llvm::Value* worker_ = nullptr;
  std::array<llvm::Value*, 3> ctaid_{};
  llvm::PHINode* true_lanes_ = nullptr;
  llvm::PHINode* arrived_lanes_ = nullptr;
};

}  // namespace

std::uint64_t streamed_parameters(const Plan& plan) {
  std::uint64_t parameters = 0;
  for (const std::uint32_t param : plan.streamed)
    if (param != ir::kNone) parameters |= std::uint64_t{1} << (param / 8);
  return parameters;
}

std::uint32_t emit_run(llvm::Module& module, const Plan& plan, const Specialisation& specialisation,
                       const DeviceFunctions& callees) {
  return RunEmitter(module, plan, specialisation, callees).run();
}

}  // namespace quern::cpu::emit
