// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontend/codegen/emitter_part.hpp"

namespace quern::frontend {

/// C++ for comparisons, conditions, `and` and `or`.
class TruthCode : private EmitterPart {
 public:
  using EmitterPart::EmitterPart;

  Code compare(const Expr& expr);
  Code compare_two(Tok op, const Expr& left, const Code& a, const Expr& right, const Code& b);
  Code logical(const Expr& expr);
  Code condition(const Expr& expr);
  Code condition_of(const Code& code, Type type);
  Code conditional(const Expr& expr);

 private:
  struct Comparison {
    CppText before;  // declares variables for the compared values
    CppText test;
  };
  bool written_twice(const Expr& expr) const;
  static Code joined(const std::vector<Comparison>& parts);
  Type compared(Type a, Type b) const;
  std::pair<Type, Type> compared_parts(Type a, Type b) const;
  static CppText tuple_as(const Code& tuple, Type from, Type to);
};

}  // namespace quern::frontend
