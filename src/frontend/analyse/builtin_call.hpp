// SPDX-License-Identifier: Apache-2.0
// The types of calls of built-ins. Each name in the column `infer` of rules.def has a function.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/analyse/infer.hpp"
#include "frontend/builtins/builtins.hpp"

namespace quern::frontend {

/// A call of a built-in during type inference, as the functions of rules see it. It exists only during that.
class BuiltinCall : private InferenceContext {
 public:
  BuiltinCall(Inference& inference, const Expr& call, const Builtin& called)
      : InferenceContext(inference.context()),
        expr(call),
        row(called),
        table(types_),
        specialisation(specialisation_),
        names(program_.names()),
        inference_(inference) {}

  const Expr& expr;
  const Builtin& row;
  std::vector<const Expr*> args;  ///< arguments without a keyword
  std::vector<Type> types;        ///< of `args`
  TypeTable& table;
  Specialisation& specialisation;
  Names& names;

  struct Seen {
    bool unknown = false;  ///< the type of some argument is not known yet
    Type error = nullptr;  ///< type of the last argument with an error
  };
  /// Infers the types of all arguments.
  Seen see_arguments();
  /// True if the call has a keyword that the function does not have.
  bool refused_keyword() const { return refused_keyword_; }
  Type expression(const Expr& inner) { return inference_.expression(inner); }
  /// The type of the binary operator `op` on the two arguments.
  Type binary(Tok op) { return inference_.binary_types(expr, op, types[0], types[1]); }

  /// Returns true if the argument fits; otherwise reports that the built-in requires `wanted`.
  bool wants(std::size_t i, bool fits, const std::string& wanted) {
    return wants(*args[i], types[i], fits, wanted);
  }
  using InferenceContext::wants;
  bool number(std::size_t i) {
    return wants(i, is_number(types[i]) && !is_complex(types[i]),
                 fmt::format("{} takes numbers", row.shown()));
  }
  bool whole(std::size_t i) {
    return wants(i, is_integral(types[i]), fmt::format("{} takes whole numbers here", row.shown()));
  }
  using InferenceContext::fail;
  using InferenceContext::refused;
  using InferenceContext::shown;

 private:
  Inference& inference_;
  bool refused_keyword_ = false;
};

namespace infer_rules {
#define QUERN_RULE(rule, syntax, arguments, keywords, infer, emit, range, fold, effects, debug) \
  Type infer(BuiltinCall& call);
#include "frontend/builtins/rules.def"
}  // namespace infer_rules

}  // namespace quern::frontend
