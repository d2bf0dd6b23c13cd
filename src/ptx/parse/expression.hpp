// SPDX-License-Identifier: Apache-2.0
// "Constant Expressions": evaluated while they are read.
#pragma once

#include <optional>
#include <variant>

#include "ptx/parse/context.hpp"

namespace quern::ptx {

using Constant = std::variant<IntegerOperand, FloatOperand>;

/// The value of the constant expression at the current token; nothing after reporting an error.
std::optional<Constant> parse_constant(ParseContext& context);
/// The same as parse_constant for an integer; `what` names it in the message.
std::optional<IntegerOperand> parse_integer(ParseContext& context, std::string_view what);
/// True if `token` can begin a constant expression.
bool starts_constant(const Token& token) noexcept;
/// The value as a double.
double as_double(const FloatOperand& value) noexcept;

}  // namespace quern::ptx
