// SPDX-License-Identifier: Apache-2.0
// Marks in the code between which blocks the variables of masked code are read, so that LLVM keeps none of
// them alive farther. Otherwise LLVM would have to assume that each lives through the whole kernel. Pure; no
// LLVM.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpu/cuts/plan.hpp"

namespace quern::cpu::emit {

using cuts::Plan;
using cuts::Version;

/// The masked slot of a value, or the lanes that wait at a block. Code at or behind position `begin - 1` of
/// Analysis::order does not read its earlier contents; it is read up to position `end`.
struct MaskedVariable {
  ir::Value value = ir::kNone;
  ir::BlockId waiting = ir::kNone;
  std::uint32_t begin = 0;  ///< 0: no such block; from every entry into masked code
  std::uint32_t end = 0;
};

class Spans {
 public:
  Spans() = default;
  explicit Spans(const Plan& plan);

  /// Those that begin at the block at `position`.
  std::span<const MaskedVariable> from(std::uint32_t position) const {
    return between(position + 1, position + 1);
  }
  /// Those that may be read at `position` or behind it, and do not begin there.
  std::vector<MaskedVariable> across(std::uint32_t position) const { return passed(0, position); }
  /// Those that begin between the two positions and may be read at `to` or behind it.
  std::vector<MaskedVariable> skipped(std::uint32_t from, std::uint32_t to) const {
    return passed(from + 2, to);
  }

 private:
  std::span<const MaskedVariable> between(std::uint32_t first, std::uint32_t last) const;
  std::vector<MaskedVariable> passed(std::uint32_t first_begin, std::uint32_t to) const;

  std::vector<MaskedVariable> variables_;  ///< by `begin`
};

}  // namespace quern::cpu::emit
