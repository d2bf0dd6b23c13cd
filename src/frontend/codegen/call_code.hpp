// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontend/codegen/emitter_part.hpp"

namespace quern::frontend {

/// C++ for calls of the file's functions, of linked functions, and of types.
class CallCode : private EmitterPart {
 public:
  using EmitterPart::EmitterPart;

  Code call_expression(const Expr& expr);

 private:
  Code make_vector(const Expr& expr, Type to);
  Code call_external(const Expr& expr, const Declaration& callee);
  CppText captured_value(std::uint32_t version);
  Code call_function(const Expr& expr, const Specialisation& callee);
};

}  // namespace quern::frontend
