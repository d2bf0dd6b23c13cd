// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cpu/emit/operations/context.hpp"

namespace quern::cpu::emit {

/// Emits, before an instruction, the application of pending updates that are ordered before it
/// (ir::Attributes::settles).
void settle(Context& context, ir::Value value);

}  // namespace quern::cpu::emit
