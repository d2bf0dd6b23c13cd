// SPDX-License-Identifier: Apache-2.0
// Statements of a function's body: scopes, labels, declarations, tables, source locations.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ptx/parse/function_parser.hpp"
#include "ptx/unique_names.hpp"

namespace quern::ptx {

bool FunctionParser::declare(const Token& name, Entity entity) {
  if (context_.scopes.declare(name.text, entity)) return true;
  return context_.fail(name, fmt::format("'{}' is declared already in this scope", name.text), {}, kName);
}

// Parses everything between the braces. If a statement has an error, it is skipped and the next one is read.
bool FunctionParser::parse_body() {
  tokens_.take();
  const std::size_t outermost = context_.scopes.depth();
  while (!tokens_.at_end() && !context_.report.full()) {
    if (tokens_.accept('}')) {
      const bool last = context_.scopes.depth() == outermost;
      close_scope();
      if (last) {
        report_unresolved();
        return true;
      }
      continue;
    }
    if (tokens_.current().is('{')) {
      if (context_.scopes.depth() >= context_.limits.max_nesting) {
        context_.fail(tokens_.current(),
                      fmt::format("blocks are nested deeper than {} levels", context_.limits.max_nesting));
        context_.skip_balanced('{', '}');
        continue;
      }
      tokens_.take();
      context_.scopes.enter();
      continue;
    }
    if (!parse_statement()) context_.skip_statement();
  }
  context_.fail(tokens_.current(), fmt::format("the body of '{}' has no end", function_.name));
  while (context_.scopes.depth() >= outermost) context_.scopes.leave([](const ForwardUse&, SymbolRef) {});
  context_.scopes.take_unresolved();
  return false;
}

void FunctionParser::close_scope() {
  context_.scopes.leave([this](const ForwardUse& use, SymbolRef symbol) { resolve(use, symbol); });
}

void FunctionParser::resolve(const ForwardUse& use, SymbolRef symbol) {
  // As in ptxas, only labels may be declared after their first use.
  const std::uint32_t declared =
      symbol.kind == SymbolKind::call_prototype ? function_.prototypes[symbol.index].position
      : symbol.kind == SymbolKind::branch_table ? function_.branch_tables[symbol.index].position
                                                : 0;
  if (!use.in_table && declared > use.index) {
    const Token token{TokenKind::identifier, use.name, use.position};
    context_.fail(token, fmt::format("'{}' is used before it is declared", use.name),
                  "prototypes and tables of targets go in front of what uses them", kName);
    return;
  }
  if (use.in_table) {
    if (symbol.kind != SymbolKind::label) {
      const Token token{TokenKind::identifier, use.name, use.position};
      context_.fail(token, fmt::format("'{}' is not a label", use.name), {}, kName);
    }
    function_.branch_tables[use.index].targets[use.slot] = symbol;
    return;
  }
  function_.body[use.index].operands[use.slot].value = SymbolOperand{symbol, 0};
}

void FunctionParser::report_unresolved() {
  for (const ForwardUse& use : context_.scopes.take_unresolved()) {
    const Token token{TokenKind::identifier, use.name, use.position};
    context_.fail(token, fmt::format("'{}' is not declared", use.name), {}, kName);
  }
}

bool FunctionParser::parse_statement() {
  const Token& token = tokens_.current();
  if (tokens_.accept(';')) return true;
  if (token.kind == TokenKind::word) return parse_directive();
  if (token.is('@')) return instructions_.parse(locations_.current());
  if (token.kind == TokenKind::identifier)
    return tokens_.peek().is(':') ? parse_label() : instructions_.parse(locations_.current());
  return context_.fail_expected("an instruction");
}

bool FunctionParser::parse_directive() {
  const Token& word = tokens_.current();
  if (const std::optional<Space> space = space_named_by(word)) {
    tokens_.take();
    return *space == Space::reg ? parse_registers() : parse_variables(*space);
  }
  if (word.is_word(".loc")) return locations_.parse_loc();
  if (word.is_word(".pragma")) {
    tokens_.take();
    if (tokens_.current().kind != TokenKind::string) return context_.fail_expected("a string");
    const std::string_view text = tokens_.take().text;
    function_.pragmas.push_back(
        {std::string(text.substr(1, text.size() - 2)), static_cast<std::uint32_t>(function_.body.size())});
    return context_.expect(';');
  }
  return context_.fail(word, fmt::format("{} is no directive of a function's body", describe(word)));
}

bool FunctionParser::parse_registers() {
  const std::optional<DeclarationHead> head = parse_declaration_head(context_, Space::reg);
  if (!head) return false;
  do {
    if (!parse_register_names(*head)) return false;
  } while (tokens_.accept(','));
  return context_.expect(';');
}

// Parses `a`, or `%r<100>`, which declares %r0 to %r99.
bool FunctionParser::parse_register_names(const DeclarationHead& head) {
  const std::optional<Token> name = context_.expect_identifier("a register's name");
  if (!name) return false;
  const Variable& common = head.common;
  if (!tokens_.accept('<')) {
    const std::optional<std::uint32_t> index =
        registers_.add(name->text, common.type, common.vector, {registers_.next_declaration(), 0});
    return index && declare(*name, {true, {SymbolKind::module_variable, *index}});
  }
  const Token at = tokens_.current();
  const std::optional<IntegerOperand> count =
      at.kind == TokenKind::integer ? integer_value(tokens_.take().text) : std::nullopt;
  if (!count) return context_.fail_expected("a number of registers");
  if (count->bits > context_.limits.max_registers) {
    return context_.fail(at, fmt::format("{} registers are too many", count->bits),
                         fmt::format("the limit is {}", context_.limits.max_registers));
  }
  if (!context_.expect('>')) return false;
  if (!context_.scopes.declare_range(name->text,
                                     {common.type, common.vector, static_cast<std::uint32_t>(count->bits),
                                      registers_.next_declaration()})) {
    return context_.fail(
        *name, fmt::format("registers '{0}0', '{0}1', ... are declared already in this scope", name->text),
        {}, kName);
  }
  return true;
}

bool FunctionParser::parse_variables(Space space) {
  const std::optional<DeclarationHead> head = parse_declaration_head(context_, space);
  if (!head) return false;
  const bool in_module = space == Space::global || space == Space::const_;
  do {
    const Token name = tokens_.current();
    std::optional<Variable> variable = parse_declarator(context_, *head, in_module);
    if (!variable) return false;
    if (in_module) {
      if (!enter_static_variable(name, std::move(*variable))) return false;
      continue;
    }
    const auto index = static_cast<std::uint32_t>(function_.variables.size());
    function_.variables.push_back(std::move(*variable));
    if (!declare(name, {false, {SymbolKind::function_variable, index}})) return false;
  } while (tokens_.accept(','));
  return context_.expect(';');
}

// A .global or .const variable lives as long as the module, wherever it is declared ("State Spaces"). A
// declaration in a body only limits the scope of the name, so the variable becomes one of the module under a
// unique name.
bool FunctionParser::enter_static_variable(const Token& name, Variable variable) {
  if (variable.element_count() == 0)
    return context_.fail(name, fmt::format("the array '{}' has no size", name.text), "give its extent");
  std::vector<Variable>& variables = context_.module.variables;
  const auto index = static_cast<std::uint32_t>(variables.size());
  const bool names_itself = !context_.scopes.find(name.text).has_value();
  variable.name = provisional_name(name.text, index);
  for (Initializer& value : variable.initializer)
    if (names_itself && value.symbol == name.text) value.symbol = variable.name;
  variables.push_back(std::move(variable));
  return declare(name, {false, {SymbolKind::module_variable, index}});
}

bool FunctionParser::parse_label() {
  const Token name = tokens_.take();
  tokens_.take();
  const Token& next = tokens_.current();
  if (next.is_word(".branchtargets") || next.is_word(".calltargets")) return parse_table(name);
  if (next.is_word(".callprototype")) return parse_prototype(name);
  const auto index = static_cast<std::uint32_t>(function_.labels.size());
  function_.labels.push_back(
      {std::string(name.text), static_cast<std::uint32_t>(function_.body.size()), name.position});
  return declare(name, {false, {SymbolKind::label, index}});
}

bool FunctionParser::parse_table(const Token& name) {
  const bool branches = tokens_.take().is_word(".branchtargets");
  const auto index = static_cast<std::uint32_t>(function_.branch_tables.size());
  function_.branch_tables.push_back(
      {std::string(name.text), {}, static_cast<std::uint32_t>(function_.body.size())});
  if (!declare(name, {false, {SymbolKind::branch_table, index}})) return false;
  std::vector<SymbolRef>& targets = function_.branch_tables.back().targets;
  do {
    const std::optional<Token> target =
        context_.expect_identifier(branches ? "a label" : "a function's name");
    if (!target) return false;
    if (branches) {
      context_.scopes.use_later(
          {target->text, target->position, true, index, static_cast<std::uint32_t>(targets.size())});
      targets.emplace_back();
      continue;
    }
    const std::optional<Entity> function = context_.scopes.find(target->text);
    if (!function || function->is_register || function->symbol.kind != SymbolKind::function) {
      return context_.fail(*target, fmt::format("'{}' is no function declared before", target->text), {},
                           kName);
    }
    targets.push_back(function->symbol);
  } while (tokens_.accept(','));
  return context_.expect(';');
}

// Parses `name: .callprototype (.param .b32 _) _ (.param .b64 _) [.noreturn];`
bool FunctionParser::parse_prototype(const Token& name) {
  tokens_.take();
  CallPrototype prototype;
  prototype.name = name.text;
  prototype.position = static_cast<std::uint32_t>(function_.body.size());
  if (tokens_.current().is('(')) {
    std::optional<std::vector<Variable>> returns = parse_parameters(context_);
    if (!returns) return false;
    prototype.returns = std::move(*returns);
  }
  if (!context_.expect_identifier("'_'")) return false;
  if (tokens_.current().is('(')) {
    std::optional<std::vector<Variable>> parameters = parse_parameters(context_);
    if (!parameters) return false;
    prototype.parameters = std::move(*parameters);
  }
  prototype.noreturn = tokens_.accept_word(".noreturn");
  const auto index = static_cast<std::uint32_t>(function_.prototypes.size());
  function_.prototypes.push_back(std::move(prototype));
  return declare(name, {false, {SymbolKind::call_prototype, index}}) && context_.expect(';');
}

}  // namespace quern::ptx
