// SPDX-License-Identifier: Apache-2.0
// Shared by the families that work on floating-point numbers.
#pragma once

#include "cpu/lower/translate/translator.hpp"

namespace quern::cpu::lower {

/// Returns the attributes for .rnd, .ftz, .sat, .NaN and .relu of the instruction.
ir::Attributes float_attributes(const ptx::Instruction& instruction);

/// Returns the low or high 16 bits of a 32-bit word as `type`. word_of_halves() is the inverse.
ir::Value half_of_word(Translator& t, ir::Value word, ir::Type type, bool high);
ir::Value word_of_halves(Translator& t, ir::Value low, ir::Value high);

}  // namespace quern::cpu::lower
