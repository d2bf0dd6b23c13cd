// SPDX-License-Identifier: Apache-2.0
// Ends the live ranges of masked code's variables (slots and waiting lanes) where their contents are not
// needed any more, by storing empty values (spans.hpp).
#pragma once

#include "cpu/emit/warp/slots.hpp"
#include "cpu/emit/warp/spans.hpp"

namespace quern::cpu::emit {

class MaskedVariables : private BodyPart {
 public:
  MaskedVariables(BodyState& body, Slots& slots) : BodyPart(body), slots_(slots) {}

  /// Must be called before any other member function, if the body has masked code that is not dispatched.
  void find_spans() { spans_ = Spans(plan_); }
  /// Called at the start of the body.
  void clear_all();
  /// Called at the start of `block`: clears the variables whose live range begins there. Variables that the
  /// block itself defines are cleared only if the block is skipped.
  void clear_begun(ir::BlockId block, bool runs);
  /// Called when control goes from one position of Analysis::order to a later one.
  void clear_skipped(std::uint32_t from, std::uint32_t to);
  /// Called before masked code is entered at `position`, and before live values are stored in their slots:
  /// marks that no lanes wait, and clears the slots that may be read. They contain values of the last masked
  /// run, which LLVM would otherwise keep alive through the full version.
  void enter(std::uint32_t position);

 private:
  void clear(const MaskedVariable& variable);

  Slots& slots_;
  Spans spans_;
};

}  // namespace quern::cpu::emit
