// SPDX-License-Identifier: Apache-2.0
// "Kernel and Function Directives" and "Performance-Tuning Directives".
#include <fmt/format.h>

#include <algorithm>

#include "ptx/parse/function_parser.hpp"

namespace quern::ptx {
namespace {

bool same_shape(const std::vector<Variable>& a, const std::vector<Variable>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Variable& x, const Variable& y) { return x.size_bytes() == y.size_bytes(); });
}

// Directives that are kept as text, and the largest count of numbers that may follow each.
struct OtherDirective {
  std::string_view word;
  bool numbers;
};
constexpr OtherDirective kOthers[] = {
    {".maxclusterrank", true},     {".reqnctapercluster", true},    {".explicitcluster", false},
    {".blocksareclusters", false}, {".abi_preserve_control", true}, {".abi_preserve", true},
};

}  // namespace

FunctionParser::FunctionParser(ParseContext& context, Linkage linkage, bool entry)
    : context_(context), tokens_(context.tokens) {
  function_.linkage = linkage;
  function_.entry = entry;
}

bool FunctionParser::parse() {
  context_.scopes.enter();
  const bool read = parse_header() && enter_into_module();
  bool good = read;
  if (read && tokens_.current().is('{')) {
    good = parse_body();
  } else {
    good = read && context_.expect(';');
    context_.scopes.leave([](const ForwardUse&, SymbolRef) {});
  }
  if (read && !duplicate_) {
    registers_.sort();
    Function& stored = context_.module.functions[index_];
    // If the function has its body already, a later declaration adds nothing.
    if (function_.defined || !stored.defined) stored = std::move(function_);
  }
  return good;
}

bool FunctionParser::parse_header() {
  if (tokens_.accept_word(".attribute")) {
    std::optional<std::string> attributes = parse_attribute_list(context_);
    if (!attributes) return false;
    function_.attributes = std::move(*attributes);
  }
  if (tokens_.current().is('(') && !function_.entry) {
    std::optional<std::vector<Variable>> returns = parse_parameters(context_);
    if (!returns) return false;
    function_.returns = std::move(*returns);
  }
  const std::optional<Token> name = context_.expect_identifier("a function's name");
  if (!name) return false;
  name_ = *name;
  function_.name = name->text;
  function_.position = name->position;
  if (tokens_.current().is('(')) {
    std::optional<std::vector<Variable>> parameters = parse_parameters(context_);
    if (!parameters) return false;
    function_.parameters = std::move(*parameters);
    const bool in_registers = std::any_of(function_.parameters.begin(), function_.parameters.end(),
                                          [](const Variable& p) { return p.space == Space::reg; });
    if (function_.entry && in_registers)
      return context_.fail(name_, "a kernel's parameters must be in the .param space");
  }
  while (tokens_.current().kind == TokenKind::word) {
    if (!parse_performance()) return false;
  }
  const Token& next = tokens_.current();
  if (!next.is('{') && !next.is(';')) return context_.fail_expected("'{' or ';'");
  return true;
}

bool FunctionParser::parse_dimensions(std::array<std::uint32_t, 3>& into) {
  into = {1, 1, 1};
  for (std::uint32_t& extent : into) {
    const std::optional<std::uint32_t> value = context_.expect_u32("a block extent");
    if (!value) return false;
    extent = *value;
    if (!tokens_.accept(',')) return true;
  }
  return context_.fail_expected("at most three extents");
}

bool FunctionParser::parse_performance() {
  PerformanceDirectives& performance = function_.performance;
  const Token word = tokens_.take();
  if (word.is_word(".maxntid")) return parse_dimensions(performance.maxntid);
  if (word.is_word(".reqntid")) return parse_dimensions(performance.reqntid);
  if (word.is_word(".noreturn")) return function_.noreturn = true;
  const std::pair<std::string_view, std::uint32_t*> numbers[] = {{".minnctapersm", &performance.minnctapersm},
                                                                 {".maxnctapersm", &performance.maxnctapersm},
                                                                 {".maxnreg", &performance.maxnreg}};
  for (const auto& [text, into] : numbers) {
    if (!word.is_word(text)) continue;
    const std::optional<std::uint32_t> value = context_.expect_u32("a number");
    if (value) *into = *value;
    return value.has_value();
  }
  if (word.is_word(".pragma")) {
    if (tokens_.current().kind != TokenKind::string) return context_.fail_expected("a string");
    const std::string_view text = tokens_.take().text;
    function_.pragmas.push_back({std::string(text.substr(1, text.size() - 2)), 0});
    return context_.expect(';');
  }
  for (const OtherDirective& other : kOthers) {
    if (!word.is_word(other.word)) continue;
    std::string text(word.text);
    while (other.numbers && tokens_.current().kind == TokenKind::integer) {
      text += fmt::format("{}{}", text == other.word ? " " : ", ", tokens_.take().text);
      if (!tokens_.accept(',')) break;
    }
    performance.others.push_back(std::move(text));
    return true;
  }
  return context_.fail(word, fmt::format("{} is no directive of a function", describe(word)));
}

bool FunctionParser::declare_parameters(const std::vector<Variable>& parameters, SymbolKind kind) {
  for (std::uint32_t i = 0; i < parameters.size(); ++i) {
    const Variable& parameter = parameters[i];
    if (parameter.name == "_") continue;
    // The key must outlive the scope. The PTX text does; a string inside a vector does not, since it may
    // move.
    Token token{TokenKind::identifier, parameter.name, parameter.position};
    if (parameter.space != Space::reg) {
      if (!declare(token, {false, {kind, i}})) return false;
      continue;
    }
    const std::optional<std::uint32_t> index =
        registers_.add(parameter.name, parameter.type, parameter.vector, {registers_.next_declaration(), 0});
    if (!index || !declare(token, {true, {SymbolKind::module_variable, *index}})) return false;
  }
  return true;
}

// Creates or finds the function's entry in the module, so that the body can call the function itself, and
// declares its parameters.
bool FunctionParser::enter_into_module() {
  const std::optional<Entity> known = context_.scopes.find(function_.name);
  std::vector<Function>& functions = context_.module.functions;
  function_.defined = tokens_.current().is('{');
  if (known) {
    const bool is_function = !known->is_register && known->symbol.kind == SymbolKind::function;
    if (!is_function)
      return context_.fail(name_, fmt::format("'{}' is declared already, as a variable", name_.text), {},
                           kName);
    index_ = known->symbol.index;
    const Function& before = functions[index_];
    if (before.entry != function_.entry || !same_shape(before.parameters, function_.parameters) ||
        !same_shape(before.returns, function_.returns)) {
      return context_.fail(
          name_,
          fmt::format("'{}' differs from its declaration in line {}", name_.text, before.position.line), {},
          kName);
    }
    duplicate_ = before.defined && function_.defined;
    if (duplicate_)
      context_.fail(name_,
                    fmt::format("'{}' has a body already, in line {}", name_.text, before.position.line), {},
                    kName);
  } else {
    index_ = static_cast<std::uint32_t>(functions.size());
    functions.emplace_back();
    functions.back().name = function_.name;
    functions.back().entry = function_.entry;
    functions.back().returns = function_.returns;
    functions.back().parameters = function_.parameters;
    functions.back().position = function_.position;
    context_.scopes.declare_outermost(name_.text, {false, {SymbolKind::function, index_}});
  }
  if (!function_.defined) return true;
  return declare_parameters(function_.returns, SymbolKind::return_parameter) &&
         declare_parameters(function_.parameters, SymbolKind::parameter);
}

}  // namespace quern::ptx
