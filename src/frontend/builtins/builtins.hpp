// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace quern::frontend {

/// The rule of a built-in, which tells all passes what it means: a row of rules.def.
enum class Rule : std::uint8_t {
#define QUERN_RULE(rule, syntax, arguments, keywords, infer, emit, range, fold, effects, debug) rule,
#include "frontend/builtins/rules.def"
};

/// The syntax with which a kernel uses a built-in.
enum class Syntax : std::uint8_t {
  call,
  statement,  ///< a call that may be a C++ statement
  loop,       ///< a call in the line of a `for`
  method,     ///< a call of an attribute: x.conjugate()
  dim3,       ///< without parentheses, followed by .x, .y or .z
  integer,    ///< without parentheses: a number
};
/// The check of a call's arguments before the rule computes the type.
enum class Arguments : std::uint8_t {
  counted,  ///< there are as many as the row says, and each has a type
  seen,     ///< types are inferred, but arguments may be missing
  own,      ///< the rule checks them itself
};
/// The arguments that may be keyword arguments.
enum class Keywords : std::uint8_t { none, any, complex_parts, digits, start };
/// Side effects of a computation. Reading local variables is no effect.
enum class Effects : std::uint8_t { none, reads, writes };
/// The check of a call in debug builds: of an index, or that the second argument is not 0.
enum class DebugCheck : std::uint8_t { never, index, divisor };

struct RuleFacts {
  Syntax syntax;
  Arguments arguments;
  Keywords keywords;
  Effects effects;
  DebugCheck debug_check;
};
const RuleFacts& facts_of(Rule rule);

/// True for cuda.grid and cuda.gridsize, which return a number, or one for each axis.
inline bool is_grid(Rule rule) { return rule == Rule::grid || rule == Rule::grid_size; }

/// The module that has a built-in.
enum class BuiltinModule : std::uint8_t { python, operator_, math, cmath, numpy, numba, other };

/// A row of builtins.def.
struct Builtin {
  std::string_view path;  ///< "numba.cuda.grid"
  Rule rule;
  std::string_view cuda;
  std::uint8_t least;
  std::uint8_t most;
  std::string_view doc;

  /// The author's spelling: "cuda.grid", "len", "math.sqrt".
  std::string_view shown() const;
  const RuleFacts& facts() const { return facts_of(rule); }
  BuiltinModule module() const;
};

const Builtin* find_builtin(std::string_view path);
/// The name of the float32 counterpart of a function of real_functions.def: "sqrtf".
std::string_view single_function(const Builtin& row);
/// The name of quern's complex counterpart of a NumPy function: "quern::cmath::sqrt"; empty if there is none.
std::string_view complex_function(const Builtin& row);
/// The name of CUDA's float16 counterpart of a math function: "hsqrt"; empty if Numba has none.
std::string_view half_function(const Builtin& row);
std::optional<double> find_constant(std::string_view path);
/// True if `path` is a module for kernels that contains names.
bool is_module(std::string_view path);
/// The names directly below a module.
std::vector<std::string_view> names_in(std::string_view path);

}  // namespace quern::frontend
