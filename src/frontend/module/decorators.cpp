// SPDX-License-Identifier: Apache-2.0
// @cuda.jit and similar decorators above a function, or applied to one: k = cuda.jit(f). Errors in a
// decorator are reported when its function is used, so that the file's other functions stay usable.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "frontend/module/names.hpp"
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

/// The decorator whose name begins at the token, or null: other decorators may be any host code.
std::optional<Role> Names::role_at(std::size_t token) {
  const std::string words = dotted(token);
  if (words.empty()) return std::nullopt;
  const Value& root = probably(words.substr(0, words.find('.')));
  std::string path = root.kind == Value::Kind::module_ || root.is_imported() ? root.text : "";
  if (const std::size_t dot = words.find('.'); dot != std::string::npos) path += words.substr(dot);
  const Decorator* found = find_decorator(canonical(path));
  return found == nullptr ? std::nullopt : std::optional(found->role);
}

/// Collects the diagnostics of `read` in a separate report.
template <class Read>
Diagnostics Names::reported_apart(const Read& read) {
  Report own(source_);
  std::swap(report_, own);
  read();
  std::swap(report_, own);
  return own.take();
}

void Names::read_decorators(Declaration& declaration) {
  const Time before = std::exchange(now_, declaration.time);
  declaration.errors = reported_apart([&] {
    for (const std::size_t token : declaration.decorators) {
      const std::optional<Role> role = role_at(token);
      if (!role) continue;
      declaration.role = *role;
      report_doubt(text(token), tokens_[token].place);
      read_decorator(declaration, *Parser(tokens_, source_, arena_, report_).parse_decorator(token));
    }
    if (declaration.role != Role::host && declaration.replaced.end > 0)
      report_.error(declaration.replaced, "decorator",
                    fmt::format("this decorator may make '{}' something else", declaration.name),
                    "only jit stands above a kernel or a device function");
  });
  now_ = before;
}

/// The host function that a name refers to, or null.
const Declaration* Names::function_named(const Expr& expr) const {
  if (expr.kind != ExprKind::name) return nullptr;
  const Binding* found = meant(expr.name);
  return found == nullptr ? nullptr : found->declaration;
}

/// k = cuda.jit(f), k = cuda.jit("void(float32[:])")(f): a kernel of its own, with the function's text.
void Names::read_application(std::string_view name, Binding& binding) {
  const std::size_t at = binding.token;
  if (binding.kind != Binding::Kind::assignment || tokens_[at].kind != Tok::name ||
      tokens_[at + 1].kind != Tok::assign)
    return;
  const Time before = std::exchange(now_, binding.time);
  const std::optional<Role> role = role_at(at + 2);
  Declaration* made = nullptr;
  Diagnostics errors = reported_apart([&] {
    const Expr* value = role ? assigned_expr_of(binding, name) : nullptr;
    const Declaration* function = nullptr;
    if (value != nullptr && value->kind == ExprKind::call)
      for (std::size_t i = 1; i < value->items.size() && function == nullptr; ++i)
        function = function_named(*value->items[i]);
    if (function == nullptr) return;
    made = &declarations_.emplace_back();
    made->name = name;
    made->place = binding.place;
    made->token = function->token;
    made->role = *role;
    made->time = binding.time;
    read_decorator(*made, value->items[0]->kind == ExprKind::call ? *value->items[0] : *value);
  });
  now_ = before;
  if (made == nullptr) return;
  made->errors = std::move(errors);
  binding.kind = Binding::Kind::function;
  binding.declaration = made;
  binding.known = false;
}

void Names::read_decorator(Declaration& declaration, const Expr& decorator) {
  if (decorator.kind != ExprKind::call) return;
  for (std::size_t i = 1; i < decorator.items.size(); ++i) {
    const Expr& argument = *decorator.items[i];
    if (argument.kind == ExprKind::keyword) {
      read_option(declaration, argument);
      continue;
    }
    if (function_named(argument) != nullptr) continue;  // the function that it is applied to
    const Expr& given = signature_meant(argument);
    std::vector<const Expr*> all = {&given};
    if (given.kind == ExprKind::list) all.assign(given.items.begin(), given.items.end());
    for (const Expr* one : all) {
      SignatureTypes types;
      if (read_signature(*one, types))
        declaration.signatures.push_back(std::move(types));
      else
        declaration.broken = true;
    }
  }
}

void Names::read_option(Declaration& declaration, const Expr& keyword) {
  const Expr& expr = *keyword.items[0];
  Options& options = declaration.options;
  const std::string_view name = keyword.name;
  const Value value = evaluate(expr);
  const bool truth = value.is_number() && value.as_real() != 0;
  constexpr std::string_view kRead[] = {"device", "fastmath",      "debug",        "lineinfo",
                                        "inline", "max_registers", "launch_bounds"};
  if ((value.kind == Value::Kind::host || value.kind == Value::Kind::unknown) &&
      std::find(std::begin(kRead), std::end(kRead), name) != std::end(kRead)) {
    if (value.doubt != nullptr) return report_doubt(*value.doubt, source_.at(expr.place), expr.place);
    report_.error(expr.place, "decorator",
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
    report_.error(keyword.place, "decorator", fmt::format("jit has no option '{}'", name),
                  fmt::format("its options are {}", kKnown));
  }
}

void Names::report_errors(Declaration& declaration) {
  report_.take_over(declaration.errors);
  declaration.errors.clear();
}

}  // namespace quern::frontend
