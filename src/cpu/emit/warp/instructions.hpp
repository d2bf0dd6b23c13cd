// SPDX-License-Identifier: Apache-2.0
// The instructions of a block, up to its terminator or barrier.
#pragma once

#include "cpu/emit/operations/atomic/joint.hpp"
#include "cpu/emit/warp/calls.hpp"
#include "cpu/emit/warp/prefetcher.hpp"

namespace quern::cpu::emit {

class Instructions : private BodyPart {
 public:
  /// `context` is used to emit operations.
  Instructions(BodyState& body, Slots& slots, Values& values, EngineCalls& engine, Calls& calls,
               Prefetcher& prefetcher, Context& context)
      : BodyPart(body),
        slots_(slots),
        values_(values),
        engine_(engine),
        calls_(calls),
        prefetcher_(prefetcher),
        context_(context) {}

  /// Emits the instructions of the block from number `first` on, up to number `end`.
  void emit(ir::BlockId block, std::size_t first = 0, std::size_t end = SIZE_MAX);
  /// Emits an addition that the warps of the gang make as one (cuts/joint.hpp).
  void emit_joint(ir::Value value, ForEachWarp for_each_warp);
  /// Emits one instruction for the current warp.
  void emit_one(ir::Value value);

 private:
  Slots& slots_;
  Values& values_;
  EngineCalls& engine_;
  Calls& calls_;
  Prefetcher& prefetcher_;
  Context& context_;
};

}  // namespace quern::cpu::emit
