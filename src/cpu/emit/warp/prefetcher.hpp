// SPDX-License-Identifier: Apache-2.0
// Prefetches for loads that walk through memory in a loop, with strides that the processor does not detect
// (as long as the grid is wide), or with more between two rounds than it looks past (barriers, atomic
// operations lane by lane). There the code prefetches its later reads.
#pragma once

#include <map>
#include <optional>

#include "cpu/emit/warp/values.hpp"

namespace quern::cpu::emit {

/// The operation that makes one round of a loop so long that the processor does not look past it.
enum class RoundLength : std::uint8_t { none, barrier, atomics };

class Prefetcher : private BodyPart {
 public:
  Prefetcher(BodyState& body, Slots& slots, Values& values)
      : BodyPart(body), slots_(slots), values_(values) {}

  /// Behind a load in full code.
  void emit(ir::Value load);

 private:
  RoundLength round_length(std::uint32_t loop);
  std::optional<llvm::Value*> advance_of(ir::Value value, std::uint32_t loop, unsigned depth);

  Slots& slots_;
  Values& values_;
  std::map<std::uint32_t, RoundLength> round_lengths_;  ///< by loop, as far as asked for
};

}  // namespace quern::cpu::emit
