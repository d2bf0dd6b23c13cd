// SPDX-License-Identifier: Apache-2.0
// The full version of the blocks. All 32 lanes run, of one warp or of every warp of a gang. Branches are real
// branches as long as the lanes agree.
#pragma once

#include <optional>

#include "cpu/analysis/edges.hpp"
#include "cpu/emit/warp/dispatched_code.hpp"
#include "cpu/emit/warp/gang_code.hpp"
#include "cpu/emit/warp/masked_code.hpp"
#include "cpu/emit/warp/serial_code.hpp"

namespace quern::cpu::emit {

class FullCode : private BodyPart {
 public:
  /// When lanes or warps diverge, control passes to one of `masked`, `dispatched`, `gang` and `serial`.
  FullCode(BodyState& body, Slots& slots, Values& values, EngineCalls& engine, Edges& edges,
           Instructions& instructions, Barriers& barriers, MaskedCode& masked, DispatchedCode& dispatched,
           GangCode& gang, SerialCode& serial)
      : BodyPart(body),
        slots_(slots),
        values_(values),
        engine_(engine),
        edges_(edges),
        instructions_(instructions),
        barriers_(barriers),
        masked_(masked),
        dispatched_(dispatched),
        gang_(gang),
        serial_(serial) {}

  void emit();

 private:
  void emit_terminator(ir::BlockId block);
  void emit_edge(ir::BlockId block, unsigned successor_index);
  void store_phis(ir::BlockId block, unsigned successor_index);
  void emit_cond_branch(ir::BlockId block);
  std::optional<unsigned> leaves_eager_loop(ir::BlockId block) const;
  llvm::Value* every_lane_below(const cuts::BoundedBranch& branch);
  llvm::Value* every_lane_below(const cuts::BoundedBranches& branch);
  std::pair<llvm::Value*, llvm::Value*> all_and_any(ir::Value condition);
  void emit_switch(ir::BlockId block);
  void emit_tests(ir::BlockId block);
  llvm::Value* holds(ir::Value assumed);
  llvm::Value* widening_holds(ir::Value widening);
  llvm::Value* division_holds(ir::Value division);
  struct Reach {
    llvm::Value* least;
    llvm::Value* most;
    llvm::Value* holds;
  };
  Reach reach_of(ir::Value index, const analysis::Distances& lanes, bool is_signed, llvm::Type* like);
  llvm::Value* clamp_holds(const analysis::Clamp& clamp);
  llvm::Value* edge_holds(const analysis::EdgeComparison& comparison,
                          const std::optional<std::uint64_t>& result);
  llvm::Value* sign_holds(ir::Value question);
  void leave(ir::BlockId block);

  Slots& slots_;
  Values& values_;
  EngineCalls& engine_;
  Edges& edges_;
  Instructions& instructions_;
  Barriers& barriers_;
  MaskedCode& masked_;
  DispatchedCode& dispatched_;
  GangCode& gang_;
  SerialCode& serial_;
};

}  // namespace quern::cpu::emit
