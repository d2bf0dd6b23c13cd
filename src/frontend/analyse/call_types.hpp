// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "frontend/analyse/infer.hpp"

namespace quern::frontend {

/// The types of calls of the file's functions and of types; BuiltinCall handles built-ins.
class CallTypes : private InferenceContext {
 public:
  explicit CallTypes(Inference& inference) : InferenceContext(inference.context()), inference_(inference) {}

  Type call_function(const Expr& expr, Declaration& callee);
  /// float32(x), int64(x): a conversion. float32x4(1, 2, xy): a vector.
  Type call_dtype(const Expr& expr, Type to);

 private:
  Type call_external(const Expr& expr, const Declaration& callee);
  Type make_vector(const Expr& expr, Type to);
  /// The arguments of a call in the order of the function's parameters.
  struct Arguments {
    std::vector<Type> types;
    std::vector<Value> values;  ///< unknown if not known at compile time
    bool unknown = false;       ///< the type of some argument is not known yet, or is an error
  };
  bool bind_arguments(const Expr& expr, Declaration& callee, Arguments& out);
  bool match_arguments(const Expr& expr, Declaration& callee, Arguments& out);
  bool default_argument(const Expr& expr, Declaration& callee, std::size_t index, Arguments& out);

  Inference& inference_;
};

}  // namespace quern::frontend
