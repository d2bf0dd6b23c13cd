// SPDX-License-Identifier: Apache-2.0
// "Initializers" and "Generic Addressing" of initialisers: numbers, symbols, nested braces.
#include <fmt/format.h>

#include <bit>
#include <limits>

#include "ptx/parse/declaration.hpp"
#include "ptx/parse/expression.hpp"

namespace quern::ptx {
namespace {

// An element takes about 64 bytes here. Incomplete rows are padded with zeros, at most this many for each
// element that is written.
constexpr std::uint64_t kMaxPadding = 1u << 16;
constexpr std::uint64_t kPaddingPerElement = 16;

std::uint64_t truncated(std::uint64_t bits, std::uint32_t width) noexcept {
  return width >= 64 ? bits : bits & ((std::uint64_t{1} << width) - 1);
}

class InitializerParser {
 public:
  InitializerParser(ParseContext& context, Variable& variable) : context_(context), variable_(variable) {}

  bool parse();

 private:
  bool list(std::size_t dimension);
  bool element();
  bool number(const Token& at, const Constant& value);
  bool symbol(Initializer& into);
  bool masked(const Token& at, const Constant& mask);
  bool pad(const Token& at, std::uint64_t count);
  std::uint64_t row_length(std::size_t dimension) const noexcept;

  ParseContext& context_;
  Variable& variable_;
  std::uint64_t written_ = 0;
};

// The number of elements in one row of `dimension`: the product of its extent, those after it, and the
// vector's length.
std::uint64_t InitializerParser::row_length(std::size_t dimension) const noexcept {
  std::uint64_t length = variable_.vector;
  for (std::size_t i = dimension; i < variable_.extents.size(); ++i) length *= variable_.extents[i];
  return length;
}

bool InitializerParser::parse() {
  if (variable_.extents.empty() && variable_.vector == 1) return element();
  if (!context_.tokens.current().is('{')) return context_.fail_expected("'{'");
  const Token at = context_.tokens.current();
  if (!list(0)) return false;
  const bool open = !variable_.extents.empty() && variable_.extents[0] == 0;
  const std::uint64_t row = open ? row_length(1) : row_length(0);
  if (open) {
    if (row == 0) return context_.fail(at, "an array of no elements has no initialiser");
    variable_.extents[0] = (variable_.initializer.size() + row - 1) / row;
  } else if (variable_.initializer.size() > row) {
    return context_.fail(at, fmt::format("{} values for {} elements", variable_.initializer.size(), row));
  }
  return true;
}

bool InitializerParser::list(std::size_t dimension) {
  const NestingGuard guard(context_);
  if (!guard.ok()) return false;
  context_.tokens.take();
  if (context_.tokens.accept('}')) return true;
  const std::uint64_t row = row_length(dimension + 1);
  do {
    const Token at = context_.tokens.current();
    if (at.is('}')) break;  // allows a comma before the brace
    if (!at.is('{')) {
      if (!element()) return false;
      continue;
    }
    const std::size_t start = variable_.initializer.size();
    if (dimension >= variable_.extents.size())
      return context_.fail(at, "this initialiser has more braces than the array has dimensions");
    if (!list(dimension + 1)) return false;
    const std::size_t count = variable_.initializer.size() - start;
    if (count > row) return context_.fail(at, fmt::format("{} values for {} elements", count, row));
    if (!context_.tokens.current().is('}') && !pad(at, row - count)) return false;
  } while (context_.tokens.accept(','));
  return context_.expect('}');
}

bool InitializerParser::pad(const Token& at, std::uint64_t count) {
  const std::uint64_t limit = kMaxPadding + kPaddingPerElement * written_;
  if (count > limit || variable_.initializer.size() + count > limit + written_) {
    return context_.fail(at, "this initialiser leaves too many elements open",
                         "write the zeros, or fill the array at run time");
  }
  variable_.initializer.resize(variable_.initializer.size() + count);
  return true;
}

bool InitializerParser::element() {
  ++written_;
  const Token at = context_.tokens.current();
  if (at.kind == TokenKind::identifier && at.text != "WARP_SZ") {
    Initializer value;
    if (!symbol(value)) return false;
    variable_.initializer.push_back(std::move(value));
    return true;
  }
  const std::optional<Constant> value = parse_constant(context_);
  if (!value) return false;
  return context_.tokens.current().is('(') ? masked(at, *value) : number(at, *value);
}

// Parses `symbol`, `symbol+8`, `generic(symbol)+8`.
bool InitializerParser::symbol(Initializer& into) {
  Token name = context_.tokens.take();
  if (name.text == "generic" && context_.tokens.accept('(')) {
    into.generic = true;
    const std::optional<Token> inner = context_.expect_identifier("a symbol");
    if (!inner || !context_.expect(')')) return false;
    name = *inner;
  }
  const std::optional<Entity> entity = context_.scopes.find(name.text);
  const bool usable =
      entity && !entity->is_register &&
      (entity->symbol.kind == SymbolKind::module_variable || entity->symbol.kind == SymbolKind::function);
  if (!usable && name.text != variable_.name) {
    return context_.fail(name, fmt::format("'{}' is no variable or function declared before", name.text), {},
                         kName);
  }
  const bool is_variable = usable && entity->symbol.kind == SymbolKind::module_variable;
  into.symbol = is_variable ? context_.module.variables[entity->symbol.index].name : std::string(name.text);
  const Token& sign = context_.tokens.current();
  if (!sign.is('+') && !sign.is('-')) return true;
  const std::optional<IntegerOperand> addend = parse_integer(context_, "an offset");
  if (addend) into.addend = static_cast<std::int64_t>(addend->bits);
  return addend.has_value();
}

// Parses `0xff00(symbol)`: one byte of the address.
bool InitializerParser::masked(const Token& at, const Constant& mask) {
  const auto* bits = std::get_if<IntegerOperand>(&mask);
  if (bits == nullptr || bits->bits == 0)
    return context_.fail(at, "the mask of an address must be an integer such as 0xff00");
  context_.tokens.take();
  Initializer value;
  value.mask = bits->bits;
  if (context_.tokens.current().kind != TokenKind::identifier) return context_.fail_expected("a symbol");
  if (!symbol(value) || !context_.expect(')')) return false;
  variable_.initializer.push_back(std::move(value));
  return true;
}

bool InitializerParser::number(const Token& at, const Constant& value) {
  const std::uint32_t width = bit_size(variable_.type);
  Initializer made;
  if (const auto* integer = std::get_if<IntegerOperand>(&value)) {
    if (kind(variable_.type) == TypeKind::floating)
      return context_.fail(
          at, fmt::format("a variable of type .{} takes floating-point constants", name(variable_.type)));
    made.bits = truncated(integer->bits, width);
  } else {
    const FloatOperand& number = std::get<FloatOperand>(value);
    if (variable_.type == Type::f64 || (variable_.type == Type::b64 && !number.single)) {
      made.bits = std::bit_cast<std::uint64_t>(as_double(number));
    } else if (variable_.type == Type::f32 || variable_.type == Type::b32) {
      const auto single = static_cast<float>(as_double(number));
      made.bits = number.single ? number.bits : std::bit_cast<std::uint32_t>(single);
    } else {
      return context_.fail(
          at, fmt::format("a variable of type .{} takes integer constants", name(variable_.type)));
    }
  }
  variable_.initializer.push_back(std::move(made));
  return true;
}

}  // namespace

bool parse_initializer(ParseContext& context, Variable& variable) {
  return InitializerParser(context, variable).parse();
}

}  // namespace quern::ptx
