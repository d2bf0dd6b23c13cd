// SPDX-License-Identifier: Apache-2.0
// What bulk copies do at an mbarrier.
#pragma once

#include "cpu/lower/instructions/memory.hpp"

namespace quern::cpu::lower {

enum class Transaction : std::uint8_t { expected, complete };
/// "expect-tx operation", "complete-tx operation": `bytes` (i32) more or fewer that the phase waits for.
void change_transactions(Translator& t, const Address& object, ir::Value bytes, Transaction what);

}  // namespace quern::cpu::lower
