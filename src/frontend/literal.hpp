// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "frontend/ast.hpp"
#include "frontend/value.hpp"

namespace quern::frontend {

/// Numbers and arithmetic on them alone: Python's compiler works it out.
bool is_literal(const Expr& expr);
/// What it makes of that; unknown where it leaves that to the running program.
Value literal_value(const Expr& expr);
/// Of a number that Python has: int64, uint64 beyond, float64, complex128. Null for what has more bits.
Type type_of_number(const TypeTable& types, const Value& value);

}  // namespace quern::frontend
