// SPDX-License-Identifier: Apache-2.0
// Emits readable CUDA C++ from typed functions.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "frontend/codegen/array_code.hpp"
#include "frontend/codegen/assign_code.hpp"
#include "frontend/codegen/call_code.hpp"
#include "frontend/codegen/emitter_part.hpp"
#include "frontend/codegen/loop_code.hpp"
#include "frontend/codegen/operand_order.hpp"
#include "frontend/codegen/operator_code.hpp"
#include "frontend/codegen/truth_code.hpp"
#include "frontend/cpp/lines.hpp"

namespace quern::frontend {

/// Emits one function: its statements and expressions. Collaborators emit the parts that their names say.
class Emitter {
 public:
  Emitter(Unit& unit, const Specialisation& specialisation)
      : unit_(unit),
        specialisation_(specialisation),
        scope_(*specialisation.scope),
        variables_(find_variables(specialisation)) {}
  Emitter(const Emitter&) = delete;
  Emitter& operator=(const Emitter&) = delete;

  std::vector<Line> function();
  /// The first line of the function without the brace, for functions that call each other.
  CppText header();

  // Functions for collaborators and for the functions of built-ins.
  const Specialisation& specialisation() const { return specialisation_; }
  Unit& unit() { return unit_; }
  Code expression(const Expr& expr);
  Code constant(const Value& value, Type type);
  const Range& range(const Expr& expr) const { return specialisation_.ranges[expr.id]; }
  Lines& lines() { return lines_; }
  std::string temporary(std::string_view stem);
  void block(const std::vector<Stmt*>& body, std::uint32_t id);
  /// Writes text at the beginning of a block, before its first statement.
  void before_block(std::uint32_t id, const std::function<void()>& write);
  void storage_declaration(const Variable& variable);
  CppText declared(std::uint32_t variable, bool fresh);
  bool can_declare_here(std::uint32_t variable) const;
  Effects effects(const Expr& expr) const { return specialisation_.expr_effects[expr.id]; }
  /// Converts to the C++ type of `type`, unless C++ converts implicitly.
  Code as(const Expr& expr, Type type);
  Code converted(const Code& code, Type from, Type to);
  Code variable(std::uint32_t id);
  Code attribute(const Expr& expr);
  bool is_simple(const Expr& expr) const;
  Code call_builtin(const Expr& expr, const Builtin& row);
  OperandOrder& order() { return order_; }
  ArrayCode& arrays() { return arrays_; }
  TruthCode& truths() { return truths_; }
  OperatorCode& operators() { return operators_; }
  LoopCode& loops() { return loops_; }
  CallCode& calls() { return calls_; }
  AssignCode& assignments() { return assignments_; }

 private:
  void statement(const Stmt& node);
  void if_statement(const Stmt& node, bool chained);
  void declare_before(const Stmt& node, std::uint32_t id, int index);
  void declare(Variable& variable);
  void leave_thread();
  Code folded(const Expr& expr);
  Code compute(const Expr& expr);
  Code name(const Expr& expr);
  Code global(const Expr& expr, const Value& value);
  Code tuple(const Expr& expr);
  void raise(const Stmt& node);

  Unit& unit_;
  const Specialisation& specialisation_;
  const Scope& scope_;
  Variables variables_;
  Lines lines_;
  std::uint32_t block_ = 0;  // the current block
  int index_ = 0;
  std::map<std::string, int> temporary_counts_;
  // names of the variables; filled when a temporary is first requested
  std::unordered_set<std::string> names_;
  OperandOrder order_{*this, unit_, specialisation_, variables_};
  ArrayCode arrays_{*this, unit_, specialisation_, variables_};
  TruthCode truths_{*this, unit_, specialisation_, variables_};
  OperatorCode operators_{*this, unit_, specialisation_, variables_};
  LoopCode loops_{*this, unit_, specialisation_, variables_};
  CallCode calls_{*this, unit_, specialisation_, variables_};
  AssignCode assignments_{*this, unit_, specialisation_, variables_};
};

/// One axis of cuda.grid(n) or cuda.gridsize(n), in the usual CUDA C++ form.
Code grid_axis(const Builtin& row, std::size_t axis);

/// Returns the text as a C++ string literal.
std::string quoted(std::string_view text);

/// True if the expression reads a variable that a loop with this target and this body assigns.
bool reads_assigned(const Scope& scope, const Expr& expr, const std::vector<Stmt*>& body, const Expr& target);

/// True if the expression reads a version of that local variable.
bool reads(const Scope& scope, const Expr& expr, std::uint32_t local);

/// A constant expression of C++ for a number, a record or the elements of an array.
CppText initialiser(const Value& value, Type type);
/// The declaration of constant memory.
CppText constant_array_declaration(std::string_view name, const Value& values, Type element);

}  // namespace quern::frontend
