// SPDX-License-Identifier: Apache-2.0
// Recognises divisions of integers.
#pragma once

#include "cpu/ir/ir.hpp"

namespace quern::cpu::ir {

constexpr bool is_quotient(Op op) noexcept { return op == Op::sdiv || op == Op::udiv; }
constexpr bool is_remainder(Op op) noexcept { return op == Op::srem || op == Op::urem; }
constexpr bool is_division(Op op) noexcept { return is_quotient(op) || is_remainder(op); }

/// The division of `a - a / b * b`, or kNone if `inst` is not that.
Value divided_for(const Function& function, const Inst& inst);

}  // namespace quern::cpu::ir
