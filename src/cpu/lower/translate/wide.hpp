// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cpu/lower/translate/translator.hpp"

namespace quern::cpu::lower {

/// True for .b128. Memory accesses move it as two words, at a multiple of 16 bytes.
bool is_wide(ptx::Type type) noexcept;
/// Lowers mov.b128, also from and to the parts of a value.
void move_wide(Translator& t, const ptx::Instruction& instruction);

}  // namespace quern::cpu::lower
