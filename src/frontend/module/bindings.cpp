// SPDX-License-Identifier: Apache-2.0
#include "frontend/module/bindings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "frontend/module/decide.hpp"
#include "frontend/module/evaluate.hpp"

namespace quern::frontend {
namespace {

constexpr std::size_t kDeepestNames = 100;  // constants that depend on constants

constexpr std::string_view kEnumeration = "enum ";

}  // namespace

bool is_enumeration(const Value& value) {
  return value.kind == Value::Kind::module_ && value.text.starts_with(kEnumeration);
}

const Value& Bindings::global(std::string_view name) {
  if (const auto given = given_.find(name); given != given_.end()) return given->second;
  Binding* binding = file_.meant(name);
  if (binding == nullptr) return python_name(name);
  return certain(name, *binding);
}

Value Bindings::value_of(Binding& binding, std::string_view name) {
  if (binding.evaluating) return Value::computed("a name that depends on itself");
  if (file_.depth >= kDeepestNames) return Value::computed("a name behind too many others");
  binding.evaluating = true;
  ++file_.depth;
  const Time before = std::exchange(file_.now, binding.time);
  const Doubt* seen = doubts_.seen();
  doubts_.see(nullptr);
  Value value;
  switch (binding.kind) {
    case Binding::Kind::import:
      value = path_value(canonical(binding.path));
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
  if (value.kind == Value::Kind::host && value.doubt == nullptr) value.doubt = doubts_.seen();
  doubts_.see(seen);
  file_.now = before;
  --file_.depth;
  binding.evaluating = false;
  return value;
}

/// Handles N += 1 for immutable values. Mutable values are changed in place.
Value Bindings::augmented(const Binding& binding, std::string_view name) {
  for (const Stmt* line : file_.parser().parse_line(binding.token)) {
    if (line->kind != StmtKind::augmented || line->targets[0]->kind != ExprKind::name ||
        line->targets[0]->name != name)
      continue;
    const Value old = global(name);
    if (old.is_mutable()) return Value::computed();
    Expr sum;
    sum.kind = ExprKind::binary;
    sum.op = line->op;
    sum.items = {line->targets[0], line->value};
    return evaluator_.evaluate(sum);
  }
  return Value::computed();
}

/// The value that a line assigns to `name`: its whole right side, or a part of it if the target is a tuple.
Value Bindings::assigned(const Binding& binding, std::string_view name) {
  for (const Stmt* statement : file_.parser().parse_line(binding.token)) {
    if (statement->kind != StmtKind::assign) continue;
    for (const Expr* target : statement->targets) {
      if (target->kind == ExprKind::name && target->name == name)
        return evaluator_.evaluate(*statement->value);
      if (target->kind != ExprKind::tuple && target->kind != ExprKind::list) continue;
      for (std::size_t i = 0; i < target->items.size(); ++i) {
        if (target->items[i]->kind != ExprKind::name || target->items[i]->name != name) continue;
        const Value all = evaluator_.evaluate(*statement->value);
        if (all.kind == Value::Kind::tuple && all.items.size() == target->items.size()) return all.items[i];
      }
    }
  }
  return Value::computed();
}

Value Bindings::path_value(const std::string& path) {
  Value value;
  if (std::optional<Doubt> doubt = doubts_.changed_attribute(path))
    return doubts_.with_doubt(*std::move(doubt));
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
      value.type =
          file_.types.record({{"s0", file_.types.uint64, 0, {}}, {"s1", file_.types.uint64, 8, {}}}, 16);
      return value;
    }
  }
  if (module == "numba.cuda" || module == "numba.cuda.vector_types")
    if (const Type type = file_.types.vector_named(last)) {
      value.kind = Value::Kind::dtype;
      value.type = type;
      return value;
    }
  if (module == "numba" || module == "numba.types" || module == "numpy" || module == "numba.cuda" ||
      module == "numba.cuda.bf16")
    if (const Type type = file_.types.scalar_named(last)) {
      value.kind = Value::Kind::dtype;
      value.type = type;
      if (path == "numpy.byte") value.type = file_.types.int8;
      if (path == "numpy.float_") value.type = file_.types.float64;
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
Value Bindings::read_enumeration(const Binding& binding, std::string_view name) {
  const std::size_t end = file_.end_of_statement(binding.token);
  std::size_t at = binding.token + 2;
  bool is_enum = false;
  for (; at < end && file_.tokens[at].kind != Tok::newline && file_.tokens[at].kind != Tok::colon; ++at)
    is_enum = is_enum || (file_.tokens[at].kind == Tok::name && file_.text(at).ends_with("Enum")) ||
              file_.text(at) == "IntFlag";
  while (at < end && file_.tokens[at].kind != Tok::indent) ++at;
  if (!is_enum || at >= end) return Value::host("a class");
  std::map<std::string, Value, std::less<>> members;
  std::int64_t last = 0;
  for (++at; at < end && file_.tokens[at].kind != Tok::dedent;
       at = std::max(file_.end_of_statement(at), at + 1)) {
    if (file_.tokens[at].kind != Tok::name || file_.tokens[at + 1].kind != Tok::assign) continue;
    for (const Stmt* line : file_.parser().parse_line(at)) {
      if (line->kind != StmtKind::assign || line->targets[0]->kind != ExprKind::name) continue;
      const Expr& source = *line->value;
      const bool automatic = source.kind == ExprKind::call && source.items[0]->name == "auto";
      Value value = automatic ? Value::of(last + 1) : evaluator_.evaluate(source);
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

Value Bindings::member_of(const Value& enumeration, std::string_view name) const {
  const auto members = enumerations_.find(enumeration.text);
  if (members != enumerations_.end())
    if (const auto found = members->second.find(name); found != members->second.end()) return found->second;
  return Value::host("a member of a class");
}

Value Bindings::attribute(const Value& base, std::string_view name, Place place) {
  if (is_enumeration(base)) {
    Value member = member_of(base, name);
    if (member.kind != Value::Kind::host) return member;
    std::vector<std::string_view> members;
    for (const auto& [known, value] : enumerations_.find(base.text)->second) members.push_back(known);
    const std::string_view close_name = closest(name, members);
    file_.report.error(
        place, "unknown-name",
        fmt::format("'{}' has no member '{}' that is a number", base.text.substr(kEnumeration.size()), name),
        close_name.empty() ? "" : fmt::format("did you mean '{}'?", close_name));
    return member;
  }
  std::string path = fmt::format("{}.{}", base.text, name);
  const auto found = attributes_.find(path);
  if (found != attributes_.end() && found->second.kind != Value::Kind::host) return found->second;
  Value value = found != attributes_.end() ? found->second : path_value(canonical(path));
  attributes_.try_emplace(path, value);
  if (value.kind != Value::Kind::host) return value;
  if (value.doubt != nullptr) {
    doubts_.report(*value.doubt, path, place);
    return value;
  }
  path = canonical(path);
  const std::vector<std::string_view> known = names_in(base.text);
  const std::string_view near = closest(name, known);
  file_.report.error(place, "unknown-name", fmt::format("kernels have no '{}'", path),
                     near.empty() ? fmt::format("docs/language.md lists what {} offers to kernels", base.text)
                                  : fmt::format("did you mean '{}'?", near));
  return value;
}

const Value& Bindings::own_value(std::string_view name, Binding& binding) {
  if (!binding.known) {
    const std::size_t errors = file_.report.errors();
    binding.value = value_of(binding, name);
    binding.known = !binding.evaluating && !(file_.quiet && file_.report.errors() > errors);
  }
  return binding.value;
}

const Value& Bindings::probably(std::string_view name) {
  Binding* binding = file_.meant(name);
  if (binding != nullptr && binding->kind == Binding::Kind::uncertain)
    for (const Binding* choice : binding->choices)
      if (choice != nullptr && choice->kind == Binding::Kind::import)
        return own_value(name, const_cast<Binding&>(*choice));
  return binding == nullptr ? python_name(name) : own_value(name, *binding);
}

const Value& Bindings::certain(std::string_view name, Binding& binding) {
  own_value(name, binding);
  if (binding.value.doubt != nullptr) doubts_.see(binding.value.doubt);
  if (std::optional<Doubt> doubt = doubts_.about(name, &binding, &binding.value))
    return doubts_.doubted(name, *std::move(doubt));
  return binding.value;
}

/// Returns built-ins of Python: len, range.
const Value& Bindings::python_name(std::string_view name) {
  if (std::optional<Doubt> doubt = doubts_.about(name, nullptr, nullptr))
    return doubts_.doubted(name, *std::move(doubt));
  if (std::optional<Doubt> doubt = doubts_.changed_attribute(fmt::format("builtins.{}", name)))
    return doubts_.doubted(name, *std::move(doubt));
  if (const auto found = python_names_.find(name); found != python_names_.end()) return found->second;
  Value value;
  if (const Builtin* row = find_builtin(fmt::format("builtins.{}", name))) {
    value.kind = Value::Kind::builtin;
    value.builtin = row;
  } else if (name == "__name__") {
    value = Value::host("the name of the module", HostKind::module_name);
  }
  return python_names_.emplace(std::string(name), std::move(value)).first->second;
}

bool Bindings::report_doubt(std::string_view name, Place place) {
  const Value& value = global(name);
  if (value.doubt == nullptr) return false;
  doubts_.report(*value.doubt, name, place);
  return true;
}

}  // namespace quern::frontend
