// SPDX-License-Identifier: Apache-2.0
#include "ptx/parse/expression.hpp"

#include <array>
#include <bit>
#include <limits>

namespace quern::ptx {
namespace {

enum class Operator : std::uint8_t {
  lor,
  land,
  or_,
  xor_,
  and_,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  shl,
  shr,
  add,
  sub,
  mul,
  div,
  rem
};

struct OperatorRow {
  std::string_view text;
  Operator op;
  int precedence;
};
constexpr std::array<OperatorRow, 18> kOperators = {{
    {"||", Operator::lor, 1},
    {"&&", Operator::land, 2},
    {"|", Operator::or_, 3},
    {"^", Operator::xor_, 4},
    {"&", Operator::and_, 5},
    {"==", Operator::eq, 6},
    {"!=", Operator::ne, 6},
    {"<", Operator::lt, 7},
    {"<=", Operator::le, 7},
    {">", Operator::gt, 7},
    {">=", Operator::ge, 7},
    {"<<", Operator::shl, 8},
    {">>", Operator::shr, 8},
    {"+", Operator::add, 9},
    {"-", Operator::sub, 9},
    {"*", Operator::mul, 10},
    {"/", Operator::div, 10},
    {"%", Operator::rem, 10},
}};

IntegerOperand truth(bool value) noexcept { return {value ? 1u : 0u, false}; }

FloatOperand make_double(double value) noexcept { return {std::bit_cast<std::uint64_t>(value), false}; }

class Evaluator {
 public:
  explicit Evaluator(ParseContext& context) : context_(context) {}

  std::optional<Constant> conditional();

 private:
  std::optional<Constant> binary(int lowest);
  std::optional<Constant> unary();
  std::optional<Constant> primary();
  std::optional<Constant> parenthesis();
  std::optional<Constant> combine(const Token& at, Operator op, const Constant& a, const Constant& b);
  std::optional<Constant> combine(const Token& at, Operator op, IntegerOperand a, IntegerOperand b);
  std::optional<Constant> combine(const Token& at, Operator op, double a, double b);
  std::optional<Constant> apply_unary(const Token& at, const Constant& value);

  ParseContext& context_;
};

std::optional<Constant> Evaluator::conditional() {
  const NestingGuard guard(context_);
  if (!guard.ok()) return std::nullopt;
  std::optional<Constant> condition = binary(1);
  if (!condition || !context_.tokens.current().is('?')) return condition;
  const Token at = context_.tokens.take();
  const std::optional<Constant> yes = conditional();
  if (!yes || !context_.expect(':')) return std::nullopt;
  const std::optional<Constant> no = conditional();
  if (!no) return std::nullopt;
  const auto* chosen = std::get_if<IntegerOperand>(&*condition);
  if (chosen == nullptr) {
    context_.fail(at, "the condition of '?:' must be an integer");
    return std::nullopt;
  }
  return chosen->bits != 0 ? yes : no;
}

std::optional<Constant> Evaluator::binary(int lowest) {
  std::optional<Constant> left = unary();
  while (left) {
    const Token& token = context_.tokens.current();
    if (token.kind != TokenKind::symbol) break;
    const OperatorRow* row = nullptr;
    for (const OperatorRow& candidate : kOperators) {
      if (candidate.text == token.text) row = &candidate;
    }
    if (row == nullptr || row->precedence < lowest) break;
    const Token at = context_.tokens.take();
    const std::optional<Constant> right = binary(row->precedence + 1);
    if (!right) return std::nullopt;
    left = combine(at, row->op, *left, *right);
  }
  return left;
}

std::optional<Constant> Evaluator::unary() {
  const Token at = context_.tokens.current();
  if (!at.is('-') && !at.is('+') && !at.is('~') && !at.is('!')) return primary();
  const NestingGuard guard(context_);
  if (!guard.ok()) return std::nullopt;
  context_.tokens.take();
  const std::optional<Constant> value = unary();
  return value ? apply_unary(at, *value) : std::nullopt;
}

std::optional<Constant> Evaluator::apply_unary(const Token& at, const Constant& value) {
  if (const auto* integer = std::get_if<IntegerOperand>(&value)) {
    if (at.is('-')) return IntegerOperand{0 - integer->bits, integer->is_unsigned};
    if (at.is('~')) return IntegerOperand{~integer->bits, integer->is_unsigned};
    if (at.is('!')) return truth(integer->bits == 0);
    return value;
  }
  const double number = as_double(std::get<FloatOperand>(value));
  if (at.is('-')) return make_double(-number);
  if (at.is('+')) return value;
  context_.fail(at, "this operator needs an integer");
  return std::nullopt;
}

std::optional<Constant> Evaluator::primary() {
  const Token token = context_.tokens.current();
  if (token.is('(')) return parenthesis();
  if (token.kind == TokenKind::integer) {
    context_.tokens.take();
    return *integer_value(token.text);
  }
  if (token.kind == TokenKind::floating) {
    context_.tokens.take();
    return *floating_value(token.text);
  }
  if (token.kind == TokenKind::identifier && token.text == "WARP_SZ") {
    context_.tokens.take();
    return IntegerOperand{32, false};
  }
  context_.fail_expected("a constant");
  return std::nullopt;
}

// Parses `(expression)`, or a cast `(.s64) value`.
std::optional<Constant> Evaluator::parenthesis() {
  context_.tokens.take();
  const bool to_unsigned = context_.tokens.current().is_word(".u64");
  if (to_unsigned || context_.tokens.current().is_word(".s64")) {
    const Token at = context_.tokens.take();
    const NestingGuard guard(context_);
    if (!guard.ok() || !context_.expect(')')) return std::nullopt;
    const std::optional<Constant> value = unary();
    if (!value) return std::nullopt;
    if (const auto* integer = std::get_if<IntegerOperand>(&*value))
      return IntegerOperand{integer->bits, to_unsigned};
    context_.fail(at, "only integers can be cast");
    return std::nullopt;
  }
  std::optional<Constant> value = conditional();
  if (!value || !context_.expect(')')) return std::nullopt;
  return value;
}

std::optional<Constant> Evaluator::combine(const Token& at, Operator op, const Constant& a,
                                           const Constant& b) {
  const auto* left = std::get_if<IntegerOperand>(&a);
  const auto* right = std::get_if<IntegerOperand>(&b);
  if (left != nullptr && right != nullptr) return combine(at, op, *left, *right);
  if (left != nullptr || right != nullptr) {
    context_.fail(at, "integer and floating-point constants cannot be mixed in one expression");
    return std::nullopt;
  }
  return combine(at, op, as_double(std::get<FloatOperand>(a)), as_double(std::get<FloatOperand>(b)));
}

std::optional<Constant> Evaluator::combine(const Token& at, Operator op, double a, double b) {
  switch (op) {
    case Operator::add:
      return make_double(a + b);
    case Operator::sub:
      return make_double(a - b);
    case Operator::mul:
      return make_double(a * b);
    case Operator::div:
      return make_double(a / b);
    case Operator::eq:
      return truth(a == b);
    case Operator::ne:
      return truth(a != b);
    case Operator::lt:
      return truth(a < b);
    case Operator::le:
      return truth(a <= b);
    case Operator::gt:
      return truth(a > b);
    case Operator::ge:
      return truth(a >= b);
    default:
      break;
  }
  context_.fail(at, "this operator needs integers");
  return std::nullopt;
}

// Source: "Integer Constant Expression Evaluation". Operations have 64 bits and are unsigned if either
// operand is. The type of a shift is that of its left operand.
std::optional<Constant> Evaluator::combine(const Token& at, Operator op, IntegerOperand a, IntegerOperand b) {
  constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
  const bool is_unsigned = a.is_unsigned || b.is_unsigned;
  const auto x = static_cast<std::int64_t>(a.bits);
  const auto y = static_cast<std::int64_t>(b.bits);
  const bool less = is_unsigned ? a.bits < b.bits : x < y;
  if ((op == Operator::div || op == Operator::rem) && b.bits == 0) {
    context_.fail(at, "division by zero in a constant expression");
    return std::nullopt;
  }
  const bool overflows = !is_unsigned && x == kLowest && y == -1;
  const auto result = [&](std::uint64_t bits) { return Constant(IntegerOperand{bits, is_unsigned}); };
  switch (op) {
    case Operator::lor:
      return truth(a.bits != 0 || b.bits != 0);
    case Operator::land:
      return truth(a.bits != 0 && b.bits != 0);
    case Operator::or_:
      return result(a.bits | b.bits);
    case Operator::xor_:
      return result(a.bits ^ b.bits);
    case Operator::and_:
      return result(a.bits & b.bits);
    case Operator::eq:
      return truth(a.bits == b.bits);
    case Operator::ne:
      return truth(a.bits != b.bits);
    case Operator::lt:
      return truth(less);
    case Operator::le:
      return truth(less || a.bits == b.bits);
    case Operator::gt:
      return truth(!less && a.bits != b.bits);
    case Operator::ge:
      return truth(!less);
    case Operator::shl:
      return IntegerOperand{b.bits > 63 ? 0 : a.bits << b.bits, a.is_unsigned};
    case Operator::shr:
      if (a.is_unsigned) return IntegerOperand{b.bits > 63 ? 0 : a.bits >> b.bits, true};
      return IntegerOperand{static_cast<std::uint64_t>(x >> (b.bits > 63 ? 63 : b.bits)), false};
    case Operator::add:
      return result(a.bits + b.bits);
    case Operator::sub:
      return result(a.bits - b.bits);
    case Operator::mul:
      return result(a.bits * b.bits);
    case Operator::div:
      if (overflows) return result(a.bits);
      return result(is_unsigned ? a.bits / b.bits : static_cast<std::uint64_t>(x / y));
    case Operator::rem:
      if (overflows) return result(0);
      return result(is_unsigned ? a.bits % b.bits : static_cast<std::uint64_t>(x % y));
  }
  return std::nullopt;
}

}  // namespace

double as_double(const FloatOperand& value) noexcept {
  if (value.single) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(value.bits)));
  return std::bit_cast<double>(value.bits);
}

bool starts_constant(const Token& token) noexcept {
  if (token.kind == TokenKind::integer || token.kind == TokenKind::floating) return true;
  if (token.kind == TokenKind::identifier) return token.text == "WARP_SZ";
  return token.is('-') || token.is('+') || token.is('~') || token.is('!') || token.is('(');
}

std::optional<Constant> parse_constant(ParseContext& context) { return Evaluator(context).conditional(); }

std::optional<IntegerOperand> parse_integer(ParseContext& context, std::string_view what) {
  const Token at = context.tokens.current();
  const std::optional<Constant> value = parse_constant(context);
  if (!value) return std::nullopt;
  if (const auto* integer = std::get_if<IntegerOperand>(&*value)) return *integer;
  context.fail(at, std::string(what) + " must be an integer");
  return std::nullopt;
}

}  // namespace quern::ptx
