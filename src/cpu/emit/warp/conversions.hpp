// SPDX-License-Identifier: Apache-2.0
// Converts values between the full and the masked version. Their patterns may differ (the safe analysis knows
// less), and so may their representations (scalar or vector).
#pragma once

#include "cpu/emit/warp/edges.hpp"

namespace quern::cpu::emit {

class Conversions : private BodyPart {
 public:
  /// Values in their representation in masked code.
  using MaskedValues = std::vector<std::pair<ir::Value, llvm::Value*>>;

  Conversions(BodyState& body, Slots& slots, Values& values, const Edges& edges)
      : BodyPart(body), slots_(slots), values_(values), edges_(edges) {}

  /// In full code: returns `value` in its representation in masked code.
  llvm::Value* masked_from_full(ir::Value value);
  /// In full code at the end of `block`: returns the values that its successors on `edges` read, and their
  /// phis.
  MaskedValues masked_values_on(ir::BlockId block, const std::vector<unsigned>& edges);
  /// In masked code: continues in the full version of `block` if all lanes run and the values have the
  /// properties that full code assumes; otherwise continues after this code.
  void reenter_full(ir::BlockId block);

 private:
  llvm::Value* full_from_masked(ir::Value value, std::map<ir::Value, llvm::Value*>& done,
                                llvm::Value*& holds);
  void require(llvm::Value* condition, llvm::Value*& holds);
  void require_base(ir::Value value, llvm::Value* base, llvm::Value*& holds);
  llvm::Value* is_within(ir::Value value, std::int64_t min, std::int64_t max);
  llvm::Value* base_of(const analysis::LanePattern& pattern, llvm::Value* lane0);
  llvm::Value* lane0_of(ir::Value value);

  Slots& slots_;
  Values& values_;
  const Edges& edges_;
};

}  // namespace quern::cpu::emit
