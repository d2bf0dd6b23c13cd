// SPDX-License-Identifier: Apache-2.0
// Computes the blocks between which the variables of masked code are read, so that their live ranges can be
// limited. Otherwise LLVM would have to assume that each variable is live in the whole kernel. Pure; no LLVM.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpu/cuts/plan.hpp"

namespace quern::cpu::emit {

using cuts::Plan;
using cuts::Version;

/// The masked slot of a value, or the lanes that wait at a block. Code at position `begin - 1` of
/// Analysis::order and later does not read contents from before it. The variable is read up to position
/// `end`.
struct MaskedVariable {
  ir::Value value = ir::kNone;
  ir::BlockId waiting = ir::kNone;
  /// 0: there is no such position; the range begins at every entry into masked code
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

class Spans {
 public:
  Spans() = default;
  explicit Spans(const Plan& plan);

  /// Variables whose range begins at the block at `position`.
  std::span<const MaskedVariable> from(std::uint32_t position) const {
    return between(position + 1, position + 1);
  }
  /// Variables that may be read at or after `position`, and whose range does not begin there.
  std::vector<MaskedVariable> across(std::uint32_t position) const { return passed(0, position); }
  /// Variables whose range begins between the two positions and that may be read at or after `to`.
  std::vector<MaskedVariable> skipped(std::uint32_t from, std::uint32_t to) const {
    return passed(from + 2, to);
  }

 private:
  std::span<const MaskedVariable> between(std::uint32_t first, std::uint32_t last) const;
  std::vector<MaskedVariable> passed(std::uint32_t first_begin, std::uint32_t to) const;

  std::vector<MaskedVariable> variables_;  ///< sorted by `begin`
};

}  // namespace quern::cpu::emit
