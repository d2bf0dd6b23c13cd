// SPDX-License-Identifier: Apache-2.0
#include "frontend/names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/lexer.hpp"
#include "frontend/parser.hpp"

namespace quern::frontend {
namespace {

// Where modules live that Python code reaches under several paths.
struct Alias {
  std::string_view from;
  std::string_view to;
};
constexpr Alias kAliases[] = {{"numba_cuda.numba.cuda", "numba.cuda"},
                              {"numba.core.types", "numba.types"},
                              {"numba.cuda.types", "numba.types"}};

constexpr std::size_t kDeepestNames = 100;  // constants that are computed from constants

bool opens_block(Tok kind) {
  constexpr Tok kAll[] = {Tok::k_if,      Tok::k_elif, Tok::k_else, Tok::k_try,  Tok::k_except,
                          Tok::k_finally, Tok::k_with, Tok::k_for,  Tok::k_while};
  return std::find(std::begin(kAll), std::end(kAll), kind) != std::end(kAll);
}

constexpr std::string_view kEnumeration = "enum ";

}  // namespace

std::string canonical(std::string path) {
  for (const Alias& alias : kAliases)
    if (path == alias.from || (path.starts_with(alias.from) && path[alias.from.size()] == '.'))
      return std::string(alias.to) + path.substr(alias.from.size());
  return path;
}

bool is_enumeration(const Value& value) {
  return value.kind == Value::Kind::module_ && value.text.starts_with(kEnumeration);
}

Names::Names(const SourceText& source, TypeTable& types, Report& report,
             std::span<const abi::Constant> constants)
    : source_(source), types_(types), report_(report), tokens_(read_tokens(source, report)) {
  scan(0, tokens_.size() - 1, false);
  bind_constants(constants);
  for (Declaration& declaration : declarations_) read_decorators(declaration);
  for (auto& [name, binding] : bindings_) read_application(name, binding);
}

/// Behind the statement's line, and behind its block if one follows.
std::size_t Names::end_of_statement(std::size_t at) const {
  while (tokens_[at].kind != Tok::newline && tokens_[at].kind != Tok::end && tokens_[at].kind != Tok::dedent)
    ++at;
  if (tokens_[at].kind == Tok::newline) ++at;
  if (tokens_[at].kind != Tok::indent) return at;
  std::size_t depth = 0;
  do {
    if (tokens_[at].kind == Tok::indent) ++depth;
    if (tokens_[at].kind == Tok::dedent) --depth;
    if (tokens_[at].kind == Tok::end) return at;
    ++at;
  } while (depth > 0);
  return at;
}

/// `nested`: inside a block of the file's level, where imports and functions count and constants do not:
/// whether the block runs is not known.
void Names::scan(std::size_t at, std::size_t end, bool nested) {
  std::vector<std::size_t> decorators;
  while (at < end && tokens_[at].kind != Tok::end) {
    const Tok kind = tokens_[at].kind;
    const std::size_t next = std::max(end_of_statement(at), at + 1);
    if (kind == Tok::at) {
      decorators.push_back(at + 1);
      at = next;
      continue;
    }
    if (kind == Tok::k_def) {
      scan_function(at, decorators);
    } else if (kind == Tok::k_import) {
      scan_import(at, next);
    } else if (kind == Tok::k_from) {
      scan_from(at, next);
    } else if (kind == Tok::k_class && tokens_[at + 1].kind == Tok::name) {
      Binding binding;
      binding.kind = Binding::Kind::host_class;
      binding.place = tokens_[at + 1].place;
      binding.token = at;
      bind(text(at + 1), std::move(binding));
    } else if (opens_block(kind)) {
      std::size_t inner = at;
      while (inner < next && tokens_[inner].kind != Tok::newline) ++inner;
      if (inner + 1 < next && tokens_[inner + 1].kind == Tok::indent) scan(inner + 2, next, true);
    } else {
      scan_assignment(at, next, nested);
    }
    decorators.clear();
    at = next;
  }
}

void Names::bind(std::string_view name, Binding binding) {
  bindings_.insert_or_assign(std::string(name), std::move(binding));
}

std::string Names::dotted(std::size_t& at) const {
  std::string path;
  while (tokens_[at].kind == Tok::name || tokens_[at].kind == Tok::dot || tokens_[at].kind == Tok::ellipsis) {
    path += text(at);
    ++at;
  }
  return path;
}

/// import a.b, c as d
void Names::scan_import(std::size_t at, std::size_t end) {
  while (++at < end) {
    Binding binding;
    binding.kind = Binding::Kind::import;
    binding.place = tokens_[at].place;
    const std::string path = dotted(at);
    if (path.empty()) return;
    binding.path = path;
    std::string name = path.substr(0, path.find('.'));
    if (tokens_[at].kind == Tok::k_as && tokens_[at + 1].kind == Tok::name) {
      name = text(at + 1);
      at += 2;
    } else {
      binding.path = name;
    }
    bind(name, std::move(binding));
    if (tokens_[at].kind != Tok::comma) return;
  }
}

/// What `from module import *` binds, as far as kernels see it.
std::vector<std::string_view> Names::all_in(std::string_view module) const {
  std::vector<std::string_view> names = names_in(module);
  if (module == "numba" || module == "numba.types" || module == "numpy")
    for (const std::string_view type : types_.scalar_names()) names.push_back(type);
  if (module == "numba.cuda.random") names.insert(names.end(), {"xoroshiro128p_dtype", "xoroshiro128p_type"});
  return names;
}

/// from a.b import c, d as e
void Names::scan_from(std::size_t at, std::size_t end) {
  ++at;
  const std::string module = dotted(at);
  if (tokens_[at].kind != Tok::k_import) return;
  for (++at; at < end; ++at) {
    if (tokens_[at].kind != Tok::name) {
      if (tokens_[at].kind == Tok::times)
        for (const std::string_view name : all_in(canonical(module))) {
          Binding binding;
          binding.kind = Binding::Kind::import;
          binding.place = tokens_[at].place;
          binding.path = fmt::format("{}.{}", module, name);
          bind(name, std::move(binding));
        }
      continue;
    }
    Binding binding;
    binding.kind = Binding::Kind::import;
    binding.place = tokens_[at].place;
    binding.path = fmt::format("{}.{}", module, text(at));
    std::string_view name = text(at);
    if (tokens_[at + 1].kind == Tok::k_as && tokens_[at + 2].kind == Tok::name) {
      name = text(at + 2);
      at += 2;
    }
    bind(name, std::move(binding));
  }
}

/// Names before the last '=' of a line that are bound by it; the value is read when it is needed.
void Names::scan_assignment(std::size_t at, std::size_t end, bool nested) {
  std::vector<std::size_t> names;
  std::size_t depth = 0, value = 0;
  bool changes = false;
  for (std::size_t i = at; i < end && tokens_[i].kind != Tok::newline; ++i) {
    const Tok kind = tokens_[i].kind;
    if (kind == Tok::open_round || kind == Tok::open_square || kind == Tok::open_curly) ++depth;
    if (kind == Tok::close_round || kind == Tok::close_square || kind == Tok::close_curly) --depth;
    if (depth != 0) continue;
    if (kind == Tok::semicolon) {
      scan_assignment(i + 1, end, nested);
      end = i;
    } else if (kind == Tok::assign) {
      value = i;
    } else if (kind >= Tok::plus_assign && kind <= Tok::at_assign) {
      changes = true;
      value = i;
    }
  }
  if (value == 0) return;
  for (std::size_t i = at; i < value; ++i) {
    if (tokens_[i].kind == Tok::colon) break;  // an annotation
    if (tokens_[i].kind != Tok::name) continue;
    const Tok before = i > at ? tokens_[i - 1].kind : Tok::comma, after = tokens_[i + 1].kind;
    if (before == Tok::dot || after == Tok::dot || after == Tok::open_square || after == Tok::open_round)
      continue;
    Binding binding;
    binding.kind = nested    ? Binding::Kind::in_block
                   : changes ? Binding::Kind::changed
                             : Binding::Kind::assignment;
    binding.place = tokens_[i].place;
    binding.token = at;
    // What the file's level itself says of the name stands.
    if (nested && bindings_.contains(text(i))) continue;
    bind(text(i), std::move(binding));
  }
}

std::size_t Names::scan_function(std::size_t at, std::vector<std::size_t> decorators) {
  if (tokens_[at + 1].kind != Tok::name) return at;
  Declaration& declaration = declarations_.emplace_back();
  declaration.name = text(at + 1);
  declaration.place = tokens_[at + 1].place;
  declaration.token = at;
  declaration.decorators = std::move(decorators);
  Binding binding;
  binding.kind = Binding::Kind::function;
  binding.place = declaration.place;
  binding.declaration = &declaration;
  bind(declaration.name, std::move(binding));
  return at;
}

Declaration* Names::find(std::string_view name) {
  const auto found = bindings_.find(name);
  return found == bindings_.end() ? nullptr : found->second.declaration;
}

Function* Names::body_of(Declaration& declaration) {
  if (declaration.function == nullptr) {
    const std::size_t before = report_.diagnostics().size();
    declaration.function = Parser(tokens_, source_, arena_, report_).parse_function(declaration.token);
    if (report_.diagnostics().size() > before) declaration.broken = true;
  }
  return declaration.function;
}

const Value& Names::global(std::string_view name) {
  if (const auto found = bindings_.find(name); found != bindings_.end()) {
    Binding& binding = found->second;
    if (!binding.known) {
      binding.value = value_of(binding, name);
      binding.known = !binding.evaluating;
    }
    return binding.value;
  }
  if (const auto found = python_names_.find(name); found != python_names_.end()) return found->second;
  Value value;
  if (const Builtin* row = find_builtin(fmt::format("builtins.{}", name))) {
    value.kind = Value::Kind::builtin;
    value.builtin = row;
  }
  return python_names_.emplace(std::string(name), std::move(value)).first->second;
}

Place Names::place_of(std::string_view name) const {
  const auto found = bindings_.find(name);
  return found == bindings_.end() ? Place{} : found->second.place;
}

std::vector<std::string_view> Names::all_names() const {
  std::vector<std::string_view> names = names_in("builtins");
  for (const auto& [name, binding] : bindings_) names.push_back(name);
  return names;
}

Value Names::value_of(Binding& binding, std::string_view name) {
  if (binding.evaluating) return Value::host("a name that depends on itself");
  if (depth_ >= kDeepestNames) return Value::host("a name behind too many others");
  binding.evaluating = true;
  ++depth_;
  Value value;
  switch (binding.kind) {
    case Binding::Kind::import:
      value = evaluate_path(canonical(binding.path));
      break;
    case Binding::Kind::function:
      value.kind = Value::Kind::function;
      value.function = binding.declaration;
      break;
    case Binding::Kind::host_class:
      value = read_enumeration(binding, name);
      break;
    case Binding::Kind::changed:
      value = Value::host("a variable that the host program changes");
      break;
    case Binding::Kind::in_block:
      value = Value::host("a name that a block of the file binds");
      break;
    case Binding::Kind::assignment:
      value = assigned(binding, name);
      break;
  }
  --depth_;
  binding.evaluating = false;
  return value;
}

/// The value that a line gives to `name`: of its whole right side, or of the part that a tuple assigns.
Value Names::assigned(const Binding& binding, std::string_view name) {
  for (const Stmt* statement : Parser(tokens_, source_, arena_, report_).parse_line(binding.token)) {
    if (statement->kind != StmtKind::assign) continue;
    for (const Expr* target : statement->targets) {
      if (target->kind == ExprKind::name && target->name == name) return evaluate(*statement->value);
      if (target->kind != ExprKind::tuple && target->kind != ExprKind::list) continue;
      for (std::size_t i = 0; i < target->items.size(); ++i) {
        if (target->items[i]->kind != ExprKind::name || target->items[i]->name != name) continue;
        const Value all = evaluate(*statement->value);
        if (all.kind == Value::Kind::tuple && all.items.size() == target->items.size()) return all.items[i];
      }
    }
  }
  return Value::host(kPythonsOwn);
}

Value Names::evaluate_path(const std::string& path) {
  Value value;
  if (const Builtin* row = find_builtin(path)) {
    value.kind = Value::Kind::builtin;
    value.builtin = row;
    return value;
  }
  if (const std::optional<double> number = find_constant(path)) return Value::of(*number);
  const std::size_t dot = path.rfind('.');
  const std::string_view module = std::string_view(path).substr(0, dot == std::string::npos ? 0 : dot);
  const std::string_view last = std::string_view(path).substr(dot + 1);
  if (path.starts_with("numba.cuda.random.xoroshiro128p_")) {
    if (last == "xoroshiro128p_dtype" || last == "xoroshiro128p_type") {
      value.kind = Value::Kind::dtype;
      value.type = types_.record({{"s0", types_.uint64, 0, {}}, {"s1", types_.uint64, 8, {}}}, 16);
      return value;
    }
  }
  if (module == "numba.cuda" || module == "numba.cuda.vector_types")
    if (const Type type = types_.vector_named(last)) {
      value.kind = Value::Kind::dtype;
      value.type = type;
      return value;
    }
  if (module == "numba" || module == "numba.types" || module == "numpy" || module == "numba.cuda" ||
      module == "numba.cuda.bf16")
    if (const Type type = types_.scalar_named(last)) {
      value.kind = Value::Kind::dtype;
      value.type = type;
      if (path == "numpy.byte") value.type = types_.int8;
      if (path == "numpy.float_") value.type = types_.float64;
      return value;
    }
  if (is_module(path) || path == "numba") {
    value.kind = Value::Kind::module_;
    value.text = path;
    return value;
  }
  value = Value::host(path);
  return value;
}

/// class Colour(IntEnum): RED = 1
Value Names::read_enumeration(const Binding& binding, std::string_view name) {
  const std::size_t end = end_of_statement(binding.token);
  std::size_t at = binding.token + 2;
  bool is_enum = false;
  for (; at < end && tokens_[at].kind != Tok::newline && tokens_[at].kind != Tok::colon; ++at)
    is_enum =
        is_enum || (tokens_[at].kind == Tok::name && text(at).ends_with("Enum")) || text(at) == "IntFlag";
  while (at < end && tokens_[at].kind != Tok::indent) ++at;
  if (!is_enum || at >= end) return Value::host("a class");
  std::map<std::string, Value, std::less<>> members;
  std::int64_t last = 0;
  for (++at; at < end && tokens_[at].kind != Tok::dedent; at = std::max(end_of_statement(at), at + 1)) {
    if (tokens_[at].kind != Tok::name || tokens_[at + 1].kind != Tok::assign) continue;
    for (const Stmt* line : Parser(tokens_, source_, arena_, report_).parse_line(at)) {
      if (line->kind != StmtKind::assign || line->targets[0]->kind != ExprKind::name) continue;
      const Expr& source = *line->value;
      const bool automatic = source.kind == ExprKind::call && source.items[0]->name == "auto";
      Value value = automatic ? Value::of(last + 1) : evaluate(source);
      if (!value.is_number()) continue;
      last = value.integer;
      value.text = fmt::format("{}.{}", name, line->targets[0]->name);
      members.insert_or_assign(std::string(line->targets[0]->name), std::move(value));
    }
  }
  Value value;
  value.kind = Value::Kind::module_;
  value.text = fmt::format("{}{}", kEnumeration, name);
  enumerations_.insert_or_assign(value.text, std::move(members));
  return value;
}

Value Names::member_of(const Value& enumeration, std::string_view name) const {
  const auto members = enumerations_.find(enumeration.text);
  if (members != enumerations_.end())
    if (const auto found = members->second.find(name); found != members->second.end()) return found->second;
  return Value::host("a member of a class");
}

Value Names::attribute(const Value& base, std::string_view name, Place place) {
  if (is_enumeration(base)) {
    Value member = member_of(base, name);
    if (member.kind != Value::Kind::host) return member;
    std::vector<std::string_view> members;
    for (const auto& [known, value] : enumerations_.find(base.text)->second) members.push_back(known);
    const std::string_view close_name = closest(name, members);
    report_.error(
        place, "unknown-name",
        fmt::format("'{}' has no member '{}' that is a number", base.text.substr(kEnumeration.size()), name),
        close_name.empty() ? "" : fmt::format("did you mean '{}'?", close_name));
    return member;
  }
  std::string path = fmt::format("{}.{}", base.text, name);
  const auto found = attributes_.find(path);
  if (found != attributes_.end() && found->second.kind != Value::Kind::host) return found->second;
  Value value = found != attributes_.end() ? found->second : evaluate_path(canonical(path));
  attributes_.try_emplace(path, value);
  if (value.kind != Value::Kind::host) return value;
  path = canonical(path);
  const std::vector<std::string_view> known = names_in(base.text);
  const std::string_view near = closest(name, known);
  report_.error(place, "unknown-name", fmt::format("kernels have no '{}'", path),
                near.empty() ? fmt::format("docs/language.md lists what {} offers to kernels", base.text)
                             : fmt::format("did you mean '{}'?", near));
  return value;
}

}  // namespace quern::frontend
