// SPDX-License-Identifier: Apache-2.0
// Finds the parameters that determine shapes. Shapes are known when a kernel is compiled, so a function is
// compiled separately for each value of these, as Numba does for literals: def tile(n): return
// cuda.shared.array(n, float32).
// float32).
#include <algorithm>
#include <set>

#include "frontend/analyse/program.hpp"

namespace quern::frontend {
namespace {

/// True for cuda.shared.array and similar functions, whatever name the file gives to the module.
bool makes_memory(const Expr& callee) {
  return callee.kind == ExprKind::attribute && callee.name == "array" &&
         (callee.items[0]->name == "shared" || callee.items[0]->name == "local");
}

class Walker {
 public:
  Walker(Program& program, const Function& function) : program_(program), function_(function) {
    statements(function.body);
  }

  std::vector<bool> run() {
    for (std::size_t before = names_.size() + 1; before != names_.size();) {
      before = names_.size();
      for (const auto& [target, value] : assignments_)
        if (contains(*target)) add(*value);
    }
    std::vector<bool> found;
    for (const Parameter& parameter : function_.parameters) found.push_back(names_.contains(parameter.name));
    return found;
  }

 private:
  void statements(const std::vector<Stmt*>& body) {
    for (const Stmt* node : body) {
      if (node->value != nullptr) expression(*node->value);
      const bool assigns = node->kind == StmtKind::assign || node->kind == StmtKind::augmented;
      for (const Expr* target : node->targets) {
        if (assigns) assignments_.emplace_back(target, node->value);
        expression(*target);
      }
      statements(node->body);
      statements(node->orelse);
    }
  }

  void expression(const Expr& expr) {
    if (expr.kind == ExprKind::call) call(expr);
    for (const Expr* item : expr.items)
      if (item != nullptr) expression(*item);
  }

  void call(const Expr& expr) {
    const Expr& callee = *expr.items[0];
    if (makes_memory(callee)) {
      for (std::size_t i = 1; i < expr.items.size(); ++i)
        if (expr.items[i]->kind == ExprKind::keyword ? expr.items[i]->name == "shape" : i == 1)
          add(*expr.items[i]);
      return;
    }
    Declaration* called = function_called(callee);
    if (called == nullptr || called->broken) return;
    const std::vector<Parameter>& parameters = program_.names().body_of(*called)->parameters;
    const std::vector<bool>& shapes = program_.shape_parameters(*called);
    for (std::size_t i = 1; i < expr.items.size(); ++i)
      for (std::size_t at = 0; at < shapes.size(); ++at)
        if (shapes[at] &&
            (expr.items[i]->kind == ExprKind::keyword ? parameters[at].name == expr.items[i]->name
                                                      : at + 1 == i))
          add(*expr.items[i]);
  }

  Declaration* function_called(const Expr& callee) {
    if (callee.kind != ExprKind::name) return nullptr;
    for (const auto& [name, inner] : function_.functions)
      if (name == callee.name) return &program_.declaration_of(*inner);
    const Value& value = program_.names().global(callee.name);
    const bool own = value.kind == Value::Kind::function && value.function->external.empty() &&
                     value.function->role != Role::host;
    return own ? value.function : nullptr;
  }

  void add(const Expr& expr) {
    if (expr.kind == ExprKind::name) names_.insert(expr.name);
    for (const Expr* item : expr.items)
      if (item != nullptr) add(*item);
  }

  bool contains(const Expr& target) const {
    if (target.kind == ExprKind::name) return names_.contains(target.name);
    return (target.kind == ExprKind::tuple || target.kind == ExprKind::list) &&
           std::any_of(target.items.begin(), target.items.end(),
                       [&](const Expr* item) { return contains(*item); });
  }

  Program& program_;
  const Function& function_;
  std::set<std::string_view> names_;
  std::vector<std::pair<const Expr*, const Expr*>> assignments_;
};

/// True for an integer or a tuple of integers, according to its type.
bool is_shape(const Value& value, Type type) {
  if (value.kind == Value::Kind::integer)
    return is_integer(type) && value.integer >= 0 &&
           (type->bits == 64 || value.integer >> (type->bits - 1) == 0);
  if (value.kind != Value::Kind::tuple || !is_tuple(type) || type->items.size() != value.items.size())
    return false;
  for (std::size_t i = 0; i < value.items.size(); ++i)
    if (!is_shape(value.items[i], type->items[i])) return false;
  return true;
}

std::string text_of(const Value& shape) {
  if (shape.kind != Value::Kind::tuple) return std::to_string(shape.integer);
  std::string text = "(";
  for (const Value& item : shape.items) text += text_of(item) + ",";
  return text + ")";
}

}  // namespace

const std::vector<bool>& Program::shape_parameters(Declaration& declaration) {
  const auto [found, fresh] = shapes_.try_emplace(&declaration);
  // while a recursive function is analysed, its calls of itself return the parameters found so far
  if (!fresh) return found->second;
  const Function* function = names_.body_of(declaration);
  if (function == nullptr || declaration.broken) return found->second;
  return found->second = Walker(*this, *function).run();
}

std::string Program::keep_shapes(Declaration& declaration, const std::vector<Type>& types,
                                 std::vector<Value>& values) {
  const std::vector<bool>& shapes = shape_parameters(declaration);
  values.resize(types.size());
  std::string text;
  for (std::size_t i = 0; i < types.size(); ++i)
    if (i < shapes.size() && shapes[i] && is_shape(values[i], types[i]))
      text += std::to_string(i) + "=" + text_of(values[i]) + ";";
    else
      values[i] = {};
  return text;
}

}  // namespace quern::frontend
