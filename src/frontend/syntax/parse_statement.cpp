// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "frontend/syntax/parser.hpp"

namespace quern::frontend {
namespace {

constexpr Tok kAugmented[] = {Tok::plus_assign,  Tok::minus_assign, Tok::times_assign, Tok::divide_assign,
                              Tok::floor_assign, Tok::mod_assign,   Tok::power_assign, Tok::left_assign,
                              Tok::right_assign, Tok::and_assign,   Tok::or_assign,    Tok::xor_assign,
                              Tok::at_assign};
constexpr Tok kOperators[] = {Tok::plus,   Tok::minus,   Tok::times,      Tok::divide,      Tok::floor_divide,
                              Tok::mod,    Tok::power,   Tok::left_shift, Tok::right_shift, Tok::bit_and,
                              Tok::bit_or, Tok::bit_xor, Tok::at};

// The operator of an augmented assignment, or Tok::end if it is none.
Tok augmented_operator(Tok kind) {
  const auto found = std::find(std::begin(kAugmented), std::end(kAugmented), kind);
  return found == std::end(kAugmented) ? Tok::end : kOperators[found - std::begin(kAugmented)];
}

struct Refused {
  Tok keyword;
  std::string_view what;
  bool block;
};
constexpr Refused kRefused[] = {
    {Tok::k_try, "'try'", true},
    {Tok::k_with, "'with'", true},
    {Tok::k_class, "a class", true},
    {Tok::at, "a decorator inside a function", true},
    {Tok::k_async, "'async'", true},
    {Tok::k_global, "'global'", false},
    {Tok::k_nonlocal, "'nonlocal'", false},
    {Tok::k_del, "'del'", false},
    {Tok::k_import, "'import'", false},
    {Tok::k_from, "'import'", false},
};

const Refused* refused(Tok kind) {
  for (const Refused& row : kRefused)
    if (row.keyword == kind) return &row;
  return nullptr;
}

}  // namespace

void Parser::restart(std::size_t index) {
  at_ = index;
  depth_ = elifs_ = 0;
  next_ = {};
  panic_ = false;
}

Function* Parser::parse_function(std::size_t index) {
  restart(index);
  Function& function = arena_.functions.emplace_back();
  expect(Tok::k_def, "to begin a function");
  function_header(function);
  block(function.body);
  end_function(function, {});
  return &function;
}

Stmt* Parser::nested_function() {
  const Place begin = token().place;
  advance();
  Stmt* node = make(StmtKind::function, begin);
  Function& function = arena_.functions.emplace_back();
  Expr* name = make(ExprKind::name, token().place);
  node->targets = {name};
  node->function = &function;
  const Numbers outer = begin_function();
  function_header(function);
  name->name = function.name;
  node->place = since(begin);
  block(function.body);
  end_function(function, outer);
  return node;
}

void Parser::function_header(Function& function) {
  function.place = token().place;
  function.name = source_.at(function.place);
  expect(Tok::name, "after 'def'");
  if (expect(Tok::open_round, "after the function's name")) parameters(function, Tok::close_round);
  expect(Tok::close_round, "to end the parameters");
  if (!panic_ && accept(Tok::arrow)) expression();
}

std::vector<Stmt*> Parser::parse_line(std::size_t index) {
  restart(index);
  of_file_ = true;
  std::vector<Stmt*> out;
  simple_statements(out);
  return out;
}

Expr* Parser::parse_expression(std::size_t begin, std::size_t end) {
  restart(begin);
  of_file_ = true;
  Expr* result = expressions();
  return panic_ || at_ != end ? nullptr : result;
}

Expr* Parser::parse_decorator(std::size_t index) {
  restart(index);
  return expression();
}

Expr* Parser::parse_only_expression() {
  restart(0);
  Expr* result = expressions();
  accept(Tok::newline);
  if (!at(Tok::end)) expect(Tok::end, "behind the expression");
  return result;
}

/// Parses ':' and what follows it: statements on the same line, or an indented block.
void Parser::block(std::vector<Stmt*>& out) {
  if (!panic_ && at(Tok::assign)) fail(token().place, "'=' assigns, and a condition compares", "write '=='");
  if (panic_ || !expect(Tok::colon, "to begin the block")) skip_line();
  const bool header_failed = panic_;
  panic_ = false;
  if (!enter()) {
    skip_line();
    return;
  }
  ++depth_;
  if (!header_failed && !at(Tok::newline)) {
    simple_statements(out);
  } else {
    accept(Tok::newline);
    if (accept(Tok::indent)) {
      while (!at(Tok::dedent) && !at(Tok::end)) statement(out);
      accept(Tok::dedent);
    } else if (!header_failed) {
      fail(token().place, "an indented block is missing here",
           "write the block's statements, or 'pass' for none");
      panic_ = false;
    }
  }
  --depth_;
}

void Parser::statement(std::vector<Stmt*>& out) {
  panic_ = false;
  if (at(Tok::indent)) {
    const std::size_t begin = at_;
    advance();
    fail(token().place, "this line is indented more than the block around it",
         "indent it like the line before it");
    panic_ = false;
    while (!at(Tok::dedent) && !at(Tok::end)) statement(out);
    accept(Tok::dedent);
    if (at_ == begin) advance();
    return;
  }
  switch (token().kind) {
    case Tok::k_if:
      out.push_back(if_statement());
      return;
    case Tok::k_while:
      out.push_back(while_statement());
      return;
    case Tok::k_for:
      out.push_back(for_statement());
      return;
    case Tok::k_def:
      out.push_back(nested_function());
      return;
    default:
      break;
  }
  const Refused* row = refused(token().kind);
  if (row == nullptr && at(Tok::name) && source_.at(token().place) == "match" &&
      (next_token().kind == Tok::name || next_token().kind == Tok::open_round)) {
    // `match` is a keyword only if a block follows.
    std::size_t ahead = at_;
    while (tokens_[ahead].kind != Tok::newline && tokens_[ahead].kind != Tok::end) ++ahead;
    static constexpr Refused kMatch{Tok::name, "'match'", true};
    if (ahead > at_ && tokens_[ahead - 1].kind == Tok::colon) row = &kMatch;
  }
  if (row != nullptr && row->block) {
    out.push_back(unsupported_statement());
    out.back()->name = row->what;
    return;
  }
  simple_statements(out);
}

void Parser::simple_statements(std::vector<Stmt*>& out) {
  do {
    if (at(Tok::newline)) break;  // after a ';'
    const std::size_t begin = at_;
    out.push_back(simple_statement());
    if (at_ == begin && !panic_) advance();
  } while (!panic_ && accept(Tok::semicolon));
  if (!panic_ && !at(Tok::newline) && !at(Tok::end) && !at(Tok::dedent))
    expect(Tok::newline, "to end the statement");
  skip_line();
  panic_ = false;
}

Stmt* Parser::simple_statement() {
  const Token first = token();
  if (const Refused* row = refused(first.kind)) {
    Stmt* node = make(StmtKind::unsupported, first.place);
    node->name = row->what;
    while (!at(Tok::newline) && !at(Tok::semicolon) && !at(Tok::end)) advance();
    node->skipped = {first.place.begin, token().place.begin};
    return node;
  }
  const auto single = [&](StmtKind kind) {
    advance();
    return make(kind, first.place);
  };
  const auto ends = [&] { return at(Tok::newline) || at(Tok::semicolon) || at(Tok::end) || at(Tok::dedent); };
  switch (first.kind) {
    case Tok::k_pass:
      return single(StmtKind::pass);
    case Tok::k_break:
      return single(StmtKind::break_);
    case Tok::k_continue:
      return single(StmtKind::continue_);
    case Tok::k_return: {
      Stmt* node = single(StmtKind::return_);
      if (!ends()) node->value = expressions();
      return node;
    }
    case Tok::k_raise: {
      Stmt* node = single(StmtKind::raise);
      if (!ends()) node->value = expression();
      if (accept(Tok::k_from)) expression();
      return node;
    }
    case Tok::k_assert: {
      Stmt* node = single(StmtKind::assert_);
      node->value = expression();
      if (accept(Tok::comma)) node->targets.push_back(expression());
      return node;
    }
    default:
      return expression_statement();
  }
}

Stmt* Parser::expression_statement() {
  const Place begin = token().place;
  Stmt* node = make(StmtKind::expression, begin);
  node->value = expressions();
  if (panic_) return node;
  if (const Tok op = augmented_operator(token().kind); op != Tok::end) {
    advance();
    node->kind = StmtKind::augmented;
    node->op = op;
    node->targets = {node->value};
    node->value = expressions();
  } else if (accept(Tok::colon)) {
    node->kind = StmtKind::declare;
    node->targets = {node->value};
    node->value = nullptr;
    expression();
    if (accept(Tok::assign)) {
      node->kind = StmtKind::assign;
      node->value = expressions();
    }
  } else {
    while (!panic_ && accept(Tok::assign)) {
      node->kind = StmtKind::assign;
      node->targets.push_back(node->value);
      node->value = expressions();
    }
  }
  node->place = since(begin);
  return node;
}

Stmt* Parser::if_statement() {
  const Place begin = token().place;
  advance();
  Stmt* node = make(StmtKind::if_, begin);
  node->value = expression();
  node->place = since(begin);
  block(node->body);
  if (at(Tok::k_elif)) {
    if (elifs_ == kDeepestNesting) {
      fail(token().place, fmt::format("there are more than {} 'elif' here", kDeepestNesting),
           "compare with a table's entries in a loop");
      skip_line();
      return node;
    }
    ++elifs_;
    node->orelse.push_back(if_statement());
    --elifs_;
  } else {
    else_block(node);
  }
  return node;
}

void Parser::else_block(Stmt* owner) {
  if (accept(Tok::k_else)) block(owner->orelse);
}

Stmt* Parser::while_statement() {
  const Place begin = token().place;
  advance();
  Stmt* node = make(StmtKind::while_, begin);
  node->value = expression();
  node->place = since(begin);
  block(node->body);
  else_block(node);
  return node;
}

/// Parses a loop's target, which ends before `in`.
Expr* Parser::target() {
  Expr* first = primary();
  if (!at(Tok::comma) || panic_) return first;
  std::vector<Expr*> items = {first};
  while (!panic_ && accept(Tok::comma)) {
    if (at(Tok::k_in)) break;
    items.push_back(primary());
  }
  return make(ExprKind::tuple, since(first->place), std::move(items));
}

Stmt* Parser::for_statement() {
  const Place begin = token().place;
  advance();
  Stmt* node = make(StmtKind::for_, begin);
  node->targets.push_back(target());
  if (expect(Tok::k_in, "after the loop's variable"))
    node->value = expressions();
  else
    node->value = make(ExprKind::broken, begin);
  node->place = since(begin);
  block(node->body);
  else_block(node);
  return node;
}

/// Skips a statement with its block, and its other clauses (except, finally, else).
Stmt* Parser::unsupported_statement() {
  const Token first = token();
  Stmt* node = make(StmtKind::unsupported, first.place);
  for (bool again = true; again;) {
    while (!at(Tok::newline) && !at(Tok::end)) advance();
    accept(Tok::newline);
    if (accept(Tok::indent))
      for (std::size_t depth = 1; depth > 0 && !at(Tok::end); advance())
        depth += at(Tok::indent) ? 1 : at(Tok::dedent) ? static_cast<std::size_t>(-1) : 0;
    again = (first.kind == Tok::k_try && (at(Tok::k_except) || at(Tok::k_finally) || at(Tok::k_else))) ||
            (first.kind == Tok::at && (at(Tok::k_def) || at(Tok::at) || at(Tok::k_class)));
  }
  node->skipped = {first.place.begin, token().place.begin};
  return node;
}

}  // namespace quern::frontend
