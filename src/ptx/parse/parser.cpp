// SPDX-License-Identifier: Apache-2.0
// Parses the module: version, target, files, variables, functions, debug sections.
#include <fmt/format.h>

#include <charconv>

#include "ptx/parse/declaration.hpp"
#include "ptx/parse/function_parser.hpp"
#include "ptx/unique_names.hpp"

namespace quern::ptx {
namespace {

class ModuleParser {
 public:
  ModuleParser(std::string_view text, std::string_view file, const Limits& limits)
      : context_(text, file, limits) {}

  Expected<Module> run();

 private:
  bool parse_item();
  bool parse_version();
  bool parse_target();
  bool parse_target_name(const Token& name);
  bool parse_address_size();
  bool parse_file();
  bool parse_section();
  bool parse_pragma();
  bool parse_alias();
  bool parse_variables(Space space, Linkage linkage);
  bool enter_variable(const Token& name, Variable variable);
  void recover();

  ParseContext context_;
  TokenStream& tokens_ = context_.tokens;
  bool has_version_ = false;
  bool has_target_ = false;
};

std::optional<Linkage> linkage_named_by(const Token& token) noexcept {
  constexpr std::pair<std::string_view, Linkage> kRows[] = {{".extern", Linkage::extern_},
                                                            {".visible", Linkage::visible},
                                                            {".weak", Linkage::weak},
                                                            {".common", Linkage::common}};
  for (const auto& [word, linkage] : kRows) {
    if (token.is_word(word)) return linkage;
  }
  return std::nullopt;
}

Expected<Module> ModuleParser::run() {
  const Token first = tokens_.current();
  if (context_.text.size() > context_.limits.max_text_bytes) {
    context_.fail(first, fmt::format("the text has {} bytes; the limit is {}", context_.text.size(),
                                     context_.limits.max_text_bytes));
    return std::move(context_.report).take();
  }
  if (!tokens_.current().is_word(".version"))
    context_.fail(first, "PTX starts with its '.version'", "write '.version 9.0' in the first line");
  while (!tokens_.at_end() && !context_.report.full()) {
    if (!parse_item()) recover();
  }
  if (context_.report.empty() && !has_target_)
    context_.fail(first, "the module has no '.target'", "write '.target sm_89' behind '.version'");
  if (!context_.report.empty()) return std::move(context_.report).take();
  make_names_unique(context_.module);
  return std::move(context_.module);
}

// Skips a statement that cannot be parsed, up to its end or to a directive at the start of a line.
void ModuleParser::recover() {
  while (!tokens_.at_end()) {
    if (tokens_.accept(';')) return;
    if (tokens_.current().is('{')) {
      context_.skip_balanced('{', '}');
      tokens_.accept(';');
      return;
    }
    tokens_.take();
    const Token& token = tokens_.current();
    if (tokens_.on_new_line() &&
        (linkage_named_by(token) || token.is_word(".entry") || token.is_word(".func")))
      return;
  }
}

bool ModuleParser::parse_item() {
  using Item = bool (ModuleParser::*)();
  constexpr std::pair<std::string_view, Item> kItems[] = {
      {".version", &ModuleParser::parse_version},
      {".target", &ModuleParser::parse_target},
      {".address_size", &ModuleParser::parse_address_size},
      {".file", &ModuleParser::parse_file},
      {".section", &ModuleParser::parse_section},
      {".pragma", &ModuleParser::parse_pragma},
      {".alias", &ModuleParser::parse_alias}};
  const Token start = tokens_.current();
  if (tokens_.accept(';')) return true;
  for (const auto& [word, item] : kItems) {
    if (start.is_word(word)) return (this->*item)();
  }
  Linkage linkage = Linkage::none;
  if (const std::optional<Linkage> word = linkage_named_by(tokens_.current())) {
    linkage = *word;
    tokens_.take();
  }
  const bool entry = tokens_.current().is_word(".entry");
  if (entry || tokens_.current().is_word(".func")) {
    tokens_.take();
    return FunctionParser(context_, linkage, entry).parse();
  }
  if (const std::optional<Space> space = space_named_by(tokens_.current())) {
    tokens_.take();
    return parse_variables(*space, linkage);
  }
  return context_.fail_expected("a directive such as '.visible' or '.entry'");
}

bool ModuleParser::parse_version() {
  tokens_.take();
  const Token at = tokens_.current();
  unsigned parts[2] = {0, 0};
  const char* const end = at.text.data() + at.text.size();
  const auto major = std::from_chars(at.text.data(), end, parts[0]);
  const bool dotted =
      at.kind == TokenKind::floating && major.ec == std::errc() && major.ptr < end && *major.ptr == '.';
  const auto minor = dotted ? std::from_chars(major.ptr + 1, end, parts[1]) : major;
  if (!dotted || minor.ec != std::errc() || minor.ptr != end)
    return context_.fail_expected("a version such as 9.0");
  tokens_.take();
  if (has_version_) return context_.fail(at, "a module has one '.version'");
  has_version_ = true;
  context_.module.version_major = parts[0];
  context_.module.version_minor = parts[1];
  return true;
}

bool ModuleParser::parse_target() {
  tokens_.take();
  do {
    const std::optional<Token> name = context_.expect_identifier("a target such as sm_89");
    if (!name || !parse_target_name(*name)) return false;
  } while (tokens_.accept(','));
  return true;
}

// Parses "sm_89", "sm_90a", "sm_100f", or an option such as debug.
bool ModuleParser::parse_target_name(const Token& name) {
  Module& module = context_.module;
  if (!name.text.starts_with("sm_")) {
    module.target_options.emplace_back(name.text);
    return true;
  }
  std::uint32_t number = 0;
  const char* const end = name.text.data() + name.text.size();
  const auto [rest, error] = std::from_chars(name.text.data() + 3, end, number);
  const bool suffixed = rest + 1 == end && (*rest == 'a' || *rest == 'f');
  if (error != std::errc() || (rest != end && !suffixed))
    return context_.fail(name, fmt::format("'{}' is no target", name.text));
  if (has_target_) return context_.fail(name, "a module has one target");
  has_target_ = true;
  module.sm = number;
  module.sm_suffix = suffixed ? *rest : '\0';
  return true;
}

bool ModuleParser::parse_address_size() {
  context_.module.address_size_position = tokens_.current().position;
  tokens_.take();
  const Token at = tokens_.current();
  const std::optional<std::uint32_t> size = context_.expect_u32("32 or 64");
  if (!size) return false;
  if (*size != 32 && *size != 64) return context_.fail(at, "an address has 32 or 64 bits");
  context_.module.address_size = *size;
  return true;
}

// Parses `.file 1 "path" [, timestamp, size]`.
bool ModuleParser::parse_file() {
  tokens_.take();
  SourceFile file;
  const std::optional<std::uint32_t> number = context_.expect_u32("a file's number");
  if (!number) return false;
  file.number = *number;
  if (tokens_.current().kind != TokenKind::string) return context_.fail_expected("a file's name in quotes");
  const std::string_view path = tokens_.take().text;
  file.path = path.substr(1, path.size() - 2);
  while (tokens_.accept(',')) {
    if (tokens_.current().kind != TokenKind::integer) return context_.fail_expected("a number");
    file.rest += fmt::format("{}{}", file.rest.empty() ? "" : ", ", tokens_.take().text);
  }
  context_.module.files.push_back(std::move(file));
  return true;
}

// Debug information is kept unchanged.
bool ModuleParser::parse_section() {
  const Token start = tokens_.take();
  while (!tokens_.at_end() && !tokens_.current().is('{') && !tokens_.current().is(';')) tokens_.take();
  if (!tokens_.current().is('{')) return context_.fail_expected("'{'");
  const Token open = tokens_.current();
  std::string_view last;
  std::uint64_t depth = 0;
  do {
    if (tokens_.at_end()) return context_.fail(open, "this section has no end");
    if (tokens_.current().is('{')) ++depth;
    if (tokens_.current().is('}')) --depth;
    last = tokens_.take().text;
  } while (depth != 0);
  context_.module.sections.emplace_back(start.text.data(), last.data() + last.size());
  return true;
}

bool ModuleParser::parse_pragma() {
  tokens_.take();
  if (tokens_.current().kind != TokenKind::string) return context_.fail_expected("a string");
  const std::string_view text = tokens_.take().text;
  context_.module.pragmas.emplace_back(text.substr(1, text.size() - 2));
  return context_.expect(';');
}

bool ModuleParser::parse_alias() {
  tokens_.take();
  std::string names[2];
  for (std::size_t i = 0; i < 2; ++i) {
    if (i == 1 && !context_.expect(',')) return false;
    const std::optional<Token> name = context_.expect_identifier("a function's name");
    if (!name) return false;
    const std::optional<Entity> entity = context_.scopes.find(name->text);
    if (!entity || entity->is_register || entity->symbol.kind != SymbolKind::function) {
      return context_.fail(*name, fmt::format("'{}' is no function declared before", name->text), {}, kName);
    }
    names[i] = name->text;
  }
  context_.module.aliases.push_back({names[0], names[1]});
  return context_.expect(';');
}

bool ModuleParser::parse_variables(Space space, Linkage linkage) {
  const Token at = tokens_.current();
  if (space == Space::reg || space == Space::sreg || space == Space::param || space == Space::local) {
    return context_.fail(at, fmt::format("a module has no variables in the .{} space", name(space)));
  }
  std::optional<DeclarationHead> head = parse_declaration_head(context_, space);
  if (!head) return false;
  head->common.linkage = linkage;
  do {
    const Token name = tokens_.current();
    std::optional<Variable> variable =
        parse_declarator(context_, *head, space == Space::global || space == Space::const_);
    if (!variable || !enter_variable(name, std::move(*variable))) return false;
  } while (tokens_.accept(','));
  return context_.expect(';');
}

// A variable may be declared `.extern` and defined later, or the other way round; both declare the same
// variable.
bool ModuleParser::enter_variable(const Token& name, Variable variable) {
  std::vector<Variable>& variables = context_.module.variables;
  const std::optional<Entity> known = context_.scopes.find(name.text);
  if (variable.linkage != Linkage::extern_ && variable.element_count() == 0) {
    return context_.fail(name, fmt::format("the array '{}' has no size", name.text),
                         "give its extent, or declare it '.extern'");
  }
  if (!known) {
    context_.scopes.declare(
        name.text, {false, {SymbolKind::module_variable, static_cast<std::uint32_t>(variables.size())}});
    variables.push_back(std::move(variable));
    return true;
  }
  const bool is_variable = !known->is_register && known->symbol.kind == SymbolKind::module_variable;
  Variable* before = is_variable ? &variables[known->symbol.index] : nullptr;
  const bool matches = before != nullptr && before->space == variable.space &&
                       before->type == variable.type &&
                       (before->linkage == Linkage::extern_ || variable.linkage == Linkage::extern_);
  if (!matches) return context_.fail(name, fmt::format("'{}' is declared already", name.text), {}, kName);
  if (before->linkage == Linkage::extern_) *before = std::move(variable);
  return true;
}

}  // namespace

Expected<Module> parse(std::string_view text, std::string_view file_name, const Limits& limits) {
  return ModuleParser(text, file_name, limits).run();
}

}  // namespace quern::ptx
