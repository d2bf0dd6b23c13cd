// SPDX-License-Identifier: Apache-2.0
// A kernel with all functions that it calls; each function occurs once for each list of argument types.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "frontend/analyse/scope.hpp"
#include "frontend/module/names.hpp"

namespace quern::frontend {

enum class Space : std::uint8_t { shared, dynamic_shared, local, constant };

/// The memory of cuda.shared.array and similar functions.
struct Storage {
  Space space = Space::shared;
  Type element = nullptr;
  std::vector<std::int64_t> extents;
  const Value* values = nullptr;  ///< contents of constant memory
  std::string_view name;          ///< name of the values in the module
};

/// The possible values of an integer. If `exact` is false, the bounds only hold if no earlier step overflowed
/// 64 bits.
struct Range {
  std::int64_t low = INT64_MIN;
  std::int64_t high = INT64_MAX;
  bool exact = true;

  bool within(std::int64_t least, std::int64_t most) const { return exact && low >= least && high <= most; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// A function specialised on argument types. The vectors are indexed by expr id or version.
struct Specialisation {
  Declaration* declaration = nullptr;
  const Scope* scope = nullptr;
  std::vector<Type> parameters;
  std::vector<Value> values;  ///< values of parameters that determine shapes; unknown for other parameters
  Type result = nullptr;      ///< null until known
  bool kernel = false;        ///< the launched function; a kernel that another one calls is a device function
  bool inferring = false;
  bool recursive = false;
  bool failed = false;
  Effects effects = Effects::writes;  ///< effects of a call
  bool may_fail = true;               ///< a call may fail in a debug build
  std::vector<Type> types;            ///< types of expressions
  std::vector<Effects> expr_effects;
  std::vector<bool> expr_may_fail;  ///< the expression contains an index or a divisor that debug builds check
  std::vector<Type> version_types;
  std::vector<Value> constants;  ///< constants of expressions; otherwise unknown
  std::vector<Value> version_constants;
  std::vector<const Storage*> version_storage;
  std::map<std::uint32_t, Storage> storages;         ///< by id of the call that creates it
  std::map<std::uint32_t, Specialisation*> callees;  ///< by id of the call expression
  std::vector<Range> ranges;                         ///< ranges of integer expressions
  std::vector<Range> version_ranges;
  /// By stmt id of an `if` and expr id of a conditional expression: the outcome, if it is known at compile
  /// time, such as `x is None` for these parameters or `N > 3` with a constant of the module. For a `while`:
  /// the outcome of its first test.
  std::map<std::uint32_t, bool> known_branches;
  std::map<std::uint32_t, bool> known_choices;
  /// By expr id of an `and` or `or`: the operands that remain after known ones were removed.
  std::map<std::uint32_t, std::vector<const Expr*>> left_operands;
  std::vector<bool> dead;  ///< by stmt id: unreachable with these parameters

  Type type(const Expr& expr) const { return types[expr.id]; }
  std::optional<bool> known_branch(const Stmt& node) const { return find(known_branches, node.id); }
  /// True if a thread may reach the phi over the operand's path.
  bool arrives(const Operand& operand) const {
    return find(known_branches, operand.decided_by).value_or(operand.outcome) == operand.outcome;
  }
  std::optional<bool> known_choice(const Expr& expr) const { return find(known_choices, expr.id); }
  /// The operands of an `and` or `or` that a thread may evaluate and that affect the result.
  std::vector<const Expr*> operands(const Expr& logical) const {
    const auto found = left_operands.find(logical.id);
    return found != left_operands.end()
               ? found->second
               : std::vector<const Expr*>(logical.items.begin(), logical.items.end());
  }
  const Value& constant(const Expr& expr) const { return constants[expr.id]; }
  /// True if `divisor` can be 0 in `x op divisor`.
  bool may_divide_by_zero(Tok op, const Expr& divisor) const;
  /// The indices of a tuple's items that t[a:b:c] selects; the bounds are constants.
  std::vector<std::size_t> slice_indices(const Expr& slice, std::size_t count) const;

 private:
  static std::optional<bool> find(const std::map<std::uint32_t, bool>& known, std::uint32_t id) {
    const auto found = known.find(id);
    return found == known.end() ? std::nullopt : std::optional(found->second);
  }
};

/// All specialisations, callees before their callers.
class Program {
 public:
  explicit Program(Names& names) : names_(names) {}

  /// Returns the device function for these argument types, with inferred types. `values` are the arguments
  /// that are known; only those that determine shapes are used. `from` is the call, for notes. Null if the
  /// function's text has errors.
  Specialisation* specialisation(Declaration& declaration, const std::vector<Type>& parameters,
                                 std::vector<Value> values, Place from);
  /// Returns the kernel, with all functions that it calls.
  Specialisation* kernel(Declaration& declaration, const std::vector<Type>& parameters);
  /// Returns, for each parameter, whether it determines shapes in the function or in one that it calls.
  const std::vector<bool>& shape_parameters(Declaration& declaration);
  /// The declaration of a nested function.
  Declaration& declaration_of(Function& function);
  const std::vector<Specialisation*>& specialisations() const { return order_; }
  Names& names() { return names_; }
  TypeTable& types() { return names_.types(); }
  Report& report() { return names_.report(); }

 private:
  const Scope* scope_of(Declaration& declaration);
  /// `known`: the map in which later calls find the result; null for the kernel, which is never called.
  Specialisation* make(Declaration& declaration, const std::vector<Type>& parameters,
                       std::vector<Value> values, Specialisation** known);
  /// Removes the values that determine no shape. Returns a text that differs if shapes differ.
  std::string keep_shapes(Declaration& declaration, const std::vector<Type>& types,
                          std::vector<Value>& values);

  Names& names_;
  std::deque<Specialisation> all_;
  std::map<std::tuple<const Declaration*, std::vector<Type>, std::string>, Specialisation*> known_;
  std::map<const Declaration*, std::vector<bool>> shapes_;
  std::map<const Declaration*, std::unique_ptr<Scope>> scopes_;
  std::deque<Declaration> inner_declarations_;
  std::map<const Function*, Declaration*> inner_;
  std::vector<Specialisation*> order_;
  std::size_t depth_ = 0;
};

/// Infers the types of all expressions and versions; reports expressions without a type.
void infer(Program& program, Specialisation& specialisation);
/// Finds the side effects of expressions and of the whole function, and whether debug builds check them.
/// Those of its callees must be known.
void find_effects(Specialisation& specialisation);
/// The start of an enumerate(...), or null.
inline const Expr* enumerate_start(const Expr& call) {
  if (call.items.size() < 3) return nullptr;
  return call.items[2]->kind == ExprKind::keyword ? call.items[2]->items[0] : call.items[2];
}
/// Finds the ranges of integers.
void find_ranges(Specialisation& specialisation);

}  // namespace quern::frontend
