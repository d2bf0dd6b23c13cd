// SPDX-License-Identifier: Apache-2.0
// Dispatched code (Plan::dispatched), for kernels whose lanes wait for each other. It is masked code in which
// the next block is chosen at run time. Each lane has its PC, the number of the block that it runs next, in
// the head of the warp's frame. The dispatcher selects the least PC and runs that block for the lanes that
// have it. There are no waiting variables. The masked slots are in the frame, so that a warp can be left at
// any time; a definition changes only the running lanes. The step returns when only other warps can make
// progress, and the next step starts at the dispatcher. Source: docs/decisions/0004-dispatcher.md.
#pragma once

#include "cpu/emit/warp/conversions.hpp"
#include "cpu/emit/warp/instructions.hpp"

namespace quern::cpu::emit {

class DispatchedCode : private BodyPart {
 public:
  DispatchedCode(BodyState& body, Slots& slots, Values& values, EngineCalls& engine, Edges& edges,
                 Conversions& conversions, Instructions& instructions)
      : BodyPart(body),
        slots_(slots),
        values_(values),
        engine_(engine),
        edges_(edges),
        conversions_(conversions),
        instructions_(instructions) {}

  /// Lays out the frame: its head, then every value that leaves its block, vectors first.
  void lay_out_frame();
  /// Creates the dispatcher's block and branches to it. The engine initialises the frame of a kernel. A
  /// device function initialises its own frame at each call.
  void begin();
  void emit();

  // Called from full code.
  /// Switches to dispatched code on the edges of `block` (indices into its successors).
  void enter(ir::BlockId block, const std::vector<unsigned>& edges);
  /// The threads of the lanes in `word` have ended.
  void end_lanes(llvm::Value* word);

 private:
  std::uint32_t pc_of(ir::BlockId block) const;
  llvm::Value* head_field(std::uint64_t offset);
  llvm::Value* load_pcs();
  void store_pcs(llvm::Value* pcs);
  void emit_dispatcher();
  void leave_step(llvm::Value* end);
  void emit_block(ir::BlockId block);
  void emit_terminator(ir::BlockId block);
  void send(ir::BlockId block, unsigned successor_index, llvm::Value* lanes);
  bool goes_straight(ir::BlockId block) const;

  // --- warp_sync.cpp
  void sync_lanes(ir::BlockId block);
  void sync_block(ir::BlockId block);
  void define_reduction(ir::BlockId block);

  Slots& slots_;
  Values& values_;
  EngineCalls& engine_;
  Edges& edges_;
  Conversions& conversions_;
  Instructions& instructions_;
  llvm::BasicBlock* dispatch_ = nullptr;
  llvm::SwitchInst* blocks_ = nullptr;
};

}  // namespace quern::cpu::emit
