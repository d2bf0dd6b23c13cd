// SPDX-License-Identifier: Apache-2.0
// The types of calls of built-ins: a function for each name in the column `infer` of rules.def.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/analyse/infer.hpp"
#include "frontend/builtins/builtins.hpp"

namespace quern::frontend {

/// A call of a built-in while its type is found, for the functions of rules. It lives no longer than that.
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
  std::vector<const Expr*> args;  ///< those without a name
  std::vector<Type> types;        ///< of `args`
  TypeTable& table;
  Specialisation& specialisation;
  Names& names;

  struct Seen {
    bool unknown = false;  ///< the type of one is not known yet
    Type error = nullptr;  ///< of the last one with an error
  };
  /// Infers the types of all arguments.
  Seen see_arguments();
  /// An argument was given by a name that it does not have.
  bool refused_keyword() const { return refused_keyword_; }
  Type expression(const Expr& inner) { return inference_.expression(inner); }
  /// The type of the two arguments under an operator.
  Type binary(Tok op) { return inference_.binary_types(expr, op, types[0], types[1]); }

  /// Reports that the argument is not what the built-in takes, unless it fits.
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
