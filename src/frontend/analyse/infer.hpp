// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "frontend/analyse/fold_branches.hpp"
#include "frontend/analyse/infer_context.hpp"
#include "frontend/values/literal.hpp"

namespace quern::frontend {

/// For a parameter whose type determines its value, returns that value: a function, a built-in or a type.
/// Otherwise returns unknown.
Value valueless_constant(Type type);

/// Walks over a function's statements repeatedly, until no type changes. Then one more walk reports errors.
class Inference : private InferenceContext {
 public:
  Inference(Program& program, Specialisation& specialisation);
  void run();

  // Functions for collaborators.
  const InferenceContext& context() const { return *this; }
  Type expression(const Expr& expr);
  Type binary_types(const Expr& expr, Tok op, Type left, Type right);

 private:
  // Statements: infer.cpp.
  void pass();
  void statements(const std::vector<Stmt*>& body);
  bool leaves(const std::vector<Stmt*>& body) const;
  void statement(const Stmt& node);
  void loop(const Stmt& node);
  void assign(const Expr& target, Type type, Place from, const Expr* value);
  void assign_items(const Expr& target, Type type, Place from, const Expr* value);
  void assign_element(const Expr& target, Type type, Place from);
  void augmented(const Stmt& node);
  void returned(const Stmt& node);
  void meet(std::uint32_t phi);
  void set(std::uint32_t version, Type type);
  void condition(const Expr& expr);
  Type item_of(Type iterable, const Expr& expr);

  // Expressions: infer_expression.cpp.
  Type compute(const Expr& expr);
  Type name(const Expr& expr);
  Type from_value(const Value& value, const Expr& expr);
  Type attribute(const Expr& expr);
  Type module_attribute(const Expr& expr);
  Type method(std::string_view path);
  Type array_attribute(const Expr& expr, Type base);
  Type numpy_limit(const Expr& expr);
  Type literal(const Expr& expr);
  void fill_literal(const Expr& expr);
  static Value computed(Tok op, const Value& a, const Value& b, Type type);
  Type unary(const Expr& expr);
  Type binary(const Expr& expr, Tok op, const Expr& left, const Expr& right);
  Type compare(const Expr& expr);
  Type logical(const Expr& expr);
  Type conditional(const Expr& expr);
  Type tuple(const Expr& expr);

  // Calls: infer_call.cpp, infer_builtin.cpp. Built-ins are typed by the functions of rules.def.
  Type call(const Expr& expr);
  Type call_builtin(const Expr& expr, const Builtin& row);
  Type host_value(const Value& value, const Expr& expr);

  KnownOutcomes known_;
  bool changed_ = false;
  Place return_place_;
  const Expr* callee_ = nullptr;  ///< the callee, while its type is inferred
};

}  // namespace quern::frontend
