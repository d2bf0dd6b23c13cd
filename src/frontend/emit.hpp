// SPDX-License-Identifier: Apache-2.0
// CUDA C++ that a person reads, from functions with types.
#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "frontend/code.hpp"
#include "frontend/program.hpp"
#include "frontend/variables.hpp"

namespace quern::frontend {

/// A line of CUDA C++ and the author's line that it was made from; 0: none.
struct Line {
  std::string text;
  std::uint32_t source = 0;
};

/// Data shared by all functions of a file.
struct Unit {
  const SourceText* source = nullptr;
  TypeTable* types = nullptr;
  Names* names = nullptr;
  std::map<const Instance*, std::string> function_names;
  std::map<std::string, std::string, std::less<>> constants;  ///< declarations, by the name they declare
  std::map<std::string, std::string, std::less<>> linked;     ///< prototypes of functions of linked code
  std::set<std::string, std::less<>> links;                   ///< the files that hold it
  bool debug = false;  ///< indices, divisors and assertions report what is wrong
};

/// Emits one function.
class Emitter {
 public:
  Emitter(Unit& unit, const Instance& instance)
      : unit_(unit), instance_(instance), scope_(*instance.scope), variables_(find_variables(instance)) {}

  std::vector<Line> function();
  /// Its first line without the brace, for functions that call each other.
  std::string header();

 private:
  // Statements: emit.cpp.
  void block(const std::vector<Stmt*>& body, std::uint32_t id);
  void statement(const Stmt& node);
  void assign(const Stmt& node);
  void assign_to(const Expr& target, const Code& value, Type type);
  void assign_name(const Expr& target, const Code& value, Type type);
  void assign_tuple(const Expr& target, const Expr& value);
  void assign_array(const Expr& target, const Expr& value);
  bool is_unused(const Expr& target) const;
  void unpack(const Expr& target, const Code& value, Type type);
  void augmented(const Stmt& node);
  void hold_place(const Expr& target, const Expr& value);
  bool same_in_cpp(const Stmt& node, const Code& place, const Code& operand, Type result) const;
  void if_statement(const Stmt& node, bool chained);
  // Loops: emit_loop.cpp.
  void while_statement(const Stmt& node);
  void for_statement(const Stmt& node);
  void for_range(const Stmt& node);
  bool plain_for(const Stmt& node, const Expr& call);
  void loop_body(const Stmt& node);
  /// Over arrays, tuples, enumerate and zip: emit_items.cpp.
  struct Items {
    Type type = nullptr;       ///< of an item
    std::string length;        ///< the number of items
    Code code;                 ///< the one at the index, where there are no parts
    std::vector<Items> parts;  ///< the parts of an item of enumerate and zip
  };
  void for_items(const Stmt& node);
  Code range_code(const Expr& expr);
  Items items_of(const Stmt& loop, const Expr& source, const std::string& index);
  Items plain_items(const Stmt& loop, const Expr& source, const std::string& index);
  Items zipped(std::vector<Items> parts);
  Code whole_item(const Items& items);
  void assign_item(const Expr& target, const Items& items);
  void loop_else(const Stmt& node, const std::string& flag);
  std::string loop_flag(const Stmt& node);
  void storage_declaration(const Variable& variable);
  void declare_before(const Stmt& node, std::uint32_t id, int index);
  void declare(Variable& variable);
  std::string declared(std::uint32_t variable, bool fresh);
  bool can_declare_here(std::uint32_t variable) const;
  void line(std::string text);
  void open(std::string text);
  void close(std::string text = "}");
  std::string temporary(std::string_view stem);
  void leave_thread();

  // Expressions: emit_expression.cpp.
  Code expression(const Expr& expr);
  Code folded(const Expr& expr);
  Code compute(const Expr& expr);
  /// The order of evaluation: emit_order.cpp.
  void hold_operands(const Expr& expr);
  void hold_in_order(const std::vector<const Expr*>& operands);
  void hold(const Expr& expr);
  void hold_effects(const Expr& call);
  Code held(Code code, Type type);
  Code once(const Expr& expr);
  Code isolated(const Expr& expr);
  const Code* held_code(const Expr& expr) const;
  bool is_kept(const Expr& expr) const;
  bool is_statement(const Expr& expr) const;
  void discard(const Expr& expr);
  Effects effects(const Expr& expr) const { return instance_.expr_effects[expr.id]; }
  /// Converts to the C++ type of `type`, unless C++ does so implicitly.
  Code as(const Expr& expr, Type type);
  Code converted(const Code& code, Type from, Type to);
  Code name(const Expr& expr);
  Code variable(std::uint32_t id);
  Code constant(const Value& value, Type type);
  Code global(const Expr& expr, const Value& value);
  Code attribute(const Expr& expr);
  Code subscript(const Expr& expr);
  Code displayed_item(const Expr& tuple, std::size_t place, Type result);
  Code element(const Expr& array, const Expr& index);
  Code element_of(const Expr& array, const std::vector<Code>& indices);
  std::vector<Code> indices_of(const Expr& array, const Expr& index);
  Code wrapped(const Expr& array, const Expr& index, std::size_t axis);
  Code wrapped(const Expr& array, const Code& index, std::size_t axis, Place place);
  Code record_part(const Expr& base, std::string_view field);
  Code field_view(const Expr& array, std::string_view field, Type result);
  Code part_view(const Expr& array, std::uint32_t offset, Type result);
  Code view_of(const Expr& array, const Expr& index, Type result);
  Code extent(const Expr& array, std::size_t axis);
  Code array_value(const Expr& array);
  Code item(const Code& tuple, std::size_t index, Type type);
  Code unary(const Expr& expr);
  Code negated(const Expr& expr, Code code, Type own);
  Code binary(const Expr& expr, Tok op, const Expr& left, const Expr& right);
  Code operate(Tok op, const Code& left, Type left_type, const Code& right, Type right_type, Type result,
               const Range& range, const Range& left_range, const Range& right_range);
  Code integer_operation(Tok op, Code left, Code right, Carrier result, const Range& range,
                         const Range& left_range, const Range& right_range);
  Code power(const Code& left, Type left_type, const Code& right, Type right_type, Type result);
  struct Comparison {
    std::string before;  // declares what the test compares
    std::string test;
  };
  Code compare(const Expr& expr);
  bool written_twice(const Expr& expr) const;
  static Code joined(const std::vector<Comparison>& parts);
  Type compared(Type a, Type b) const;
  std::pair<Type, Type> compared_parts(Type a, Type b) const;
  static std::string tuple_as(const Code& tuple, Type from, Type to);
  Code compare_two(Tok op, const Expr& left, const Code& a, const Expr& right, const Code& b);
  Code logical(const Expr& expr);
  Code condition(const Expr& expr);
  Code condition_of(const Code& code, Type type);
  Code conditional(const Expr& expr);
  Code tuple(const Expr& expr);
  const std::vector<std::int64_t>* direct(const Expr& array) const;
  const std::vector<std::int64_t>* field_extents(const Expr& expr) const;
  bool is_simple(const Expr& expr) const;
  const Range& range(const Expr& expr) const { return instance_.ranges[expr.id]; }

  // Calls: emit_call.cpp, emit_builtin.cpp.
  Code call_expression(const Expr& expr);
  Code make_vector(const Expr& expr, Type to);
  Code call_external(const Expr& expr, const Declaration& callee);
  std::string captured_value(std::uint32_t version);
  Code typed_call(const Expr& expr, const Builtin& row);
  Code element_hint(const Expr& expr, const Builtin& row);
  Code checked_divisor(Tok op, const Code& code, const Expr& expr);
  void raise(const Stmt& node);
  Code call_function(const Expr& expr, const Instance& callee);
  Code call_builtin(const Expr& expr, const Builtin& row);
  Code grid_axis(const Builtin& row, std::size_t axis);
  Code real_call(const Expr& expr, const Builtin& row, Type result);
  Code atomic(const Expr& expr, const Builtin& row);
  Code extremum(const Expr& expr, const Builtin& row);
  Code make_array(const Expr& expr);
  Code print(const Expr& expr);

  Unit& unit_;
  const Instance& instance_;
  const Scope& scope_;
  Variables variables_;
  std::vector<Line> lines_;
  std::uint32_t source_line_ = 0;
  int indent_ = 0;
  std::uint32_t block_ = 0;  // the block that receives statements now
  int index_ = 0;
  std::map<std::string, int> temporaries_;
  std::unordered_set<std::string> names_;  // of the variables, once a temporary was asked for
  std::vector<std::string> flags_;         // of the loops around, for their `else`
  struct Held {
    const Expr* expr;
    Code code;
  };
  std::vector<Held> held_;  // operands that stand in variables already
};

/// The text as a string literal of C++.
std::string quoted(std::string_view text);

/// True if the expression reads a variable that a loop with this target and body assigns.
bool reads_assigned(const Scope& scope, const Expr& expr, const std::vector<Stmt*>& body, const Expr& target);

/// Does the expression read a version of that local?
bool reads(const Scope& scope, const Expr& expr, std::uint32_t local);

/// A constant expression of C++ for a number, a record or the elements of an array.
std::string initialiser(const Value& value, Type type);
/// The declaration of constant memory.
std::string constant_array_declaration(std::string_view name, const Value& values, Type element);

}  // namespace quern::frontend
