// SPDX-License-Identifier: Apache-2.0
// The forms of a typed built-in: "f32 sinf(f32)", "(f64,i32) quern::frexp(f64)", "b
// isclose(f64,f64,tol:f64=0.5)".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/builtins/builtins.hpp"
#include "frontend/types/types.hpp"

namespace quern::frontend {

struct Form {
  struct Parameter {
    Type type = nullptr;
    std::string_view name;      ///< name of a keyword argument
    std::string_view fallback;  ///< the default value of an optional argument, in C++
  };
  Type result = nullptr;
  std::string_view cast;  ///< a cast before the call, such as "(int)"; otherwise empty
  std::string_view cuda;  ///< the callee; includes the cast if its result is converted, as in "(int)__brev"
  std::vector<Parameter> parameters;

  std::size_t positional() const;
};

/// A function with one form. Its rule converts the arguments, as for "u64 quern::random::next".
struct TypedFunction {
  Type result = nullptr;
  std::string_view cuda;
};
TypedFunction typed_function(TypeTable& table, const Builtin& row);

/// All forms, those for narrower types first.
std::vector<Form> forms_of(TypeTable& table, const Builtin& row);
/// The first form whose types represent all values of these positional arguments. If there is none, the last
/// of the forms that lose values of the fewest arguments.
std::optional<Form> choose_form(TypeTable& table, const Builtin& row, const std::vector<Type>& arguments);
/// The type with the code "f32" and similar; null for unknown codes.
Type type_of_code(const TypeTable& table, std::string_view code);
/// "float32, float32"
std::string parameters_text(const Form& form);

/// The type in which a function of two numbers computes. Numba provides these functions for floats only and
/// converts small integers to float32. With `whole_too` there is an integer form as well, and two integers
/// give float64.
Type real_operand2(const TypeTable& table, Type a, Type b, bool whole_too);
/// True if math.pow treats the exponent as a whole number, as ** does.
bool is_whole_exponent(Type base, Type exponent);

}  // namespace quern::frontend
