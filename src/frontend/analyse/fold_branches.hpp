// SPDX-License-Identifier: Apache-2.0
// Evaluates conditions whose outcome is known at compile time. Numba removes such branches before type
// inference, and Python's compiler removes constant operands of `and` and `or`. So types agree only if the
// same code is removed here: docs/language.md.
#pragma once

#include <optional>
#include <vector>

#include "frontend/analyse/program.hpp"

namespace quern::frontend {

class KnownOutcomes {
 public:
  KnownOutcomes(const Specialisation& specialisation, const TypeTable& types)
      : specialisation_(specialisation),
        scope_(*specialisation.scope),
        none_(types.none),
        fixed_(scope_.versions.size(), false) {}

  /// The outcome of a condition; nothing if it is not known.
  std::optional<bool> outcome(const Expr& condition) const;
  /// The outcome of a loop's condition at its first test: names have their values from before the loop.
  std::optional<bool> at_first_test(const Expr& condition);
  /// Records that the version has the value of the expression.
  void assign(std::uint32_t version, const Expr& value) { fixed_[version] = is_fixed(value); }

 private:
  std::optional<bool> about_none(const Expr& expr) const;
  std::optional<bool> comparison(const Expr& chain) const;
  bool is_fixed(const Expr& expr) const;
  const Value& fixed_value(const Expr& expr) const;
  std::uint32_t tested(const Expr& name) const;

  const Specialisation& specialisation_;
  const Scope& scope_;
  Type none_;
  std::vector<bool> fixed_;  ///< by version: is_fixed() of the assigned value
  bool first_test_ = false;
};

}  // namespace quern::frontend
