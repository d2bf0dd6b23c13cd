// SPDX-License-Identifier: Apache-2.0
// Code of a gang of warps in lockstep. It has full code only. Each instruction is emitted once for every
// warp, or once for all if the warps cannot differ. Differences from the full version of one warp: at a
// barrier, the warps of the gang do not wait for each other; warps that diverge continue one by one from
// their frames.
#pragma once

#include "cpu/emit/warp/barriers.hpp"

namespace quern::cpu::emit {

class GangCode : private BodyPart {
 public:
  GangCode(BodyState& body, Slots& slots, Values& values, ResumePoints& states, Barriers& barriers)
      : BodyPart(body), slots_(slots), values_(values), states_(states), barriers_(barriers) {}

  /// If the gang is the whole block, no warp waits. Otherwise the gang returns the state of each of its
  /// warps, which is the state that the warp would return alone.
  void barrier(ir::BlockId block);
  /// Emitted at the end of `block` if the warps diverge there: each continues alone.
  void split(ir::BlockId block);

 private:
  void store_frames(ir::BlockId next, ir::Value made_later);

  Slots& slots_;
  Values& values_;
  ResumePoints& states_;
  Barriers& barriers_;
};

}  // namespace quern::cpu::emit
