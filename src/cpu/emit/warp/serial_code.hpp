// SPDX-License-Identifier: Apache-2.0
// Code that the warps of a gang run one after another, from a branch at which they disagree to the block
// where its paths meet (cuts::SerialRegion). The values are those of full code; the lanes are masked as in
// MaskedCode where not all of a warp take the same edge: each block has a variable `waiting`, and is skipped
// if that is empty. Where the lanes are known at compile time, the mask is a constant: one of its lanes is
// asked whether the block runs. The same for full code of one warp.
#pragma once

#include <utility>
#include <vector>

#include "cpu/emit/warp/edges.hpp"
#include "cpu/emit/warp/instructions.hpp"

namespace quern::cpu::emit {

class SerialCode : private BodyPart {
 public:
  SerialCode(BodyState& body, Slots& slots, Values& values, Edges& edges, Instructions& instructions)
      : BodyPart(body), slots_(slots), values_(values), edges_(edges), instructions_(instructions) {}

  /// Emitted at the end of the full version of `branch`: all warps run its region; the gang continues in
  /// lockstep.
  void emit(ir::BlockId branch);

 private:
  /// An edge that lanes take, and the values of the phis on it, in the form of slots. They are read before
  /// anything is stored.
  struct Edge {
    ir::BlockId from = ir::kNone;
    ir::BlockId to = ir::kNone;
    llvm::Value* lanes = nullptr;
    std::vector<std::pair<ir::Value, llvm::Value*>> phis;
  };
  using EdgeList = std::vector<Edge>;
  using Contents = std::vector<std::pair<ir::Value, llvm::Value*>>;

  EdgeList edges_from(ir::BlockId block, llvm::Value* lanes);
  void take(const Edge& edge);
  std::vector<ir::Value> values_to_restore() const;
  bool is_read_after_branch(ir::Value value) const;
  void clear_others();
  void run_head(const std::vector<EdgeList>& first);
  void run_lanes(llvm::Value* lanes);
  llvm::Value* run_known_lanes(std::uint32_t lanes);
  void run_warp(const EdgeList& first);
  bool only_leads_on(ir::BlockId block) const;
  void emit_block(std::size_t index, llvm::BasicBlock* end);
  llvm::AllocaInst* waiting(ir::BlockId block);

  Slots& slots_;
  Values& values_;
  Edges& edges_;
  Instructions& instructions_;

  // The region being emitted.
  ir::BlockId branch_ = ir::kNone;
  const cuts::SerialRegion* region_ = nullptr;
  std::vector<Contents> head_;              ///< by warp: the values of SerialRegion::joint_head
  std::vector<llvm::BasicBlock*> tests_;    ///< of the current warp, by index into the region's blocks
  std::vector<llvm::AllocaInst*> waiting_;  ///< by BlockId; null: not created yet
};

}  // namespace quern::cpu::emit
