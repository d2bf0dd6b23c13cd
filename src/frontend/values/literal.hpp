// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "frontend/syntax/ast.hpp"
#include "frontend/values/value.hpp"

namespace quern::frontend {

/// True for number literals and arithmetic on them, which Python's compiler computes.
bool is_literal(const Expr& expr);
/// The value that Python's compiler computes; unknown if Python computes it at run time.
Value literal_value(const Expr& expr);
/// The part of an integer literal that the device would compute and that does not fit 64 bits; null if there
/// is none.
const Expr* part_beyond_64_bits(const Expr& literal);
/// The type of a Python number: int64, uint64 beyond its range, float64, complex128. Null if it needs
/// more bits.
Type type_of_number(const TypeTable& types, const Value& value);

}  // namespace quern::frontend
