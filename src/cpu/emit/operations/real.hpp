// SPDX-License-Identifier: Apache-2.0
// Floating-point building blocks: 16-bit formats, flushing, explicit rounding. Operands are scalars or <32 x
// T>.
#pragma once

#include "cpu/emit/operations/operands.hpp"

namespace quern::cpu::emit {

/// f16 and bf16 are computed in float (see narrow_from_float).
inline bool is_narrow(ir::Type type) { return type == ir::Type::f16 || type == ir::Type::bf16; }

/// Converts the bits of a half or bfloat (`from`) to float, exactly. (Uses integer code if the processor has
/// no conversion: LLVM would call a library.)
llvm::Value* widen_to_float(Operands& o, llvm::Value* value, ir::Type from);
/// Converts float to the bits of a half or bfloat, with rounding mode `rounding`.
llvm::Value* narrow_from_float(Operands& o, llvm::Value* value, ir::Type to, ir::Rounding rounding);
/// Replaces any NaN of a half by the canonical NaN 0x7fff: the processor's conversion to half keeps payloads.
llvm::Value* with_canonical_nan(Operands& o, llvm::Value* narrow);
/// Replaces any NaN of a float by the canonical NaN 0x7fffffff.
llvm::Value* canonical_float(Operands& o, llvm::Value* value);
/// Converts double to float, rounding inexact results to odd. A second rounding, to a format of at most 22
/// bits, then gives the same result as a single rounding.
llvm::Value* narrow_to_odd_float(Operands& o, llvm::Value* value);

/// Replaces subnormals by zero of the same sign.
llvm::Value* flush_subnormals(Operands& o, llvm::Value* value);
/// Clamps to [0, 1]; NaN gives +0.
llvm::Value* saturate(Operands& o, llvm::Value* value);

/// Replaces negative numbers and -0 by +0, but not NaN.
llvm::Value* clamp_negative(Operands& o, llvm::Value* value);

llvm::Value* as_bits(Operands& o, llvm::Value* value);
/// Reinterprets an integer as the floating-point type of `like`.
llvm::Value* from_bits(Operands& o, llvm::Value* value, llvm::Type* like);
llvm::Constant* real(llvm::Type* type, double value);

/// Changes `rounded` (an exact value rounded to nearest) to rounding mode `rounding`. `above`, `below`:
/// whether it is greater or less than the exact value.
llvm::Value* redirect(Operands& o, llvm::Value* rounded, ir::Rounding rounding, llvm::Value* above,
                      llvm::Value* below);

/// Rounds to an integral value, for any floating-point type; rn rounds ties to even.
llvm::Value* round_to_integral(Operands& o, llvm::Value* value, ir::Rounding rounding);

}  // namespace quern::cpu::emit
