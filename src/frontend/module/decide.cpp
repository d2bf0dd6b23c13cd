// SPDX-License-Identifier: Apache-2.0
#include "frontend/module/decide.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "frontend/module/toplevel.hpp"
#include "frontend/syntax/parser.hpp"

namespace quern::frontend {
namespace {

using Kind = Value::Kind;

constexpr std::string_view kPythonNames[] = {
#define QUERN_PYTHON_NAME(name) name,
#include "frontend/module/known_names.def"
};
constexpr std::string_view kStandardModules[] = {
#define QUERN_STANDARD_MODULE(name) name,
#include "frontend/module/known_names.def"
};

/// The module versions that Kernel Python implements. Files that query a version get these.
struct KnownVersion {
  std::string_view path;
  std::string_view text;
};
constexpr KnownVersion kVersions[] = {
    {"numba.__version__", "0.63.1"},
    {"numpy.__version__", "2.3.5"},
    {"numpy.version.version", "2.3.5"},
    {"numpy.version.short_version", "2.3.5"},
};
constexpr std::string_view kVersionMakers[] = {
    "packaging.version.Version",      "packaging.version.parse",         "packaging.version.LegacyVersion",
    "distutils.version.LooseVersion", "distutils.version.StrictVersion", "looseversion.LooseVersion",
    "pkg_resources.parse_version",    "numpy.lib.NumpyVersion",          "numpy.lib._version.NumpyVersion",
};
/// Host programs import these names from modules that kernels use too.
constexpr std::string_view kHostNames[] = {
    "numba.jit",
    "numba.njit",
    "numba.vectorize",
    "numba.guvectorize",
    "numba.config",
    "numba.typeof",
    "numba.errors",
    "numba.core.errors",
    "numba.cuda.jit",
    "numba.cuda.to_device",
    "numba.cuda.is_available",
    "numba.cuda.device_array",
    "numba.cuda.device_array_like",
    "numba.cuda.synchronize",
    "numba.cuda.pinned_array",
    "numba.cuda.mapped_array",
    "numba.cuda.stream",
    "numba.cuda.declare_device",
    "numba.core.config",
    "typing.TYPE_CHECKING",
    "typing.Any",
    "typing.List",
    "typing.Tuple",
    "typing.Optional",
    "typing.Union",
    "enum.Enum",
    "enum.IntEnum",
    "enum.IntFlag",
    "enum.auto",
    "collections.namedtuple",
    "dataclasses.dataclass",
    "functools.wraps",
    "functools.partial",
    "functools.reduce",
    "pathlib.Path",
    "numpy.testing",
    "numpy.random",
    "numpy.linalg",
};
/// Names of Python that `from numpy import *` may replace, depending on NumPy's version.
constexpr std::string_view kNumpyOverPython[] = {"abs",    "all",   "any",   "bool", "complex",
                                                 "divmod", "float", "int",   "max",  "min",
                                                 "object", "pow",   "round", "str",  "sum"};

template <class Range, class Item>
bool holds(const Range& range, const Item& item) {
  return std::find(std::begin(range), std::end(range), item) != std::end(range);
}

template <class T>
bool compare_by(Tok op, const T& a, const T& b) {
  switch (op) {
    case Tok::equal:
      return a == b;
    case Tok::not_equal:
      return a != b;
    case Tok::less:
      return a < b;
    case Tok::less_equal:
      return a <= b;
    case Tok::greater:
      return a > b;
    default:
      return a >= b;
  }
}

bool is_version(const Value& value) { return value.kind == Kind::tuple && value.version; }

/// Returns -1, 0 or 1; nothing if the order is not known.
std::optional<int> order(const Value& a, const Value& b) {
  if (a.kind == Kind::string && b.kind == Kind::string) return a.text < b.text ? -1 : a.text > b.text ? 1 : 0;
  if (a.kind == Kind::tuple && b.kind == Kind::tuple) {
    if (a.list != b.list || a.version != b.version || a.text != b.text) return std::nullopt;
    for (std::size_t i = 0; i < std::min(a.items.size(), b.items.size()); ++i) {
      const std::optional<int> first = order(a.items[i], b.items[i]);
      if (first != 0) return first;
    }
    return a.items.size() < b.items.size() ? -1 : a.items.size() > b.items.size() ? 1 : 0;
  }
  const Value less = fold(Tok::less, a, b), equal = fold(Tok::equal, a, b);
  if (less.kind != Kind::boolean || equal.kind != Kind::boolean) return std::nullopt;
  if (!equal.is_zero()) return 0;
  if (!less.is_zero()) return -1;
  return fold(Tok::greater, a, b).is_zero() ? std::nullopt : std::optional(1);
}

}  // namespace

bool is_python_name(std::string_view name) { return holds(kPythonNames, name); }

bool is_known_module(std::string_view path) {
  const std::string full = canonical(std::string(path));
  return full == "numba" || full == "numba.cuda" || full == "numba.roc" || full == "numba.core" ||
         is_module(full) || holds(kStandardModules, full) || full == "numpy.testing" ||
         full == "numpy.random";
}

bool may_export(std::string_view module, std::string_view name, bool python, bool import) {
  if (module == "math" || module == "cmath" || module == "operator" || module == "enum") {
    // All names of these modules are known. Some names of operator are also names of Python itself.
    return module == "operator" && python && (name == "abs" || name == "pow");
  }
  if (module == "numpy") return python ? holds(kNumpyOverPython, name) : !import;
  if (module == "numba" || module.starts_with("numba.")) return !python && !import;
  return name != "__name__";
}

std::optional<Value> known_attribute(std::string_view path) {
  if (path == "typing.TYPE_CHECKING" || path == "typing_extensions.TYPE_CHECKING")
    return Value::boolean(false);
  for (const KnownVersion& row : kVersions)
    if (row.path == path) {
      Value value;
      value.kind = Kind::string;
      value.text = row.text;
      return value;
    }
  return std::nullopt;
}

bool makes_version(std::string_view path) { return holds(kVersionMakers, path); }

/// Reads the version's numbers without trailing zeros. A suffix, as in "0.54.0rc1", becomes the text.
Value version_of(std::string_view text) {
  Value version;
  version.kind = Kind::tuple;
  version.version = true;
  const char* at = text.data();
  const char* end = at + text.size();
  for (bool more = true; more;) {
    std::int64_t number = 0;
    const auto [behind, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) return {};
    version.items.push_back(Value::of(number));
    at = behind;
    more = at < end && *at == '.' && at + 1 < end && at[1] >= '0' && at[1] <= '9';
    if (more) ++at;
  }
  if (at != end) version.text.assign(at, end);
  while (version.items.size() > 1 && version.items.back().is_zero()) version.items.pop_back();
  return version;
}

Value compare_texts(Tok op, const Value& left, const Value& right) {
  constexpr Tok kOrders[] = {Tok::equal,      Tok::not_equal, Tok::less,
                             Tok::less_equal, Tok::greater,   Tok::greater_equal};
  if (!holds(kOrders, op)) return {};
  const bool identity = op == Tok::equal || op == Tok::not_equal;
  const auto is_main = [](const Value& a, const Value& b) {
    return a.kind == Kind::host && a.host_kind == HostKind::module_name && b.kind == Kind::string &&
           b.text == "__main__";
  };
  if (identity && (is_main(left, right) || is_main(right, left))) return Value::boolean(op == Tok::not_equal);
  if (is_version(left) || is_version(right)) {
    const Value a = left.kind == Kind::string ? version_of(left.text) : left;
    const Value b = right.kind == Kind::string ? version_of(right.text) : right;
    if (!is_version(a) || !is_version(b)) return {};
    Value numbers = a, others = b;
    numbers.text.clear();
    others.text.clear();
    const std::optional<int> way = order(numbers, others);
    if (!way || (*way == 0 && a.text != b.text)) return {};
    return Value::boolean(compare_by(op, *way, 0));
  }
  const bool texts = left.kind == Kind::string && right.kind == Kind::string;
  const bool tuples = left.kind == Kind::tuple && right.kind == Kind::tuple;
  if (!texts && !tuples) return {};
  const std::optional<int> way = order(left, right);
  return way ? Value::boolean(compare_by(op, *way, 0)) : Value{};
}

std::optional<bool> truth_of(const Value& value) {
  if (value.kind == Kind::none) return false;
  if (value.kind == Kind::string) return !value.text.empty();
  if (value.kind == Kind::tuple && !is_version(value)) return !value.items.empty();
  if (value.kind == Kind::function || value.kind == Kind::module_) return true;
  return value.is_any_number() ? std::optional(!value.is_zero()) : std::nullopt;
}

template <class Read>
auto Decision::quietly(const Read& read) {
  Report own(file_.source);
  std::swap(file_.report, own);
  const bool quiet = std::exchange(file_.quiet, true);
  auto result = read();
  file_.quiet = quiet;
  std::swap(file_.report, own);
  return result;
}

/// Null if the tokens are not exactly one expression.
const Expr* Decision::parse(std::size_t at, std::size_t end) {
  if (at >= end) return nullptr;
  const std::size_t before = file_.report.errors();
  const Expr* expr = file_.parser().parse_expression(at, end);
  return file_.report.errors() == before ? expr : nullptr;
}

std::optional<bool> Decision::truth(const Expr& expr) {
  if (expr.kind == ExprKind::unary && expr.op == Tok::k_not) {
    const std::optional<bool> inner = truth(*expr.items[0]);
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  if (expr.kind == ExprKind::logical) {
    const bool decisive = expr.op == Tok::k_or;
    for (const Expr* item : expr.items) {
      const std::optional<bool> known = truth(*item);
      if (known != !decisive) return known;
    }
    return !decisive;
  }
  return frontend::truth_of(evaluator_.evaluate(expr));
}

std::optional<bool> Decision::truth_of(std::size_t at, std::size_t end) {
  return quietly([&]() -> std::optional<bool> {
    const Expr* expr = parse(at, end);
    return expr == nullptr ? std::nullopt : truth(*expr);
  });
}

std::optional<bool> Decision::any_of(std::size_t at, std::size_t end) {
  return quietly([&]() -> std::optional<bool> {
    const Expr* expr = parse(at, end);
    if (expr == nullptr) return std::nullopt;
    const bool range = expr->kind == ExprKind::call && expr->items[0]->kind == ExprKind::name;
    const Value callee = range ? evaluator_.evaluate(*expr->items[0]) : Value{};
    if (callee.kind != Kind::builtin || callee.builtin->rule != Rule::range) {
      const Value items = evaluator_.evaluate(*expr);
      return items.kind == Kind::tuple ? std::optional(!items.items.empty()) : std::nullopt;
    }
    std::vector<std::int64_t> given;
    for (std::size_t i = 1; i < expr->items.size(); ++i) {
      const Value value = evaluator_.evaluate(*expr->items[i]);
      if (value.kind != Kind::integer) return std::nullopt;
      given.push_back(value.integer);
    }
    if (given.empty() || given.size() > 3 || (given.size() == 3 && given[2] == 0)) return std::nullopt;
    const std::int64_t start = given.size() > 1 ? given[0] : 0, stop = given.size() > 1 ? given[1] : given[0];
    return given.size() == 3 && given[2] < 0 ? start > stop : start < stop;
  });
}

bool Decision::is_value(std::size_t at, std::size_t end) {
  return quietly([&] {
    const Expr* expr = parse(at, end);
    if (expr == nullptr) return false;
    const Kind kind = evaluator_.evaluate(*expr).kind;
    return kind != Kind::host && kind != Kind::unknown;
  });
}

bool Decision::imports(const std::string& path) {
  const std::string full = canonical(path);
  if (holds(kHostNames, full) || is_known_module(full)) return true;
  if (!is_known_module(full.substr(0, full.rfind('.')))) return false;
  const Value value = quietly([&] { return bindings_.path_value(full); });
  return value.kind != Kind::host && value.kind != Kind::unknown;
}

}  // namespace quern::frontend
