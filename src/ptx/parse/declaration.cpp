// SPDX-License-Identifier: Apache-2.0
#include "ptx/parse/declaration.hpp"

#include <fmt/format.h>

#include <bit>

#include "ptx/parse/expression.hpp"

namespace quern::ptx {
namespace {

// More bytes than any memory has, but too few to overflow in arithmetic.
constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 48;
// Source: "Vectors".
constexpr std::uint32_t kMaxVectorBytes = 16;

std::optional<std::uint32_t> parse_alignment(ParseContext& context) {
  const Token at = context.tokens.current();
  const std::optional<std::uint32_t> value = context.expect_u32("an alignment");
  if (!value) return std::nullopt;
  if (!std::has_single_bit(*value)) {
    context.fail(at, "an alignment must be a power of two");
    return std::nullopt;
  }
  return value;
}

// Parses `.ptr .global .align 16` after a kernel parameter; both parts are optional.
bool parse_pointer_attributes(ParseContext& context, Variable& variable) {
  variable.pointer_space = Space::none;
  if (const std::optional<Space> space = space_named_by(context.tokens.current())) {
    context.tokens.take();
    variable.pointer_space = *space;
  }
  if (!context.tokens.accept_word(".align")) return true;
  const std::optional<std::uint32_t> align = parse_alignment(context);
  variable.pointer_align = align.value_or(0);
  return align.has_value();
}

bool parse_head_word(ParseContext& context, DeclarationHead& head) {
  Variable& common = head.common;
  const Token word = context.tokens.take();
  if (word.is_word(".align")) {
    const std::optional<std::uint32_t> align = parse_alignment(context);
    common.align = align.value_or(0);
    head.aligned = true;
    return align.has_value();
  }
  if (word.is_word(".attribute")) {
    std::optional<std::string> attributes = parse_attribute_list(context);
    if (!attributes) return false;
    common.attributes = std::move(*attributes);
    return true;
  }
  if (word.is_word(".ptr")) return parse_pointer_attributes(context, common);
  if (word.is_word(".v2") || word.is_word(".v4")) {
    common.vector = word.text[2] == '2' ? 2 : 4;
    return true;
  }
  const std::optional<Type> type = type_named(word.text.substr(1));
  if (!type) return context.fail(word, fmt::format("{} does not belong in a declaration", describe(word)));
  if (common.type != Type::none) return context.fail(word, "a declaration has one type");
  common.type = *type;
  return true;
}

bool parse_extents(ParseContext& context, Variable& variable) {
  while (context.tokens.accept('[')) {
    const Token at = context.tokens.current();
    std::uint64_t extent = 0;
    if (!at.is(']')) {
      const std::optional<IntegerOperand> value = parse_integer(context, "an array's extent");
      if (!value) return false;
      extent = value->bits;
      if (extent > kMaxVariableBytes) return context.fail(at, "this array is too large");
    } else if (!variable.extents.empty()) {
      return context.fail(at, "only the first extent of an array may be left open");
    }
    variable.extents.push_back(extent);
    if (variable.extents.size() > 16) return context.fail(at, "an array has at most 16 dimensions");
    if (!context.expect(']')) return false;
  }
  return true;
}

bool check_size(ParseContext& context, const Token& name, const Variable& variable) {
  std::uint64_t bytes = std::uint64_t{byte_size(variable.type)} * variable.vector;
  for (const std::uint64_t extent : variable.extents) {
    if (extent != 0 && bytes > kMaxVariableBytes / extent)
      return context.fail(name, "this array is too large");
    bytes *= extent;
  }
  return true;
}

}  // namespace

std::optional<Space> space_named_by(const Token& token) noexcept {
  if (token.kind != TokenKind::word) return std::nullopt;
  for (const Space space :
       {Space::reg, Space::global, Space::shared, Space::local, Space::const_, Space::param, Space::sreg}) {
    if (token.text.substr(1) == name(space)) return space;
  }
  return std::nullopt;
}

std::optional<std::string> parse_attribute_list(ParseContext& context) {
  const Token open = context.tokens.current();
  if (!open.is('(')) {
    context.fail_expected("'('");
    return std::nullopt;
  }
  std::string text;
  context.tokens.take();
  for (std::uint32_t depth = 1;; context.tokens.take()) {
    const Token& token = context.tokens.current();
    if (token.is('(')) ++depth;
    if (token.is(')') && --depth == 0) break;
    if (token.kind == TokenKind::end || token.is(';') || token.is('{') || token.is('}')) {
      context.fail_expected("')'");
      return std::nullopt;
    }
    if (!text.empty() && text.back() == ',') text += ' ';
    text += token.text;
  }
  context.tokens.take();
  return text;
}

std::optional<DeclarationHead> parse_declaration_head(ParseContext& context, Space space) {
  DeclarationHead head;
  head.common.space = space;
  while (context.tokens.current().kind == TokenKind::word) {
    if (!parse_head_word(context, head)) return std::nullopt;
  }
  if (head.common.type == Type::none) {
    context.fail_expected("a type such as '.b32'");
    return std::nullopt;
  }
  if (space != Space::reg && head.common.type == Type::pred) {
    context.fail(context.tokens.current(), "a predicate can only be a register");
    return std::nullopt;
  }
  const std::uint32_t vector_bytes = byte_size(head.common.type) * head.common.vector;
  if (head.common.vector > 1 && (head.common.type == Type::pred || vector_bytes > kMaxVectorBytes)) {
    context.fail(context.tokens.current(),
                 head.common.type == Type::pred
                     ? "predicates have no vectors"
                     : fmt::format("a vector of {} bytes is too large; the limit is {}", vector_bytes,
                                   kMaxVectorBytes));
    return std::nullopt;
  }
  if (!head.aligned) head.common.align = std::max(byte_size(head.common.type) * head.common.vector, 1u);
  return head;
}

std::optional<Variable> parse_declarator(ParseContext& context, const DeclarationHead& head,
                                         bool initialized) {
  const std::optional<Token> name = context.expect_identifier("a name");
  if (!name) return std::nullopt;
  Variable variable = head.common;
  variable.name = name->text;
  variable.position = name->position;
  if (!parse_extents(context, variable) || !check_size(context, *name, variable)) return std::nullopt;
  if (context.tokens.current().is('=')) {
    if (!initialized) {
      context.fail(context.tokens.current(), fmt::format("a variable of the .{} space has no initialiser",
                                                         ptx::name(head.common.space)));
      return std::nullopt;
    }
    context.tokens.take();
    if (!parse_initializer(context, variable)) return std::nullopt;
  }
  return variable;
}

std::optional<std::vector<Variable>> parse_parameters(ParseContext& context) {
  std::vector<Variable> parameters;
  if (!context.expect('(')) return std::nullopt;
  if (context.tokens.accept(')')) return parameters;
  do {
    const std::optional<Space> space = space_named_by(context.tokens.current());
    if (space != Space::param && space != Space::reg) {
      context.fail_expected("'.param' or '.reg'");
      return std::nullopt;
    }
    context.tokens.take();
    const std::optional<DeclarationHead> head = parse_declaration_head(context, *space);
    if (!head) return std::nullopt;
    // A prototype may omit the name.
    const Token& next = context.tokens.current();
    if (next.is(',') || next.is(')')) {
      parameters.push_back(head->common);
      parameters.back().name = "_";
      continue;
    }
    std::optional<Variable> parameter = parse_declarator(context, *head, false);
    if (!parameter) return std::nullopt;
    parameters.push_back(std::move(*parameter));
  } while (context.tokens.accept(','));
  if (!context.expect(')')) return std::nullopt;
  return parameters;
}

}  // namespace quern::ptx
