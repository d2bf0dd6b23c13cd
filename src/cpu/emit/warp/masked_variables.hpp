// SPDX-License-Identifier: Apache-2.0
// Ends the live ranges of masked code's variables (slots and waiting lanes) where their contents no longer
// count, by stores of nothing (spans.hpp).
#pragma once

#include "cpu/emit/warp/slots.hpp"
#include "cpu/emit/warp/spans.hpp"

namespace quern::cpu::emit {

class MaskedVariables : private BodyPart {
 public:
  MaskedVariables(BodyState& body, Slots& slots) : BodyPart(body), slots_(slots) {}

  /// Before any other call, if the body has masked code that is not dispatched.
  void find_spans() { spans_ = Spans(plan_); }
  /// At the start of the body.
  void clear_all();
  /// At the start of `block`: clears the variables whose live range begins there. Those that the block itself
  /// defines are cleared only if the block is skipped.
  void clear_begun(ir::BlockId block, bool runs);
  /// When control goes from one position of Analysis::order to a later one.
  void clear_skipped(std::uint32_t from, std::uint32_t to);
  /// Before masked code is entered at `position`, and before live values are stored in their slots: marks
  /// that no lanes wait, and clears the slots that may be read. They contain values of the last masked run,
  /// which LLVM would otherwise keep alive through the full version.
  void enter(std::uint32_t position);

 private:
  void clear(const MaskedVariable& variable);

  Slots& slots_;
  Spans spans_;
};

}  // namespace quern::cpu::emit
