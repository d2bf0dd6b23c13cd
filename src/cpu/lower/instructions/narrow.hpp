// SPDX-License-Identifier: Apache-2.0
// Conversions to and from formats that nothing computes in.
#pragma once

#include "cpu/lower/translate/translator.hpp"

namespace quern::cpu::lower {

/// .e4m3x2 or .e5m2x2
bool is_eight_bit_pair(ptx::Type type);
/// cvt.rn.satfinite.e4m3x2.f32 and its family
void floats_to_eight_bits(Translator& t, const ptx::Instruction& in);
/// cvt.rn.f16x2.e4m3x2, cvt.rn.f16x2.e5m2x2
void eight_bits_to_halves(Translator& t, const ptx::Instruction& in);
/// cvt.rna.tf32.f32
void float_to_tf32(Translator& t, const ptx::Instruction& in);

/// .satfinite: an infinity (f16 or bf16) becomes the greatest finite number of its sign.
ir::Value keep_finite(Translator& t, ir::Value number);

}  // namespace quern::cpu::lower
