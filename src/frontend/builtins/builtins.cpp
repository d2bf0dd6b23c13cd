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
#define QUERN_RULE(rule, stands, arguments, keywords, infer, emit, range, fold, effects, fails) \
  {Stands::stands, Arguments::arguments, Keywords::keywords, Effects::effects, Fails::fails},
#include "frontend/builtins/rules.def"
};

struct HomeRow {
  std::string_view prefix;
  Home home;
};
constexpr HomeRow kHomes[] = {{"builtins.", Home::python}, {"operator.", Home::operator_},
                              {"math.", Home::math},       {"cmath.", Home::cmath},
                              {"numpy.", Home::numpy},     {"numba.", Home::numba}};

struct Constant {
  std::string_view path;
  double value;
};
const Constant kConstants[] = {
#define QUERN_CONSTANT(path, value, doc) {path, value},
#include "frontend/builtins/builtins.def"
};

struct Other {
  std::string_view cuda;  // of the row for real numbers
  std::string_view name;
};
constexpr Other kComplex[] = {
    {"sqrt", "quern::cmath::sqrt"},   {"exp", "quern::cmath::exp"},     {"log", "quern::cmath::log"},
    {"log10", "quern::cmath::log10"}, {"sin", "quern::cmath::sin"},     {"cos", "quern::cmath::cos"},
    {"tan", "quern::cmath::tan"},     {"asin", "quern::cmath::asin"},   {"acos", "quern::cmath::acos"},
    {"atan", "quern::cmath::atan"},   {"sinh", "quern::cmath::sinh"},   {"cosh", "quern::cmath::cosh"},
    {"tanh", "quern::cmath::tanh"},   {"asinh", "quern::cmath::asinh"}, {"acosh", "quern::cmath::acosh"},
    {"atanh", "quern::cmath::atanh"},
};
constexpr Other kHalf[] = {
    {"sin", "hsin"},     {"cos", "hcos"},   {"ceil", "hceil"},  {"floor", "hfloor"},
    {"sqrt", "hsqrt"},   {"log", "hlog"},   {"log2", "hlog2"},  {"exp", "hexp"},
    {"log10", "hlog10"}, {"exp2", "hexp2"}, {"fabs", "__habs"}, {"trunc", "htrunc"},
};

// Types, which types.cpp names, live in these as well.
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

Home Builtin::home() const {
  for (const HomeRow& row : kHomes)
    if (path.starts_with(row.prefix)) return row.home;
  return Home::other;
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

std::string_view complex_function(const Builtin& row) {
  if (row.home() != Home::numpy) return {};
  for (const Other& other : kComplex)
    if (other.cuda == row.cuda) return other.name;
  return {};
}

std::string_view half_function(const Builtin& row) {
  if (row.home() != Home::math) return {};
  for (const Other& other : kHalf)
    if (other.cuda == row.cuda) return other.name;
  return {};
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
