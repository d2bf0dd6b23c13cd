// SPDX-License-Identifier: Apache-2.0
// Code of a gang of warps in lockstep. It has full code only: each instruction once for every warp, or once
// for all where the warps cannot differ. Differences from one warp's full version: a barrier waits for no
// warp of the gang, and warps that diverge continue one by one from their frames.
#pragma once

#include "cpu/emit/warp/barriers.hpp"

namespace quern::cpu::emit {

class GangCode : private BodyPart {
 public:
  GangCode(BodyState& body, Slots& slots, Values& values, ResumePoints& states, Barriers& barriers)
      : BodyPart(body), slots_(slots), values_(values), states_(states), barriers_(barriers) {}

  /// If the gang is the whole block, no warp waits. Otherwise the gang returns the state of each of its
  /// warps, the same that the warp would return alone.
  void barrier(ir::BlockId block);
  /// At the end of `block`, where the warps diverge: each continues alone from there.
  void split(ir::BlockId block);

 private:
  void store_frames(ir::BlockId next, ir::Value made_later);

  Slots& slots_;
  Values& values_;
  ResumePoints& states_;
  Barriers& barriers_;
};

}  // namespace quern::cpu::emit
