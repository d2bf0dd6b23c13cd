// SPDX-License-Identifier: Apache-2.0
// @cuda.jit and similar decorators above a function, or called with one: k = cuda.jit(f). Errors in a
// decorator are reported only when its function is used, so that the file's other functions remain usable.
#include "frontend/module/decorators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "frontend/syntax/parser.hpp"

namespace quern::frontend {
namespace {

struct Decorator {
  std::string_view path;
  Role role;
};
constexpr Decorator kDecorators[] = {
    {"numba.cuda.jit", Role::kernel},
    {"numba.roc.jit", Role::kernel},
    {"numba.jit", Role::device},
    {"numba.njit", Role::device},
};

const Decorator* find_decorator(std::string_view path) {
  for (const Decorator& row : kDecorators)
    if (row.path == path) return &row;
  return nullptr;
}

}  // namespace

/// The role that the decorator at the token gives, or nothing for other decorators, which may be any host
/// code.
std::optional<Role> Decorators::role_at(std::size_t token) {
  const std::string words = file_.dotted(token);
  if (words.empty()) return std::nullopt;
  const Value& root = bindings_.probably(words.substr(0, words.find('.')));
  std::string path = root.kind == Value::Kind::module_ || root.is_imported() ? root.text : "";
  if (const std::size_t dot = words.find('.'); dot != std::string::npos) path += words.substr(dot);
  const Decorator* found = find_decorator(canonical(path));
  return found == nullptr ? std::nullopt : std::optional(found->role);
}

/// Collects the diagnostics of `read` in a separate report.
template <class Read>
Diagnostics Decorators::reported_apart(const Read& read) {
  Report own(file_.source);
  std::swap(file_.report, own);
  read();
  std::swap(file_.report, own);
  return own.take();
}

void Decorators::read(Declaration& declaration) {
  const Time before = std::exchange(file_.now, declaration.time);
  declaration.errors = reported_apart([&] {
    for (const std::size_t token : declaration.decorators) {
      const std::optional<Role> role = role_at(token);
      if (!role) continue;
      declaration.role = *role;
      bindings_.report_doubt(file_.text(token), file_.tokens[token].place);
      read_decorator(declaration, *file_.parser().parse_decorator(token));
    }
    if (declaration.role != Role::host && declaration.replaced.end > 0)
      file_.report.error(declaration.replaced, "decorator",
                         fmt::format("this decorator may make '{}' something else", declaration.name),
                         "only jit stands above a kernel or a device function");
  });
  file_.now = before;
}

/// The host function that a name refers to, or null.
const Declaration* Decorators::function_named(const Expr& expr) const {
  if (expr.kind != ExprKind::name) return nullptr;
  const Binding* found = file_.meant(expr.name);
  return found == nullptr ? nullptr : found->declaration;
}

/// k = cuda.jit(f), k = cuda.jit("void(float32[:])")(f): creates a separate kernel with the body of the
/// function.
void Decorators::read_application(std::string_view name, Binding& binding) {
  const std::size_t at = binding.token;
  if (binding.kind != Binding::Kind::assignment || file_.tokens[at].kind != Tok::name ||
      file_.tokens[at + 1].kind != Tok::assign)
    return;
  const Time before = std::exchange(file_.now, binding.time);
  const std::optional<Role> role = role_at(at + 2);
  Declaration* made = nullptr;
  Diagnostics errors = reported_apart([&] {
    const Expr* value = role ? type_reader_.assigned_expr_of(binding, name) : nullptr;
    const Declaration* function = nullptr;
    if (value != nullptr && value->kind == ExprKind::call)
      for (std::size_t i = 1; i < value->items.size() && function == nullptr; ++i)
        function = function_named(*value->items[i]);
    if (function == nullptr) return;
    made = &file_.declarations.emplace_back();
    made->name = name;
    made->place = binding.place;
    made->token = function->token;
    made->role = *role;
    made->time = binding.time;
    read_decorator(*made, value->items[0]->kind == ExprKind::call ? *value->items[0] : *value);
  });
  file_.now = before;
  if (made == nullptr) return;
  made->errors = std::move(errors);
  binding.kind = Binding::Kind::function;
  binding.declaration = made;
  binding.known = false;
}

void Decorators::read_decorator(Declaration& declaration, const Expr& decorator) {
  if (decorator.kind != ExprKind::call) return;
  for (std::size_t i = 1; i < decorator.items.size(); ++i) {
    const Expr& argument = *decorator.items[i];
    if (argument.kind == ExprKind::keyword) {
      read_option(declaration, argument);
      continue;
    }
    if (function_named(argument) != nullptr) continue;  // the function that the decorator is applied to
    const Expr& given = type_reader_.signature_meant(argument);
    std::vector<const Expr*> all = {&given};
    if (given.kind == ExprKind::list) all.assign(given.items.begin(), given.items.end());
    for (const Expr* one : all) {
      SignatureTypes types;
      if (type_reader_.read_signature(*one, types))
        declaration.signatures.push_back(std::move(types));
      else
        declaration.broken = true;
    }
  }
}

void Decorators::read_option(Declaration& declaration, const Expr& keyword) {
  const Expr& expr = *keyword.items[0];
  Options& options = declaration.options;
  const std::string_view name = keyword.name;
  const Value value = evaluator_.evaluate(expr);
  const bool truth = value.is_number() && value.as_real() != 0;
  constexpr std::string_view kRead[] = {"device", "fastmath",      "debug",        "lineinfo",
                                        "inline", "max_registers", "launch_bounds"};
  if ((value.kind == Value::Kind::host || value.kind == Value::Kind::unknown) &&
      std::find(std::begin(kRead), std::end(kRead), name) != std::end(kRead)) {
    if (value.doubt != nullptr) return doubts_.report(*value.doubt, file_.source.at(expr.place), expr.place);
    file_.report.error(expr.place, "decorator",
                       fmt::format("the value of the option '{}' is not known here", name),
                       "give a constant: no Python runs here");
    return;
  }
  if (name == "device") {
    if (truth) declaration.role = Role::device;
  } else if (name == "fastmath") {
    options.fastmath = truth;
  } else if (name == "debug") {
    options.debug = truth;
  } else if (name == "lineinfo") {
    options.lineinfo = truth;
  } else if (name == "inline") {
    options.force_inline = value.kind == Value::Kind::string ? value.text == "always" : truth;
  } else if (name == "max_registers") {
    if (value.kind == Value::Kind::integer) options.max_registers = value.integer;
  } else if (name == "launch_bounds") {
    if (value.kind == Value::Kind::integer) options.launch_bounds = {value.integer};
    for (const Value& item : value.items) options.launch_bounds.push_back(item.integer);
  } else if (name == "link") {
    read_links(expr, options.links);
  } else if (name != "opt" && name != "cache" && name != "nopython" && name != "argtypes" && name != "lto" &&
             name != "forceinline" && name != "fastmath" && name != "parallel" && name != "error_model") {
    constexpr std::string_view kKnown =
        "device, fastmath, debug, lineinfo, inline, max_registers, launch_bounds, link";
    file_.report.error(keyword.place, "decorator", fmt::format("jit has no option '{}'", name),
                       fmt::format("its options are {}", kKnown));
  }
}

/// cuda.declare_device('mul', 'float32(float32, float32)', link='mul.cu', abi='c'): declares a function of
/// linked CUDA C++.
Value Decorators::declare_device(const Expr& call) {
  if (call.items.size() < 3 || call.items[1]->kind != ExprKind::string)
    return Value::host("a function that cuda.declare_device does not name");
  Declaration& declaration = file_.declarations.emplace_back();
  declaration.external = call.items[1]->name;
  declaration.name = declaration.external;
  declaration.place = call.place;
  declaration.role = Role::device;
  SignatureTypes signature;
  const std::size_t before = file_.report.diagnostics().size();
  if (type_reader_.read_signature(*call.items[2], signature) && signature.result == nullptr)
    file_.report.error(call.items[2]->place, "signature",
                       "a declared function has a result: float32(float32, float32)");
  for (const Type type : signature.parameters)
    if (!is_number(type) && file_.report.diagnostics().size() == before)
      file_.report.error(call.items[2]->place, "unsupported",
                         fmt::format("a linked function takes numbers, not {}", text_of(type)),
                         "write what works on arrays in Kernel Python, or the kernel in CUDA C++");
  declaration.broken = file_.report.diagnostics().size() != before;
  declaration.signatures = {std::move(signature)};
  for (std::size_t i = 3; i < call.items.size(); ++i) {
    const Expr& item = *call.items[i];
    if (item.kind != ExprKind::keyword) continue;
    if (item.name == "link") read_links(*item.items[0], declaration.options.links);
    if (item.name == "abi")
      declaration.c_abi = item.items[0]->kind == ExprKind::string && item.items[0]->name == "c";
  }
  Value value;
  value.kind = Value::Kind::function;
  value.function = &declaration;
  return value;
}

/// link='f.cu', link=['f.cu', 'g.cu']
void Decorators::read_links(const Expr& expr, std::vector<std::string>& out) {
  constexpr std::string_view kSources[] = {".cu", ".cuh", ".h", ".hpp", ".inl"};
  const Value value = evaluator_.evaluate(expr);
  std::vector<Value> files = {value};
  if (value.kind == Value::Kind::tuple) files = value.items;
  for (const Value& file : files) {
    const bool source = file.kind == Value::Kind::string &&
                        std::any_of(std::begin(kSources), std::end(kSources),
                                    [&](std::string_view suffix) { return file.text.ends_with(suffix); });
    if (source && file.text.find_first_of("\"\n\\") == std::string::npos) {
      out.push_back(file.text);
      continue;
    }
    file_.report.error(expr.place, "unsupported",
                       file.kind == Value::Kind::string
                           ? fmt::format("'{}' cannot be linked: it is no CUDA C++ source", file.text)
                           : std::string("the name of the linked file is not known at compile time"),
                       "link files of CUDA C++: link='functions.cu'");
  }
}

}  // namespace quern::frontend
