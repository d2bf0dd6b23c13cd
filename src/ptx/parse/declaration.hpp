// SPDX-License-Identifier: Apache-2.0
// Declarations: `.global .align 4 .b8 name[16] = {...}` and registers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ptx/parse/context.hpp"

namespace quern::ptx {

/// The words of a declaration before its names, as Variable fields.
struct DeclarationHead {
  Variable common;       ///< the fields that the declared names share: all but name, extents and initialiser.
  bool aligned = false;  ///< the text has `.align`
};

/// Returns the space that `.global`, `.shared`, ... names, or nothing for another word.
std::optional<Space> space_named_by(const Token& token) noexcept;

/// Reads from the token after the space's word to the first name.
std::optional<DeclarationHead> parse_declaration_head(ParseContext& context, Space space);
/// Reads one name with its extents and, if `initialized` allows it, its initialiser.
std::optional<Variable> parse_declarator(ParseContext& context, const DeclarationHead& head,
                                         bool initialized);
/// Reads `.attribute(...)`; the current token is the '('. Returns the text inside.
std::optional<std::string> parse_attribute_list(ParseContext& context);

/// Reads `(.param .b32 a, .reg .f32 b)`; the current token is the '('. Does not declare the names.
std::optional<std::vector<Variable>> parse_parameters(ParseContext& context);

/// Reads an initialiser after the '=' of a variable, and sets a missing first extent.
bool parse_initializer(ParseContext& context, Variable& variable);

}  // namespace quern::ptx
