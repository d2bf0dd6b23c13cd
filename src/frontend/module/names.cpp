// SPDX-License-Identifier: Apache-2.0
#include "frontend/module/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "frontend/module/decide.hpp"
#include "frontend/module/toplevel.hpp"
#include "frontend/syntax/lexer.hpp"
#include "frontend/syntax/parser.hpp"

namespace quern::frontend {
namespace {

// Maps alternative import paths of a module to its own path.
struct Alias {
  std::string_view from;
  std::string_view to;
};
constexpr Alias kAliases[] = {{"numba_cuda.numba.cuda", "numba.cuda"},
                              {"numba.core.types", "numba.types"},
                              {"numba.cuda.types", "numba.types"}};

constexpr std::size_t kDeepestNames = 100;  // constants that are computed from constants

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
  TopLevel(*this).run();
  bind_constants(constants);
  for (Declaration& declaration : declarations_) read_decorators(declaration);
  for (const auto& [name, history] : timeline_.names())
    for (const Timeline::Entry& entry : history)
      if (entry.binding != nullptr) read_application(name, *entry.binding);
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

std::string Names::dotted(std::size_t& at) const {
  std::string path;
  while (tokens_[at].kind == Tok::name || tokens_[at].kind == Tok::dot || tokens_[at].kind == Tok::ellipsis) {
    path += text(at);
    ++at;
  }
  return path;
}

/// The names that `from module import *` binds, as far as kernels use them.
std::vector<std::string_view> Names::all_in(std::string_view module) const {
  std::vector<std::string_view> names = names_in(module);
  if (module == "numba" || module == "numba.types" || module == "numpy")
    for (const std::string_view type : types_.scalar_names()) names.push_back(type);
  if (module == "numba.cuda.random") names.insert(names.end(), {"xoroshiro128p_dtype", "xoroshiro128p_type"});
  return names;
}

Binding* Names::meant(std::string_view name) const {
  Binding* binding = timeline_.find(name, now_);
  return binding != nullptr && binding->kind != Binding::Kind::deleted ? binding : nullptr;
}

Declaration* Names::find(std::string_view name) {
  const Binding* binding = meant(name);
  if (binding != nullptr && binding->kind == Binding::Kind::uncertain)
    for (const Binding* choice : binding->choices)
      if (choice != nullptr && choice->declaration != nullptr) return choice->declaration;
  return binding == nullptr ? nullptr : binding->declaration;
}

Function* Names::body_of(Declaration& declaration) {
  if (declaration.function == nullptr) {
    const std::size_t before = report_.diagnostics().size();
    declaration.function = Parser(tokens_, source_, arena_, report_).parse_function(declaration.token);
    if (report_.diagnostics().size() > before) declaration.broken = true;
  }
  return declaration.function;
}

void Names::compile_as_of(const Declaration& kernel) {
  now_ = kernel.signatures.empty() ? kImported : kernel.time;
}

Value Names::default_value(const Declaration& declaration, const Expr& expr) {
  if (declaration.time == 0) return evaluate(expr);  // of a function inside another
  const Time before = std::exchange(now_, std::min(declaration.time, now_));
  Value value = evaluate(expr);
  now_ = before;
  return value;
}

const Value& Names::global(std::string_view name) {
  if (const auto given = constants_.find(name); given != constants_.end()) return given->second;
  Binding* binding = meant(name);
  if (binding == nullptr) return python_name(name);
  return certain(name, *binding);
}

Place Names::place_of(std::string_view name) const {
  const Binding* binding = meant(name);
  return binding == nullptr ? Place{} : binding->place;
}

std::vector<std::string_view> Names::all_names() const {
  std::vector<std::string_view> names = names_in("builtins");
  for (const auto& [name, history] : timeline_.names()) names.push_back(name);
  return names;
}

Value Names::value_of(Binding& binding, std::string_view name) {
  if (binding.evaluating) return Value::computed("a name that depends on itself");
  if (depth_ >= kDeepestNames) return Value::computed("a name behind too many others");
  binding.evaluating = true;
  ++depth_;
  const Time before = std::exchange(now_, binding.time);
  const Doubt* seen = std::exchange(doubt_seen_, nullptr);
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
    case Binding::Kind::augmented:
      value = augmented(binding, name);
      break;
    case Binding::Kind::host:
    case Binding::Kind::uncertain:
    case Binding::Kind::deleted:
      value = Value::computed();
      break;
    case Binding::Kind::assignment:
      value = assigned(binding, name);
      break;
  }
  if (value.kind == Value::Kind::host && value.doubt == nullptr) value.doubt = doubt_seen_;
  doubt_seen_ = seen;
  now_ = before;
  --depth_;
  binding.evaluating = false;
  return value;
}

/// N += 1 for immutable values; mutable values are changed in place.
Value Names::augmented(const Binding& binding, std::string_view name) {
  for (const Stmt* line : Parser(tokens_, source_, arena_, report_).parse_line(binding.token)) {
    if (line->kind != StmtKind::augmented || line->targets[0]->kind != ExprKind::name ||
        line->targets[0]->name != name)
      continue;
    const Value old = global(name);
    if (old.is_mutable()) return Value::computed();
    Expr sum;
    sum.kind = ExprKind::binary;
    sum.op = line->op;
    sum.items = {line->targets[0], line->value};
    return evaluate_binary(sum);
  }
  return Value::computed();
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
  return Value::computed();
}

Value Names::evaluate_path(const std::string& path) {
  Value value;
  if (std::optional<Doubt> doubt = changed_attribute(path)) return with_doubt(*std::move(doubt));
  if (std::optional<Value> known = known_attribute(path)) return *std::move(known);
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
  return Value::imported(path);
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
  if (value.doubt != nullptr) {
    report_doubt(*value.doubt, path, place);
    return value;
  }
  path = canonical(path);
  const std::vector<std::string_view> known = names_in(base.text);
  const std::string_view near = closest(name, known);
  report_.error(place, "unknown-name", fmt::format("kernels have no '{}'", path),
                near.empty() ? fmt::format("docs/language.md lists what {} offers to kernels", base.text)
                             : fmt::format("did you mean '{}'?", near));
  return value;
}

}  // namespace quern::frontend
