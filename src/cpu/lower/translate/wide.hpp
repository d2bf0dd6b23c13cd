// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cpu/lower/translate/translator.hpp"

namespace quern::cpu::lower {

/// .b128: memory accesses move it as two words, at a multiple of 16 bytes.
bool is_wide(ptx::Type type) noexcept;
/// mov.b128, also from and into the parts of a value.
void move_wide(Translator& t, const ptx::Instruction& instruction);

}  // namespace quern::cpu::lower
