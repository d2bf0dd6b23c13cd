// SPDX-License-Identifier: Apache-2.0
// Declarations: `.global .align 4 .b8 name[16] = {...}` and registers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ptx/parse/context.hpp"

namespace quern::ptx {

/// The words before the names of a declaration, as Variable fields.
struct DeclarationHead {
  Variable common;       ///< all but name, extents and initialiser
  bool aligned = false;  ///< `.align` was written
};

/// `.global`, `.shared`, ... as a space; nothing for another word.
std::optional<Space> space_named_by(const Token& token) noexcept;

/// Reads from behind the word of the space to the first name.
std::optional<DeclarationHead> parse_declaration_head(ParseContext& context, Space space);
/// One name with its extents and, if `initialized` allows it, its initialiser.
std::optional<Variable> parse_declarator(ParseContext& context, const DeclarationHead& head,
                                         bool initialized);
/// `.attribute(...)`, the current token being the '(': its inside as text.
std::optional<std::string> parse_attribute_list(ParseContext& context);

/// `(.param .b32 a, .reg .f32 b)`, the current token being the '('. Names are not declared.
std::optional<std::vector<Variable>> parse_parameters(ParseContext& context);

/// Reads an initialiser behind the '=' of a variable, and fills in a missing first extent.
bool parse_initializer(ParseContext& context, Variable& variable);

}  // namespace quern::ptx
