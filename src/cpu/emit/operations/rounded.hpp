// SPDX-License-Identifier: Apache-2.0
// Arithmetic in a rounding mode other than to nearest: embedded rounding on AVX-512, a helper that switches
// MXCSR elsewhere.
#pragma once

#include "cpu/emit/helpers/helpers.hpp"
#include "cpu/emit/operations/operands.hpp"

namespace quern::cpu::emit {

/// `op` on floats or doubles; rn is not for here.
llvm::Value* rounded_arithmetic(Operands& o, RoundedOp op, llvm::ArrayRef<llvm::Value*> args,
                                ir::Rounding rounding);

}  // namespace quern::cpu::emit
