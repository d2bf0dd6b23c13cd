// SPDX-License-Identifier: Apache-2.0
#include "frontend/builtins/builtins.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace quern::frontend {
namespace {

constexpr Builtin kBuiltins[] = {
#define QUERN_BUILTIN(path, rule, cuda, least, most, doc) {path, Rule::rule, cuda, least, most, doc},
#define QUERN_TYPED(path, forms, doc) {path, Rule::typed, forms, 0, 32, doc},
#include "frontend/builtins/builtins.def"
};

constexpr RuleFacts kFacts[] = {
#define QUERN_RULE(rule, syntax, arguments, keywords, infer, emit, range, fold, effects, debug) \
  {Syntax::syntax, Arguments::arguments, Keywords::keywords, Effects::effects, DebugCheck::debug},
#include "frontend/builtins/rules.def"
};

struct ModulePrefix {
  std::string_view prefix;
  BuiltinModule module;
};
constexpr ModulePrefix kModules[] = {
    {"builtins.", BuiltinModule::python}, {"operator.", BuiltinModule::operator_},
    {"math.", BuiltinModule::math},       {"cmath.", BuiltinModule::cmath},
    {"numpy.", BuiltinModule::numpy},     {"numba.", BuiltinModule::numba}};

struct Constant {
  std::string_view path;
  double value;
};
const Constant kConstants[] = {
#define QUERN_CONSTANT(path, value, doc) {path, value},
#include "frontend/builtins/builtins.def"
};

struct RealFunction {
  std::string_view in_double, in_single, in_half, complex;
};
constexpr RealFunction kRealFunctions[] = {
#define QUERN_REAL_FUNCTION(in_double, in_single, in_half, complex) {in_double, in_single, in_half, complex},
#include "frontend/builtins/real_functions.def"
};

constexpr const RealFunction* find_real_function(const Builtin& row) {
  for (const RealFunction& function : kRealFunctions)
    if (function.in_double == row.cuda) return &function;
  return nullptr;
}

/// The column `emit`, by rule. It is not inside the function, since clang counts each evaluation of the
/// texts.
constexpr std::string_view kEmit[] = {
#define QUERN_RULE(rule, syntax, arguments, keywords, infer, emit, range, fold, effects, debug) #emit,
#include "frontend/builtins/rules.def"
};

/// True if the rule emits a call of the row's function for the type in which it computes.
constexpr bool calls_real_function(Rule rule) {
  const std::string_view emit = kEmit[static_cast<std::size_t>(rule)];
  return emit == "real_call" || emit == "real_power" || emit == "logarithm";
}

static_assert(std::all_of(std::begin(kBuiltins), std::end(kBuiltins),
                          [](const Builtin& row) {
                            return !calls_real_function(row.rule) || find_real_function(row) != nullptr;
                          }),
              "a row of builtins.def names a function that real_functions.def does not have");

// These modules also contain the types that types.cpp defines.
constexpr std::string_view kTypeModules[] = {"numba", "numba.types", "numba.core.types", "numpy",
                                             "numba.cuda"};

bool is_below(std::string_view path, std::string_view module) {
  return path.size() > module.size() && path.starts_with(module) && path[module.size()] == '.';
}

template <class Visit>
void for_each_path(Visit visit) {
  for (const Builtin& row : kBuiltins) visit(row.path);
  for (const Constant& row : kConstants) visit(row.path);
  for (const std::string_view module : kTypeModules) visit(module);
}

}  // namespace

std::string_view Builtin::shown() const {
  for (const std::string_view prefix : {std::string_view("builtins."), std::string_view("numba.")})
    if (path.starts_with(prefix)) return path.substr(prefix.size());
  return path;
}

const RuleFacts& facts_of(Rule rule) { return kFacts[static_cast<std::size_t>(rule)]; }

BuiltinModule Builtin::module() const {
  for (const ModulePrefix& row : kModules)
    if (path.starts_with(row.prefix)) return row.module;
  return BuiltinModule::other;
}

const Builtin* find_builtin(std::string_view path) {
  static const std::unordered_map<std::string_view, const Builtin*> index = [] {
    std::unordered_map<std::string_view, const Builtin*> rows;
    for (const Builtin& row : kBuiltins) rows.emplace(row.path, &row);
    return rows;
  }();
  const auto found = index.find(path);
  return found == index.end() ? nullptr : found->second;
}

std::string_view single_function(const Builtin& row) { return find_real_function(row)->in_single; }

std::string_view complex_function(const Builtin& row) {
  const RealFunction* found = row.module() == BuiltinModule::numpy ? find_real_function(row) : nullptr;
  return found != nullptr ? found->complex : std::string_view();
}

std::string_view half_function(const Builtin& row) {
  const RealFunction* found = row.module() == BuiltinModule::math ? find_real_function(row) : nullptr;
  return found != nullptr ? found->in_half : std::string_view();
}

std::optional<double> find_constant(std::string_view path) {
  static const std::unordered_map<std::string_view, double> index = [] {
    std::unordered_map<std::string_view, double> values;
    for (const Constant& row : kConstants) values.emplace(row.path, row.value);
    return values;
  }();
  const auto found = index.find(path);
  return found == index.end() ? std::nullopt : std::optional(found->second);
}

bool is_module(std::string_view path) {
  static const std::unordered_set<std::string_view> modules = [] {
    std::unordered_set<std::string_view> found;
    const auto add_parents = [&](std::string_view inner) {
      for (std::size_t dot = inner.rfind('.'); dot != std::string_view::npos; dot = inner.rfind('.'))
        found.insert(inner = inner.substr(0, dot));
    };
    for (const Builtin& row : kBuiltins) add_parents(row.path);
    for (const Constant& row : kConstants) add_parents(row.path);
    for (const std::string_view module : kTypeModules) {
      found.insert(module);
      add_parents(module);
    }
    return found;
  }();
  return modules.contains(path) && find_builtin(path) == nullptr && !find_constant(path);
}

std::vector<std::string_view> names_in(std::string_view path) {
  std::vector<std::string_view> names;
  for_each_path([&](std::string_view other) {
    if (!is_below(other, path)) return;
    std::string_view name = other.substr(path.size() + 1);
    name = name.substr(0, name.find('.'));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  });
  return names;
}

}  // namespace quern::frontend
