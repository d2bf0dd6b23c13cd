// SPDX-License-Identifier: Apache-2.0
// Conversions to and from formats that have no arithmetic.
#pragma once

#include "cpu/lower/translate/translator.hpp"

namespace quern::cpu::lower {

/// True for .e4m3x2, .e2m1x4 and similar types.
bool is_narrow_vector(ptx::Type type);
/// cvt.rn.satfinite.e4m3x2.f32, cvt.rs.satfinite.e2m1x4.f32 and their families
void floats_to_narrow(Translator& t, const ptx::Instruction& in);
/// cvt.rn.f16x2.e4m3x2 and its family
void narrow_to_halves(Translator& t, const ptx::Instruction& in);
/// cvt.rp.ue8m0x2.f32, cvt.rz.ue8m0x2.bf16x2
void floats_to_powers(Translator& t, const ptx::Instruction& in);
/// cvt.rn.bf16x2.ue8m0x2
void powers_to_halves(Translator& t, const ptx::Instruction& in);
/// cvt.rs.f16x2.f32, cvt.rs.bf16x2.f32
void floats_to_pair_at_random(Translator& t, const ptx::Instruction& in, ptx::Type half);
/// cvt.rna.tf32.f32, cvt.rn.tf32.f32
void float_to_tf32(Translator& t, const ptx::Instruction& in);

/// For .satfinite: replaces an infinity (f16 or bf16) by the largest finite number of the same sign.
ir::Value keep_finite(Translator& t, ir::Value number);

}  // namespace quern::cpu::lower
