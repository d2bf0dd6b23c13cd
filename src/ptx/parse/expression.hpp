// SPDX-License-Identifier: Apache-2.0
// Parses and evaluates constant expressions ("Constant Expressions").
#pragma once

#include <optional>
#include <variant>

#include "ptx/parse/context.hpp"

namespace quern::ptx {

using Constant = std::variant<IntegerOperand, FloatOperand>;

/// Returns the value of the constant expression at the current token. After reporting an error, returns
/// nothing.
std::optional<Constant> parse_constant(ParseContext& context);
/// The same for an integer; `what` names it in the error message.
std::optional<IntegerOperand> parse_integer(ParseContext& context, std::string_view what);
/// True if `token` can begin a constant expression.
bool starts_constant(const Token& token) noexcept;
/// Returns the value as a double.
double as_double(const FloatOperand& value) noexcept;

}  // namespace quern::ptx
