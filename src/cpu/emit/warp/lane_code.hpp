// SPDX-License-Identifier: Apache-2.0
// Loops that the lanes of masked code run one after another (cuts::LaneLoop): scalar code, in a loop over the
// lanes that wait at the header. What the lanes read and what they leave behind is in memory in between,
// where a scalar finds its lane's element.
#pragma once

#include <utility>
#include <vector>

#include "cpu/emit/warp/edges.hpp"
#include "cpu/emit/warp/instructions.hpp"
#include "cpu/emit/warp/masked_variables.hpp"

namespace quern::cpu::emit {

class LaneCode : private BodyPart {
 public:
  LaneCode(BodyState& body, Slots& slots, Values& values, Edges& edges, MaskedVariables& variables,
           Instructions& instructions)
      : BodyPart(body),
        slots_(slots),
        values_(values),
        edges_(edges),
        variables_(variables),
        instructions_(instructions) {}

  /// Emits the loop, of which `header` is the header, in masked code that runs with the lanes of
  /// BodyState::running. They wait at its exits then.
  void emit(ir::BlockId header);

 private:
  /// A value with an element for each lane, in memory.
  struct Array {
    ir::Value value = ir::kNone;
    llvm::AllocaInst* memory = nullptr;
  };
  /// A block behind the loop.
  struct Exit {
    ir::BlockId block = ir::kNone;
    llvm::AllocaInst* lanes = nullptr;  ///< i32
    std::vector<Array> phis;            ///< those of the block that differ between lanes
  };

  bool is_inside(ir::BlockId block) const { return plan_.lane_loop[block] == number_; }
  llvm::AllocaInst* make_variable(llvm::Type* type);
  llvm::Type* element_type(ir::Value value) const;
  llvm::Value* element(llvm::AllocaInst* array, ir::Value value);
  void store_operands();
  void find_exits();
  void begin_lane();
  void emit_block(ir::BlockId block);
  void emit_next_copy(const cuts::LaneLoop::Short& loop);
  void emit_edge(ir::BlockId block, unsigned successor_index);
  void leave(Exit& exit, ir::BlockId block, unsigned successor_index);
  void arrive(const Exit& exit);

  Slots& slots_;
  Values& values_;
  Edges& edges_;
  MaskedVariables& variables_;
  Instructions& instructions_;

  // The loop being emitted.
  std::uint32_t number_ = ir::kNone;
  const cuts::LaneLoop* loop_ = nullptr;
  std::vector<std::pair<ir::Value, llvm::Value*>> uniform_;  ///< values that it reads, the same in all lanes
  std::vector<Array> operands_;                              ///< other values that it reads
  std::vector<Exit> exits_;
  std::vector<llvm::BasicBlock*> blocks_;  ///< by BlockId
  llvm::BasicBlock* next_lane_ = nullptr;
  llvm::Value* lane_ = nullptr;  ///< i32, the lane that runs
};

}  // namespace quern::cpu::emit
