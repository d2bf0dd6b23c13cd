// SPDX-License-Identifier: Apache-2.0
// Arithmetic with a rounding mode other than to nearest: embedded rounding on AVX-512; on other processors a
// helper that switches MXCSR.
#pragma once

#include "cpu/emit/helpers/helpers.hpp"
#include "cpu/emit/operations/operands.hpp"

namespace quern::cpu::emit {

/// Emits `op` on floats or doubles, for rounding modes other than rn.
llvm::Value* rounded_arithmetic(Operands& o, RoundedOp op, llvm::ArrayRef<llvm::Value*> args,
                                ir::Rounding rounding);

/// True if rounded_arithmetic() emits instructions of their own rounding, which cost no more than others.
bool has_embedded_rounding(const Operands& o);

}  // namespace quern::cpu::emit
