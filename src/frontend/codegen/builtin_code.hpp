// SPDX-License-Identifier: Apache-2.0
// CUDA C++ for calls of built-ins. Each name in the column `emit` of rules.def has a function.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "frontend/builtins/builtins.hpp"
#include "frontend/codegen/emit.hpp"

namespace quern::frontend {

/// A call of a built-in during code generation, as the functions of rules see it. It exists only during that.
class BuiltinCode {
 public:
  BuiltinCode(Emitter& with, const Expr& call, const Builtin& called)
      : emitter(with),
        expr(call),
        row(called),
        type(with.specialisation().type(call)),
        cpp_type(cpp_type_of(type)) {}

  Emitter& emitter;
  const Expr& expr;
  const Builtin& row;
  Type type;
  CppType cpp_type;  ///< of `type`

  /// The first argument is number 1.
  const Expr& argument(std::size_t i) const { return *expr.items[i]; }
  std::size_t count() const { return expr.items.size() - 1; }
  Type type_of(std::size_t i) const { return emitter.specialisation().type(argument(i)); }
  Code code(std::size_t i) const { return emitter.expression(argument(i)); }
  /// The converted argument as text.
  CppText as(std::size_t i, CppType to) const { return convert(code(i), to).text; }
  /// A call of the row's function with unconverted arguments.
  Code plain(CppType result) const {
    std::vector<CppText> arguments;
    for (std::size_t i = 1; i <= count(); ++i) arguments.push_back(code(i).text);
    return call(row.cuda, arguments, result);
  }
  TypeTable& table() const { return *emitter.unit().types; }
};

namespace emit_rules {
#define QUERN_RULE(rule, syntax, arguments, keywords, infer, emit, range, fold, effects, debug) \
  Code emit(const BuiltinCode& call);
#include "frontend/builtins/rules.def"
}  // namespace emit_rules

}  // namespace quern::frontend
