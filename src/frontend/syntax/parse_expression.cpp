// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "frontend/syntax/expression_parser.hpp"

namespace quern::frontend {
namespace {

struct Level {
  int level;
  Tok op;
};
// Left-associative binary operators, the lowest precedence first.
constexpr Level kLevels[] = {
    {0, Tok::bit_or},      {1, Tok::bit_xor},      {2, Tok::bit_and}, {3, Tok::left_shift},
    {3, Tok::right_shift}, {4, Tok::plus},         {4, Tok::minus},   {5, Tok::times},
    {5, Tok::divide},      {5, Tok::floor_divide}, {5, Tok::mod},     {5, Tok::at},
};
constexpr int kTightest = 5;

bool is_of_level(Tok op, int level) {
  return std::any_of(std::begin(kLevels), std::end(kLevels),
                     [&](const Level& row) { return row.level == level && row.op == op; });
}

bool is_comparison(Tok kind) {
  constexpr Tok kAll[] = {Tok::less,  Tok::greater,   Tok::less_equal, Tok::greater_equal,
                          Tok::equal, Tok::not_equal, Tok::k_in,       Tok::k_is};
  return std::find(std::begin(kAll), std::end(kAll), kind) != std::end(kAll);
}

// True if this token can begin an expression.
bool begins_expression(Tok kind) {
  constexpr Tok kAll[] = {
      Tok::name,        Tok::integer,    Tok::real,   Tok::imaginary, Tok::string,    Tok::format_string,
      Tok::bytes,       Tok::k_none,     Tok::k_true, Tok::k_false,   Tok::ellipsis,  Tok::open_round,
      Tok::open_square, Tok::open_curly, Tok::plus,   Tok::minus,     Tok::invert,    Tok::k_not,
      Tok::k_lambda,    Tok::k_await,    Tok::times,  Tok::k_yield,   Tok::unreadable};
  return std::find(std::begin(kAll), std::end(kAll), kind) != std::end(kAll);
}

struct Escape {
  char letter;
  char meaning;
};
constexpr Escape kEscapes[] = {{'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'\\', '\\'}, {'\'', '\''}, {'"', '"'},
                               {'0', '\0'}, {'a', '\a'}, {'b', '\b'}, {'f', '\f'},  {'v', '\v'}};

// The value of a string token, without prefix and quotes, and with common escapes replaced.
std::string string_value(std::string_view text) {
  bool raw = false;
  while (!text.empty() && text.front() != '"' && text.front() != '\'') {
    raw = raw || (text.front() | 0x20) == 'r';
    text.remove_prefix(1);
  }
  const std::size_t quotes = text.size() >= 6 && text[1] == text[0] && text[2] == text[0] ? 3 : 1;
  text = text.substr(quotes, text.size() - 2 * quotes);
  std::string value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const Escape* found = nullptr;
    if (text[i] == '\\' && !raw && i + 1 < text.size()) {
      if (text[i + 1] == '\n') {
        ++i;
        continue;
      }
      for (const Escape& escape : kEscapes)
        if (escape.letter == text[i + 1]) found = &escape;
    }
    value += found != nullptr ? found->meaning : text[i];
    if (found != nullptr) ++i;
  }
  return value;
}

}  // namespace

/// Parses `for x in items` up to the closing bracket, for a node that has its first part. Longer forms, and
/// those inside functions, leave the node without parts.
bool ExpressionParser::comprehension(Expr& node, Tok close) {
  Expr* first = node.items[0];
  node.items.clear();
  if (!of_file_ || !at(Tok::k_for) || next_token().kind != Tok::name) return false;
  advance();
  Expr* name = atom();
  if (!accept(Tok::k_in)) return false;
  Expr* items = disjunction();
  if (panic_ || !at(close)) return false;
  node.items = {first, name, items};
  for (const Expr* item : node.items) node.height = std::max(node.height, item->height + 1);
  return true;
}

bool ExpressionParser::enter() {
  if (depth_ < kDeepestBrackets) return true;
  fail(token().place, fmt::format("this is nested more than {} deep", kDeepestBrackets),
       "split it, with names for its parts");
  return false;
}

Expr* ExpressionParser::expressions() {
  Expr* first = expression();
  if (!at(Tok::comma) || panic_) return first;
  std::vector<Expr*> items = {first};
  while (!panic_ && accept(Tok::comma)) {
    if (!begins_expression(token().kind)) break;
    items.push_back(expression());
  }
  return make(ExprKind::tuple, since(first->place), std::move(items));
}

Expr* ExpressionParser::expression() {
  const Place begin = token().place;
  if (!enter()) return make(ExprKind::broken, begin);
  ++depth_;
  Expr* result = nullptr;
  if (at(Tok::k_lambda)) {
    result = lambda();
  } else if (at(Tok::k_yield)) {
    advance();
    if (begins_expression(token().kind)) expressions();
    result = unsupported(since(begin), "'yield'");
  } else if (at(Tok::times)) {
    advance();
    disjunction();
    result = unsupported(since(begin), "unpacking with '*'");
  } else {
    result = disjunction();
    if (at(Tok::walrus) && !panic_) {
      advance();
      expression();
      result = unsupported(since(begin), "an assignment expression ':='");
    } else if (at(Tok::k_if) && !panic_) {
      result = conditional(result);
    }
  }
  --depth_;
  return result;
}

/// first if ... else second if ... else third: a chain uses no additional stack.
Expr* ExpressionParser::conditional(Expr* first) {
  std::vector<Expr*> values = {first}, conditions;
  while (at(Tok::k_if) && !panic_) {
    advance();
    conditions.push_back(disjunction());
    if (!expect(Tok::k_else, "in a conditional expression")) return first;
    values.push_back(at(Tok::k_lambda) || at(Tok::k_yield) || at(Tok::times) ? expression() : disjunction());
  }
  Expr* result = values.back();
  for (std::size_t i = conditions.size(); i-- > 0 && !panic_;)
    result = make(ExprKind::conditional, since(values[i]->place), {conditions[i], values[i], result});
  return result;
}

/// lambda x, y: creates a function whose body returns the expression.
Expr* ExpressionParser::lambda() {
  const Place begin = token().place;
  advance();
  Expr* node = make(ExprKind::lambda, begin);
  Function& function = arena_.functions.emplace_back();
  function.place = begin;
  function.name = "lambda";
  node->function = &function;
  const Numbers outer = begin_function();
  parameters(function, Tok::colon);
  if (expect(Tok::colon, "after a lambda's parameters")) {
    Expr* value = expression();
    Stmt* result = make(StmtKind::return_, value->place);
    result->value = value;
    function.body = {result};
    node->height = value->height + 1;
  }
  end_function(function, outer);
  node->place = since(begin);
  return node;
}

void ExpressionParser::parameters(Function& function, Tok close) {
  while (!panic_ && !at(close) && !at(Tok::end)) {
    const Token first = token();
    if (at(Tok::times) || at(Tok::power) || at(Tok::divide)) {
      const std::string text(text_of(first.kind));
      advance();
      fail(first.place, fmt::format("'{}' among the parameters is outside the kernel language", text),
           "name every parameter");
      if (close == Tok::close_round) {
        skip_to_close(close);
        panic_ = false;  // the body can still be parsed
      }
      return;
    }
    Parameter parameter;
    parameter.name = source_.at(first.place);
    parameter.place = first.place;
    if (!expect(Tok::name, "as a parameter")) return;
    if (close == Tok::close_round && accept(Tok::colon)) expression();
    if (accept(Tok::assign)) parameter.fallback = expression();
    for (const Parameter& other : function.parameters)
      if (other.name == parameter.name) {
        fail(first.place, fmt::format("parameter '{}' is named twice", parameter.name), "rename one of them");
        panic_ = false;
      }
    function.parameters.push_back(parameter);
    if (!accept(Tok::comma)) return;
  }
}

Expr* ExpressionParser::disjunction() {
  Expr* first = conjunction();
  if (!at(Tok::k_or) || panic_) return first;
  std::vector<Expr*> items = {first};
  while (!panic_ && accept(Tok::k_or)) items.push_back(conjunction());
  Expr* node = make(ExprKind::logical, since(first->place), std::move(items));
  node->op = Tok::k_or;
  return node;
}

Expr* ExpressionParser::conjunction() {
  Expr* first = inversion();
  if (!at(Tok::k_and) || panic_) return first;
  std::vector<Expr*> items = {first};
  while (!panic_ && accept(Tok::k_and)) items.push_back(inversion());
  Expr* node = make(ExprKind::logical, since(first->place), std::move(items));
  node->op = Tok::k_and;
  return node;
}

Expr* ExpressionParser::inversion() {
  std::vector<Place> nots;
  while (at(Tok::k_not)) {
    nots.push_back(token().place);
    advance();
  }
  Expr* node = comparison();
  for (; !nots.empty(); nots.pop_back()) {
    node = make(ExprKind::unary, since(nots.back()), {node});
    node->op = Tok::k_not;
  }
  return node;
}

Expr* ExpressionParser::comparison() {
  Expr* first = binary(0);
  const auto is_not_in = [this] { return at(Tok::k_not) && next_token().kind == Tok::k_in; };
  if (panic_ || (!is_comparison(token().kind) && !is_not_in())) return first;
  std::vector<Expr*> items = {first};
  std::vector<Tok> ops;
  while (!panic_ && (is_comparison(token().kind) || is_not_in())) {
    Tok op = token().kind;
    advance();
    if (op == Tok::k_is && accept(Tok::k_not)) op = Tok::is_not;
    if (op == Tok::k_not && accept(Tok::k_in)) op = Tok::not_in;
    ops.push_back(op);
    items.push_back(binary(0));
  }
  Expr* node = make(ExprKind::compare, since(first->place), std::move(items));
  node->ops = std::move(ops);
  return node;
}

Expr* ExpressionParser::binary(int level) {
  if (level > kTightest) return unary();
  Expr* left = binary(level + 1);
  while (!panic_ && is_of_level(token().kind, level)) {
    const Tok op = token().kind;
    advance();
    Expr* right = binary(level + 1);
    Expr* node = make(ExprKind::binary, join(left->place, right->place), {left, right});
    node->op = op;
    left = node;
  }
  return left;
}

Expr* ExpressionParser::unary() {
  std::vector<Token> signs;
  while (at(Tok::plus) || at(Tok::minus) || at(Tok::invert)) {
    signs.push_back(token());
    advance();
  }
  Expr* node = power();
  for (; !signs.empty(); signs.pop_back()) {
    node = make(ExprKind::unary, since(signs.back().place), {node});
    node->op = signs.back().kind;
  }
  return node;
}

Expr* ExpressionParser::power() {
  const Place begin = token().place;
  const bool awaits = accept(Tok::k_await);
  Expr* base = primary();
  if (awaits) base = unsupported(since(begin), "'await'");
  if (!at(Tok::power) || panic_) return base;
  advance();
  if (!enter()) return base;
  ++depth_;
  Expr* exponent = unary();
  --depth_;
  Expr* node = make(ExprKind::binary, join(base->place, exponent->place), {base, exponent});
  node->op = Tok::power;
  return node;
}

Expr* ExpressionParser::primary() {
  Expr* node = atom();
  while (!panic_) {
    if (accept(Tok::dot)) {
      const Token name = token();
      if (!expect(Tok::name, "after '.'")) break;
      node = make(ExprKind::attribute, join(node->place, name.place), {node});
      node->name = source_.at(name.place);
    } else if (at(Tok::open_round)) {
      node = call(node);
    } else if (at(Tok::open_square)) {
      node = subscript(node);
    } else {
      break;
    }
  }
  return node;
}

Expr* ExpressionParser::call(Expr* callee) {
  const Place open = token().place;
  advance();
  std::vector<Expr*> items = {callee};
  while (!panic_ && !at(Tok::close_round)) {
    const Place begin = token().place;
    if (at(Tok::end)) break;
    if (accept(Tok::power)) {
      expression();
      items.push_back(unsupported(since(begin), "unpacking arguments with '**'"));
    } else if (at(Tok::name) && next_token().kind == Tok::assign) {
      const std::string_view name = source_.at(begin);
      advance();
      advance();
      Expr* value = expression();
      items.push_back(make(ExprKind::keyword, since(begin), {value}));
      items.back()->name = name;
    } else {
      items.push_back(expression());
      if (at(Tok::k_for) || at(Tok::k_async)) {
        Expr* node = unsupported(begin, "a generator expression");
        node->items = {items.back()};
        if (!comprehension(*node, Tok::close_round)) skip_to_close(Tok::close_round);
        node->place = since(begin);
        items.back() = node;
      }
    }
    if (!accept(Tok::comma)) break;
  }
  if (callee->kind == ExprKind::name && callee->name == "range")
    for (std::size_t i = 1; i < items.size(); ++i) items[i] = as_integer(items[i]);
  close(Tok::close_round, open, "to end the arguments");
  return make(ExprKind::call, since(callee->place), std::move(items));
}

/// math.ceil, math.floor and math.trunc return integers in Python, but floats in Numba's kernels. If an
/// integer is required, the call becomes int(math.ceil(x)).
Expr* ExpressionParser::as_integer(Expr* expr) {
  if (panic_ || expr->kind != ExprKind::call || expr->items.size() != 2) return expr;
  const Expr& callee = *expr->items[0];
  const bool of_math = callee.kind == ExprKind::name ||
                       (callee.kind == ExprKind::attribute && callee.items[0]->name == "math");
  if (!of_math || (callee.name != "ceil" && callee.name != "floor" && callee.name != "trunc")) return expr;
  Expr* name = make(ExprKind::name, callee.place);
  name->name = "int";
  return make(ExprKind::call, expr->place, {name, expr});
}

Expr* ExpressionParser::subscript(Expr* base) {
  const Place open = token().place;
  advance();
  Expr* inside = index();
  if (at(Tok::comma) && !panic_) {
    std::vector<Expr*> items = {inside};
    while (!panic_ && accept(Tok::comma)) {
      if (at(Tok::close_square)) break;
      items.push_back(index());
    }
    const Place place = since(items.front()->place);
    inside = make(ExprKind::tuple, place, std::move(items));
  }
  close(Tok::close_square, open, "to end the index");
  return make(ExprKind::subscript, since(base->place), {base, inside});
}

Expr* ExpressionParser::index() {
  const Place begin = token().place;
  Expr* parts[3] = {nullptr, nullptr, nullptr};
  if (!at(Tok::colon)) {
    parts[0] = expression();
    if (!at(Tok::colon) || panic_) return as_integer(parts[0]);
  }
  for (int part = 1; part < 3 && !panic_ && accept(Tok::colon); ++part)
    if (!at(Tok::colon) && !at(Tok::comma) && !at(Tok::close_square)) parts[part] = expression();
  return make(ExprKind::slice, since(begin), {parts[0], parts[1], parts[2]});
}

Expr* ExpressionParser::atom() {
  const Token first = token();
  switch (first.kind) {
    case Tok::name: {
      advance();
      Expr* node = make(ExprKind::name, first.place);
      node->name = source_.at(first.place);
      return node;
    }
    case Tok::integer:
    case Tok::real:
    case Tok::imaginary:
      return number();
    case Tok::string:
    case Tok::format_string:
    case Tok::bytes:
      return strings();
    case Tok::k_true:
    case Tok::k_false: {
      advance();
      Expr* node = make(ExprKind::boolean, first.place);
      node->integer = first.kind == Tok::k_true ? 1 : 0;
      return node;
    }
    case Tok::k_none:
      advance();
      return make(ExprKind::none, first.place);
    case Tok::ellipsis:
      advance();
      return make(ExprKind::ellipsis, first.place);
    case Tok::open_round:
      return round_brackets();
    case Tok::open_square:
      return square_brackets();
    case Tok::open_curly:
      return curly_brackets();
    case Tok::unreadable:
      panic_ = true;  // the lexer has reported it
      return make(ExprKind::broken, first.place);
    default:
      break;
  }
  const std::string found(text_of(first.kind));
  const bool keyword = is_keyword(first.kind);
  fail(first.place, keyword
                        ? fmt::format("'{}' is a keyword of Python and cannot stand here", found)
                        : fmt::format("an expression is missing before {}",
                                      first.kind <= Tok::unreadable ? found : fmt::format("'{}'", found)));
  return make(ExprKind::broken, first.place);
}

Expr* ExpressionParser::number() {
  const Token first = token();
  advance();
  std::string text(source_.at(first.place));
  std::erase(text, '_');
  if (first.kind == Tok::integer) {
    Expr* node = make(ExprKind::integer, first.place);
    const char base = text.size() > 1 ? static_cast<char>(text[1] | 0x20) : ' ';
    const int radix = base == 'x' ? 16 : base == 'b' ? 2 : base == 'o' ? 8 : 10;
    const char* begin = text.data() + (radix == 10 ? 0 : 2);
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), node->integer, radix);
    node->too_large = error == std::errc::result_out_of_range;
    node->name = source_.at(first.place);
    if (error == std::errc::invalid_argument || end != text.data() + text.size()) {
      if (!node->too_large) fail(first.place, fmt::format("'{}' is no number", text));
    } else if (radix == 10 && text.size() > 1 && text[0] == '0' &&
               text.find_first_not_of('0') != std::string::npos) {
      fail(first.place, "a decimal number does not begin with 0", "write an octal one as 0o17");
    }
    return node;
  }
  if (first.kind == Tok::imaginary) text.pop_back();
  Expr* node = make(first.kind == Tok::real ? ExprKind::real : ExprKind::imaginary, first.place);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), node->real);
  if (error == std::errc::result_out_of_range) node->real = std::strtod(text.c_str(), nullptr);
  return node;
}

Expr* ExpressionParser::strings() {
  const Place begin = token().place;
  std::string value;
  std::string_view refused;
  while (at(Tok::string) || at(Tok::format_string) || at(Tok::bytes)) {
    if (at(Tok::format_string)) refused = "an f-string";
    if (at(Tok::bytes)) refused = "a bytes literal";
    if (at(Tok::string)) value += string_value(source_.at(token().place));
    advance();
  }
  if (!refused.empty()) return unsupported(since(begin), refused);
  Expr* node = make(ExprKind::string, since(begin));
  node->name = arena_.texts.emplace_back(std::move(value));
  return node;
}

Expr* ExpressionParser::round_brackets() {
  const Place begin = token().place;
  advance();
  if (accept(Tok::close_round)) return make(ExprKind::tuple, since(begin));
  Expr* inside = expressions();
  if (at(Tok::k_for) || at(Tok::k_async)) {
    skip_to_close(Tok::close_round);
    inside = unsupported(since(begin), "a generator expression");
  }
  close(Tok::close_round, begin, "to close the '('");
  inside->place = since(begin);
  return inside;
}

Expr* ExpressionParser::square_brackets() {
  const Place begin = token().place;
  advance();
  std::vector<Expr*> items;
  while (!panic_ && !at(Tok::close_square) && !at(Tok::end)) {
    items.push_back(expression());
    if (at(Tok::k_for) || at(Tok::k_async)) {
      Expr* node = unsupported(begin, "a list comprehension");
      node->items = {items.back()};
      if (!comprehension(*node, Tok::close_square)) skip_to_close(Tok::close_square);
      accept(Tok::close_square);
      node->place = since(begin);
      return node;
    }
    if (!accept(Tok::comma)) break;
  }
  close(Tok::close_square, begin, "to close the '['");
  return make(ExprKind::list, since(begin), std::move(items));
}

Expr* ExpressionParser::curly_brackets() {
  const Place begin = token().place;
  advance();
  skip_to_close(Tok::close_curly);
  if (at(Tok::end))
    fail(begin, "this '{' is never closed", "add the '}' that is missing");
  else
    accept(Tok::close_curly);
  return unsupported(since(begin), "a dict or set");
}

}  // namespace quern::frontend
