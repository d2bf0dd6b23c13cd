// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontend/codegen/emitter_part.hpp"

namespace quern::frontend {

/// C++ for operators on numbers.
class OperatorCode : private EmitterPart {
 public:
  using EmitterPart::EmitterPart;

  Code unary(const Expr& expr);
  Code binary(const Expr& expr, Tok op, const Expr& left, const Expr& right);
  Code operate(Tok op, const Code& left, Type left_type, const Code& right, Type right_type, Type result,
               const Range& range, const Range& left_range, const Range& right_range);
  Code power(const Code& left, Type left_type, const Code& right, Type right_type, Type result);
  /// True for a sum, a difference or a product that may not fit the signed type.
  static bool may_wrap(Tok op, const Range& left, const Range& right, CppType cpp_type);
  Code checked_divisor(Tok op, const Code& code, const Expr& expr);

 private:
  Code negated(const Expr& expr, Code code, Type own);
  Code integer_operation(Tok op, Code left, Code right, CppType result, const Range& range,
                         const Range& left_range, const Range& right_range);
};

}  // namespace quern::frontend
