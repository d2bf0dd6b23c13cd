// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "frontend/literal.hpp"
#include "frontend/program.hpp"

namespace quern::frontend {

/// For a parameter whose type determines its value, returns that value: a function, a built-in or a type.
/// Otherwise returns unknown.
Value valueless_constant(Type type);

/// One walk over a function's statements after the other, until no type changes; then one that reports.
class Inference {
 public:
  Inference(Program& program, Instance& instance);
  void run();

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
  // Conditions whose value is known at compile time: settle.cpp.
  std::optional<bool> about_none(const Expr& expr) const;
  std::optional<bool> settled(const Expr& expr) const;
  std::optional<bool> settled_comparison(const Expr& chain) const;
  std::optional<bool> settled_at_first(const Expr& condition);
  bool is_fixed(const Expr& expr) const;
  const Value& fixed_value(const Expr& expr) const;
  std::uint32_t tested(const Expr& name) const;
  Type item_of(Type iterable, const Expr& expr);

  // Expressions: infer_expression.cpp.
  Type expression(const Expr& expr);
  Type compute(const Expr& expr);
  Type name(const Expr& expr);
  Type from_value(const Value& value, const Expr& expr);
  Type attribute(const Expr& expr);
  Type array_attribute(const Expr& expr, Type base);
  Type subscript(const Expr& expr);
  Type tuple_item(const Expr& expr, Type base);
  Type tuple_part(const Expr& expr, Type base);
  Type indexed(Type array, const Expr& index);
  Type index_type(Type array, const std::vector<const Expr*>& indices, Place place);
  Type record_field(Type record, std::string_view field, Place place);
  Type field_view(Type array, const Field& field, Place place);
  Type numpy_limit(const Expr& expr);
  bool keeps_order(const Expr& index, bool at_fast_end) const;
  char view_layout(Type array, std::vector<const Expr*> left, std::vector<const Expr*> right) const;
  Type slice(const Expr& expr);
  Type literal(const Expr& expr);
  void fill_literal(const Expr& expr);
  static Value computed(Tok op, const Value& a, const Value& b, Type type);
  Type unary(const Expr& expr);
  Type binary(const Expr& expr, Tok op, const Expr& left, const Expr& right);
  Type binary_types(const Expr& expr, Tok op, Type left, Type right);
  Type compare(const Expr& expr);
  Type logical(const Expr& expr);
  Type conditional(const Expr& expr);
  Type tuple(const Expr& expr);

  // Calls: infer_call.cpp, infer_builtin.cpp, infer_memory.cpp.
  Type call(const Expr& expr);
  Type call_function(const Expr& expr, Declaration& callee);
  Type call_dtype(const Expr& expr, Type to);
  Type make_vector(const Expr& expr, Type to);
  Type call_external(const Expr& expr, const Declaration& callee);
  Type call_builtin(const Expr& expr, const Builtin& row);
  Type by_rule(const Expr& expr, const Builtin& row, const std::vector<const Expr*>& args,
               const std::vector<Type>& types);
  Type grid(const Expr& expr, const Builtin& row, const Expr& ndim);
  Type make_array(const Expr& expr, const Builtin& row);
  Type constant_array(const Expr& expr);
  Type atomic(const Expr& expr, const Builtin& row, const std::vector<const Expr*>& args,
              const std::vector<Type>& types);
  Type extremum(const Expr& expr, const std::vector<Type>& types);
  Type number_in_text(const Expr& expr, const Expr& text);
  Type real_function(const Expr& argument, const Builtin& row, Type type);
  Type over_tuple(const Expr& expr, const Builtin& row, const std::vector<const Expr*>& args,
                  const std::vector<Type>& types);
  Type typed_call(const Expr& expr, const Builtin& row);
  Type random(const Builtin& row, const std::vector<const Expr*>& args, const std::vector<Type>& types);
  Type element_hint(const Builtin& row, const std::vector<const Expr*>& args, const std::vector<Type>& types);
  bool check_index(const Expr& expr, Type index, Type array);
  Type range(const std::vector<Type>& types, const std::vector<const Expr*>& args);
  bool bind_arguments(const Expr& expr, Declaration& callee, std::vector<Type>& types,
                      std::vector<Value>& values);
  bool shape_of(const Expr& expr, std::vector<std::int64_t>& extents);
  Type host_value(const Value& value, const Expr& expr);
  bool wants(const Expr& expr, Type type, bool fits, std::string_view wanted);

  // Reports errors: only in the last walk, and never consequences of another error.
  template <class... Args>
  Type fail(Place place, std::string_view code, std::string hint, fmt::format_string<Args...> text,
            Args&&... args) {
    if (!reporting_) return nullptr;
    report_.error(place, code, fmt::format(text, std::forward<Args>(args)...), std::move(hint));
    return types_.error;
  }
  void note(Place place, std::string message) {
    if (reporting_) report_.note(place, std::move(message));
  }
  std::string shown(const Expr& expr) const;

  Program& program_;
  Instance& instance_;
  const Scope& scope_;
  TypeTable& types_;
  Report& report_;
  std::vector<bool> fixed_;  ///< by version: is_fixed() of what was assigned
  bool first_test_ = false;  ///< of a loop: names in its condition are what they are before it
  bool reporting_ = false;
  bool changed_ = false;
  Place return_place_;
  const Expr* callee_ = nullptr;  ///< the callee, while its type is found
};

}  // namespace quern::frontend
