// SPDX-License-Identifier: Apache-2.0
// Whether a kernel may run as quick code before there is good code
// (docs/decisions/0079-quick-code-in-loops.md), by its instructions and those of all functions that it calls.
#pragma once

#include <cstddef>

#include "ptx/module.hpp"

namespace quern::cpu::device {

struct TierFacts {
  /// True if a program could tell quick from good code. Its warps run in another order, which atomic
  /// operations with a result and calls of the host return, and which decides how floating-point sums are
  /// rounded. Frames of functions that are not inlined are larger in quick code, so that a recursion would
  /// end at another depth.
  bool shows_tier = false;
  /// of the kernel and the functions that it calls, each once; those seen so far if `shows_tier`
  std::size_t instruction_count = 0;
};

/// `kernel` is a function of the module.
TierFacts find_tier_facts(const ptx::Module& module, const ptx::Function& kernel);

}  // namespace quern::cpu::device
