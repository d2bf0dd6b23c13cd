// SPDX-License-Identifier: Apache-2.0
// Arrays known at compile time, and the arithmetic of NumPy's scalars and arrays with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/syntax/ast.hpp"
#include "frontend/values/value.hpp"

namespace quern::frontend {

/// The extents given by a number or a tuple of numbers.
std::optional<std::vector<std::int64_t>> shape_of(const Value& value);
/// True if a field of a record can be an array of this shape.
bool fits_record(const std::vector<std::int64_t>& shape, Type element);

/// An array of elements, each cast to the type; a value of the host program if one does not fit.
Value array_of(std::vector<Value> elements, std::vector<std::int64_t> shape, Type dtype);
/// The number, or the record, as NumPy stores it in that type; unknown if it does not fit.
Value cast(const Value& value, Type type);
/// NumPy's arithmetic with float32 scalars; unknown for other operands.
Value fold_single(const TypeTable& types, Tok op, const Value& a, const Value& b);
/// The elements of `left op right`, where at least one is an array; `expr` is the operation. Unknown if the
/// type of the result is not certain.
Value fold_elements(const TypeTable& types, const Expr& expr, const Value& left, const Value& right);
/// array.reshape(*extents); `extents` is a tuple. Unknown if NumPy refuses it.
Value reshaped(const Value& array, const Value& extents);

/// The arguments of a call at a file's own level.
struct HostCall {
  std::vector<Value> arguments;
  std::vector<std::pair<std::string_view, Value>> named;
  Type dtype = nullptr;
  bool odd_dtype = false;  ///< a dtype is given that kernels do not have
};
/// The array that the NumPy function with this path creates; unknown if it creates none.
Value numpy_array(const TypeTable& types, std::string_view path, const HostCall& call);

}  // namespace quern::frontend
