// SPDX-License-Identifier: Apache-2.0
// Clamping and packing of integers, for the families that need them.
#pragma once

#include "cpu/lower/translate/translator.hpp"

namespace quern::cpu::lower {

/// `value`, a signed integer, limited to [low, high].
ir::Value clamp_signed(Translator& t, ir::Value value, std::int64_t low, std::int64_t high);
/// Clamps to the range of `bits` bits, signed or unsigned.
ir::Value clamp_to_bits(Translator& t, ir::Value value, std::uint32_t bits, bool is_signed_type);

/// cvt.pack
void convert_and_pack(Translator& t, const ptx::Instruction& in);

}  // namespace quern::cpu::lower
