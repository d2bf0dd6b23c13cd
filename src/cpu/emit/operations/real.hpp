// SPDX-License-Identifier: Apache-2.0
// Floating-point building blocks: 16-bit formats, flushing, rounding by hand. Operands are scalars or <32 x
// T>.
#pragma once

#include "cpu/emit/operations/operands.hpp"

namespace quern::cpu::emit {

/// f16 and bf16 are computed in float (see narrow_from_float).
inline bool is_narrow(ir::Type type) { return type == ir::Type::f16 || type == ir::Type::bf16; }

/// The bits of a half or bfloat (`from`) -> float, exact. (Integer code if the processor has no conversion:
/// LLVM would call a library.)
llvm::Value* widen_to_float(Operands& o, llvm::Value* value, ir::Type from);
/// float -> the bits of a half or bfloat in rounding mode `rounding`.
llvm::Value* narrow_from_float(Operands& o, llvm::Value* value, ir::Type to, ir::Rounding rounding);
/// `narrow`, with the canonical NaN 0x7fff if `wide` is a NaN: the processor's own conversion to half keeps
/// payloads.
llvm::Value* with_canonical_nan(Operands& o, llvm::Value* narrow, llvm::Value* wide);
/// A float with the canonical NaN 0x7fffffff for any NaN.
llvm::Value* canonical_float(Operands& o, llvm::Value* value);
/// double -> float, inexact results made odd: a further rounding to a format of at most 22 bits is then as if
/// it were the first.
llvm::Value* narrow_to_odd_float(Operands& o, llvm::Value* value);

/// Subnormals become zero of the same sign.
llvm::Value* flush_subnormals(Operands& o, llvm::Value* value);
/// Clamped to [0, 1]; NaN gives +0.
llvm::Value* saturate(Operands& o, llvm::Value* value);

/// Below zero, and -0: +0. NaN stays.
llvm::Value* clamp_negative(Operands& o, llvm::Value* value);

llvm::Value* as_bits(Operands& o, llvm::Value* value);
/// An integer as the floating-point type of `like`.
llvm::Value* from_bits(Operands& o, llvm::Value* value, llvm::Type* like);
llvm::Constant* real(llvm::Type* type, double value);

/// Adjusts `rounded` (an exact value rounded to nearest) to rounding mode `rounding`. `above`, `below`:
/// whether it is greater or less than the exact value.
llvm::Value* redirect(Operands& o, llvm::Value* rounded, ir::Rounding rounding, llvm::Value* above,
                      llvm::Value* below);

/// To an integral value: rn ties to even. Any floating-point type.
llvm::Value* round_to_integral(Operands& o, llvm::Value* value, ir::Rounding rounding);

}  // namespace quern::cpu::emit
