// SPDX-License-Identifier: Apache-2.0
// The effect of bulk copies on an mbarrier.
#pragma once

#include "cpu/lower/instructions/memory.hpp"

namespace quern::cpu::lower {

enum class Transaction : std::uint8_t { expected, complete };
/// "expect-tx operation", "complete-tx operation": increases or decreases the bytes that the phase waits for
/// by `bytes` (i32).
void change_transactions(Translator& t, const Address& object, ir::Value bytes, Transaction what);

}  // namespace quern::cpu::lower
