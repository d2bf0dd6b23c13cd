// SPDX-License-Identifier: Apache-2.0
// What is known before a kernel runs: numbers, types, functions, arrays of the module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/builtins.hpp"
#include "frontend/types.hpp"

namespace quern::frontend {

struct Value {
  enum class Kind : std::uint8_t {
    unknown,
    integer,
    real,
    boolean,
    none,
    string,
    tuple,  ///< a list, too
    array,
    dtype,  ///< `type` is the type that it stands for
    builtin,
    module_,
    function,
    host,  ///< something of the host program that kernels cannot use; `text` says what
  };
  Kind kind = Kind::unknown;
  Type type = nullptr;  ///< of a number or of an array's elements, where it is not the usual one
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<Value> items;  ///< of a tuple; an array's elements in C order
  std::vector<std::int64_t> shape;
  const Builtin* builtin = nullptr;
  Declaration* function = nullptr;

  static Value of(std::int64_t number);
  static Value of(double number);
  static Value boolean(bool truth);
  static Value host(std::string what);
  bool is_number() const { return kind == Kind::integer || kind == Kind::real || kind == Kind::boolean; }
  double as_real() const { return kind == Kind::real ? real : static_cast<double>(integer); }
};

/// The result of an operator on known numbers, or unknown. Integers are Python's as long as they fit 64 bits.
Value fold(Tok op, const Value& a, const Value& b);
Value fold_unary(Tok op, const Value& a);

}  // namespace quern::frontend
