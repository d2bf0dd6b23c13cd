// SPDX-License-Identifier: Apache-2.0
// The source location of an instruction, for messages.
#pragma once

#include <string>

#include "cpu/ir/ir.hpp"
#include "quern/diagnostic.hpp"

namespace quern::cpu::analysis {

/// The author's location, as far as it is known.
Span span_of(const ir::Function& function, ir::Value value);
/// "line 12" (the author's), else "PTX line 80", else "an unknown line".
std::string line_of(const ir::Function& function, ir::Value value);
/// A value of `block` that has a location: the terminator if possible, otherwise the nearest one before it;
/// kNone if there is none.
ir::Value located_value(const ir::Function& function, ir::BlockId block);
/// Creates an error "ptx-unsupported" at `value`. The message includes the PTX line if it is known.
Diagnostic unsupported(const ir::Function& function, ir::Value value, std::string message, std::string hint);

}  // namespace quern::cpu::analysis
