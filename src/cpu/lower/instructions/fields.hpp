// SPDX-License-Identifier: Apache-2.0
// Clamping and packing of integers, used by several families of instructions.
#pragma once

#include "cpu/lower/translate/translator.hpp"

namespace quern::cpu::lower {

/// Clamps `value`, a signed integer, to [low, high].
ir::Value clamp_signed(Translator& t, ir::Value value, std::int64_t low, std::int64_t high);
/// Clamps to the range of `bits` bits, signed or unsigned.
ir::Value clamp_to_bits(Translator& t, ir::Value value, std::uint32_t bits, bool is_signed_type);

/// cvt.pack
void convert_and_pack(Translator& t, const ptx::Instruction& in);

}  // namespace quern::cpu::lower
