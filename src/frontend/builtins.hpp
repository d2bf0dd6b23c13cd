// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace quern::frontend {

/// Rules for the result type of a built-in and for its CUDA C++. infer_call.cpp and emit_call.cpp have a case
/// for each.
enum class Rule : std::uint8_t {
  absolute,
  atomic,
  atomic_cas,
  atomic_integer,
  atomic_swap,
  atomic_unsigned,
  ballot,
  bit_reverse,
  block_vote,
  clip,
  clock,
  conjugate,
  const_array,
  dim3,
  divmod,
  enumerate,
  extremum,
  find_first,
  frexp,
  grid,
  grid_sync,
  int_value,
  lane_mask,
  ldexp,
  len,
  load_hint,
  local_array,
  logarithm,
  match_all,
  match_any,
  modf,
  nanosleep,
  operator1,
  operator2,
  over_tuple,
  part,
  power,
  predicate,
  print,
  random,
  range,
  real1,
  real2,
  real3,
  roc_dims,
  roc_fence,
  roc_place,
  round,
  same_integer,
  select,
  shared_array,
  shuffle,
  sign,
  square,
  statement,
  store_hint,
  syncwarp,
  this_grid,
  to_bool,
  to_complex,
  to_float,
  to_int,
  truths,
  typed,
  warp_vote,
  zip,
};

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
};

const Builtin* find_builtin(std::string_view path);
/// The name of quern's complex counterpart of a NumPy function: "quern::cmath::sqrt"; empty if there is none.
std::string_view complex_function(const Builtin& row);
/// The name of CUDA's float16 counterpart of a math function: "hsqrt"; empty if Numba has none.
std::string_view half_function(const Builtin& row);
std::optional<double> find_constant(std::string_view path);
/// Is there anything below `path`: is it a module as far as kernels see it?
bool is_module(std::string_view path);
/// The names directly below a module.
std::vector<std::string_view> names_in(std::string_view path);

}  // namespace quern::frontend
