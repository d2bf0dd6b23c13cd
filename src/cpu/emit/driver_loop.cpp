// SPDX-License-Identifier: Apache-2.0
// The function that the scheduler calls: blocks, warps inside, and for kernels with barriers the rounds of
// steps.
#include "cpu/emit/driver_loop.hpp"

#include <algorithm>

#include "cpu/emit/llvm_target.hpp"
#include "cpu/engine/abi.hpp"

namespace quern::cpu::emit {
namespace {

/// One of the two kinds of warp: where its code is (barriers: its step function) and which warps are of it.
struct WarpKind {
  const Plan* plan = nullptr;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t lanes = 0xffffffffu;
  llvm::Function* step = nullptr;
  std::vector<ir::Value> states;
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
    const std::uint32_t full_warps = specialisation.threads() / kLanes;
    const std::uint32_t rest = specialisation.threads() % kLanes;
    if (full_warps != 0) kinds_.push_back({&plan_, 0, full_warps, 0xffffffffu, nullptr, {}});
    if (rest != 0)
      kinds_.push_back({&partial_plan_, full_warps, 1, (std::uint32_t{1} << rest) - 1, nullptr, {}});
  }

  std::uint32_t run() {
    steps_ = plan_.has_barriers && specialisation_.warps() > 1;
    if (steps_)
      for (WarpKind& kind : kinds_) emit_step(kind);
    frame_bytes_ = (frame_bytes_ + 63) / 64 * 64;
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

  // --- a warp with barriers: step(launch, worker, frame, ctaid.x, .y, .z, warp, state, true lanes, arrived
  // lanes) -> next state
  void emit_step(WarpKind& kind) {
    llvm::FunctionType* type = llvm::FunctionType::get(
        word(), {pointer(), pointer(), pointer(), word(), word(), word(), word(), word(), word(), word()},
        false);
    kind.step = llvm::Function::Create(type, llvm::Function::InternalLinkage,
                                       kind.lanes == 0xffffffffu ? "step" : "step_partial", module_);
    set_state_attributes(*kind.step);
    kind.step->addParamAttr(2, llvm::Attribute::NoAlias);  // nobody else knows where the frames are
    function_ = kind.step;
    WarpPlace place = make_place();
    llvm::IRBuilder<>(place.entry).CreateBr(place.begin);
    place.launch = kind.step->getArg(0);
    place.worker = kind.step->getArg(1);
    place.frame = kind.step->getArg(2);
    for (unsigned d = 0; d < 3; ++d) place.ctaid[d] = kind.step->getArg(3 + d);
    place.warp = kind.step->getArg(6);
    place.state = kind.step->getArg(7);
    place.true_lanes = kind.step->getArg(8);
    place.arrived_lanes = kind.step->getArg(9);
    place.lanes = at_.getInt32(kind.lanes);
    WarpBody body(*kind.plan, specialisation_, place, callees_);
    body.emit();
    llvm::IRBuilder<>(place.done).CreateRet(at_.getInt32(frame::kDone));
    kind.states = body.states();
    frame_bytes_ = std::max(frame_bytes_, body.frame_bytes());
  }

  WarpPlace make_place() {
    WarpPlace place;
    place.function = function_;
    place.entry = block("entry");
    place.begin = block("begin");
    place.done = block("done");
    return place;
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

  /// For each block: its ctaid, counted up with carry from the first one's.
  void emit_block_loop() {
    llvm::Value* first = function_->getArg(2);
    llvm::Value* count = function_->getArg(3);
    llvm::BasicBlock* setup = block("setup");
    llvm::BasicBlock* head = block("blocks");
    llvm::BasicBlock* end = block("end");
    at_.SetInsertPoint(entry_);
    at_.CreateCondBr(at_.CreateICmpEQ(count, at_.getInt64(0)), end, setup);
    at_.SetInsertPoint(end);
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
    if (steps_)
      emit_rounds();
    else
      for (const WarpKind& kind : kinds_) emit_warps(kind);

    // The next block.
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
    at_.CreateCondBr(at_.CreateICmpEQ(next, at_.getInt64(0)), end, head);
  }

  /// Without barriers: the body in a loop over the warps, so that what they share is computed once.
  void emit_warps(const WarpKind& kind) {
    llvm::BasicBlock* before = at_.GetInsertBlock();
    llvm::BasicBlock* head = block("warps");
    at_.CreateBr(head);
    at_.SetInsertPoint(head);
    llvm::PHINode* warp = at_.CreatePHI(word(), 2, "warp");
    warp->addIncoming(at_.getInt32(kind.first), before);

    WarpPlace place = make_place_in_run();
    at_.CreateBr(place.begin);
    place.warp = kind.count == 1 ? static_cast<llvm::Value*>(at_.getInt32(kind.first)) : warp;
    place.lanes = at_.getInt32(kind.lanes);
    WarpBody(*kind.plan, specialisation_, place, callees_).emit();

    at_.SetInsertPoint(place.done);
    llvm::BasicBlock* after = block("warps_done");
    llvm::Value* next = at_.CreateAdd(warp, at_.getInt32(1));
    warp->addIncoming(next, place.done);
    at_.CreateCondBr(at_.CreateICmpEQ(next, at_.getInt32(kind.first + kind.count)), after, head);
    at_.SetInsertPoint(after);
  }

  WarpPlace make_place_in_run() {
    WarpPlace place;
    place.function = function_;
    place.entry = entry_;
    place.begin = block("begin");
    place.done = block("done");
    place.launch = launch_;
    place.worker = worker_;
    for (unsigned d = 0; d < 3; ++d) place.ctaid[d] = ctaid_[d];
    return place;
  }

  // --- with barriers: every warp makes a step, until none is left; a round ends at a barrier that all of
  // them have reached
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
    for (const WarpKind& kind : kinds_) sum = emit_step_loop(kind, frames, sum);

    llvm::BasicBlock* after = block("rounds_done");
    if (distinct_ids()) check_one_barrier(sum);
    true_lanes_->addIncoming(sum.true_lanes, at_.GetInsertBlock());
    arrived_lanes_->addIncoming(sum.arrived_lanes, at_.GetInsertBlock());
    at_.CreateCondBr(at_.CreateICmpEQ(sum.waiting, at_.getInt32(0)), after, round);
    at_.SetInsertPoint(after);
  }

  /// What a round adds up over its warps.
  struct Round {
    llvm::Value* waiting;  ///< warps at a barrier
    llvm::Value* true_lanes;
    llvm::Value* arrived_lanes;
    llvm::Value* ids;  ///< bit i: some warp is at barrier i
  };

  Round emit_step_loop(const WarpKind& kind, llvm::Value* frames, const Round& so_far) {
    llvm::BasicBlock* before = at_.GetInsertBlock();
    llvm::BasicBlock* head = block("steps");
    llvm::BasicBlock* step = block("step");
    llvm::BasicBlock* arrived = block("arrived");
    llvm::BasicBlock* next = block("next");
    llvm::BasicBlock* after = block("steps_done");
    at_.CreateBr(head);
    at_.SetInsertPoint(head);
    llvm::PHINode* warp = at_.CreatePHI(word(), 2, "warp");
    warp->addIncoming(at_.getInt32(kind.first), before);
    const auto carried = [&](llvm::Value* from) {
      llvm::PHINode* phi = at_.CreatePHI(word(), 2);
      phi->addIncoming(from, before);
      return phi;
    };
    const std::array<llvm::PHINode*, 4> sums{carried(so_far.waiting), carried(so_far.true_lanes),
                                             carried(so_far.arrived_lanes), carried(so_far.ids)};
    llvm::Value* frame =
        at_.CreateGEP(at_.getInt8Ty(), frames,
                      at_.CreateMul(at_.CreateZExt(warp, at_.getInt64Ty()), at_.getInt64(frame_bytes_)));
    llvm::Value* state = at_.CreateLoad(word(), field(frame, frame::kState));
    at_.CreateCondBr(at_.CreateICmpEQ(state, at_.getInt32(frame::kDone)), next, step);

    at_.SetInsertPoint(step);
    llvm::Value* to = at_.CreateCall(kind.step, {launch_, worker_, frame, ctaid_[0], ctaid_[1], ctaid_[2],
                                                 warp, state, true_lanes_, arrived_lanes_});
    at_.CreateStore(to, field(frame, frame::kState));
    at_.CreateCondBr(at_.CreateICmpEQ(to, at_.getInt32(frame::kDone)), next, arrived);

    at_.SetInsertPoint(arrived);
    std::array<llvm::Value*, 4> added{at_.CreateAdd(sums[0], at_.getInt32(1)), sums[1], sums[2], sums[3]};
    if (reduces()) {
      added[1] = at_.CreateAdd(sums[1], at_.CreateLoad(word(), field(frame, frame::kTrueLanes)));
      added[2] = at_.CreateAdd(sums[2], at_.CreateLoad(word(), field(frame, frame::kArrivedLanes)));
    }
    if (distinct_ids()) added[3] = at_.CreateOr(sums[3], id_bit(kind, to));
    at_.CreateBr(next);

    at_.SetInsertPoint(next);
    Round result{};
    const std::array<llvm::Value**, 4> results{&result.waiting, &result.true_lanes, &result.arrived_lanes,
                                               &result.ids};
    for (std::size_t i = 0; i < sums.size(); ++i) {
      llvm::PHINode* merged = at_.CreatePHI(word(), 3);
      merged->addIncoming(sums[i], head);
      merged->addIncoming(sums[i], step);
      merged->addIncoming(added[i], arrived);
      sums[i]->addIncoming(merged, next);
      *results[i] = merged;
    }
    llvm::Value* following = at_.CreateAdd(warp, at_.getInt32(1));
    warp->addIncoming(following, next);
    at_.CreateCondBr(at_.CreateICmpEQ(following, at_.getInt32(kind.first + kind.count)), after, head);
    at_.SetInsertPoint(after);
    return result;
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
    for (const ir::Value barrier : kind.states) bits.push_back(std::uint32_t{1} << id_of(barrier));
    llvm::Constant* table = llvm::ConstantDataArray::get(context_, bits);
    auto* global = new llvm::GlobalVariable(module_, table->getType(), true,
                                            llvm::GlobalValue::PrivateLinkage, table, "barrier_ids");
    return at_.CreateLoad(word(), at_.CreateInBoundsGEP(table->getType(), global, {at_.getInt32(0), state}));
  }
  /// Warps that wait at different barriers would wait forever.
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

std::uint32_t emit_run(llvm::Module& module, const Plan& plan, const Specialisation& specialisation,
                       const DeviceFunctions& callees) {
  return RunEmitter(module, plan, specialisation, callees).run();
}

}  // namespace quern::cpu::emit
