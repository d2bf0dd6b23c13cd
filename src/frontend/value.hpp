// SPDX-License-Identifier: Apache-2.0
// Values known at compile time: numbers, types, functions, arrays of the module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/builtins.hpp"
#include "frontend/text.hpp"
#include "frontend/types.hpp"
#include "frontend/whole.hpp"

namespace quern::frontend {

/// Describes a value that kernels cannot use, since no Python runs here.
inline constexpr const char* kPythonsOwn = "a value that only Python computes";

/// The hint for functions, since a program cannot bind them.
inline constexpr const char* kFunctionHint =
    "define it once, or decide by constants of the file, by versions of numba and numpy, or inside of it";

/// The reason why the meaning of a file-level name is uncertain, with the responsible lines.
struct Doubt {
  std::string why;  ///< "line 7 decides what it is, and that is not known here"
  std::vector<std::pair<Place, std::string>> notes;
  std::string hint;
};

struct Value {
  enum class Kind : std::uint8_t {
    unknown,
    integer,
    real,
    boolean,
    big,      ///< a whole number beyond int64; in `big`
    complex,  ///< `real` and `imag`
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
  double imag = 0;
  Whole big;
  std::string text;
  bool list = false;         ///< a tuple that is a list
  std::vector<Value> items;  ///< of a tuple; an array's elements in C order
  std::vector<std::int64_t> shape;
  const Builtin* builtin = nullptr;
  Declaration* function = nullptr;
  const Doubt* doubt = nullptr;  ///< of something of the host: it is not certain

  static Value of(std::int64_t number);
  static Value of(double number);
  static Value of(const Whole& number);
  static Value complex(double real, double imag);
  static Value boolean(bool truth);
  static Value host(std::string what);
  bool is_number() const { return kind == Kind::integer || kind == Kind::real || kind == Kind::boolean; }
  /// Those beyond int64 and complex ones, too.
  bool is_any_number() const { return is_number() || kind == Kind::big || kind == Kind::complex; }
  /// True if the file may change the value without rebinding its name.
  bool is_mutable() const;
  bool is_whole() const { return kind == Kind::integer || kind == Kind::boolean || kind == Kind::big; }
  Whole as_whole() const { return kind == Kind::big ? big : Whole(integer); }
  double as_real() const;
  bool is_zero() const;
};

/// The result of an operator on known numbers as Python computes it, or unknown.
Value fold(Tok op, const Value& a, const Value& b);
Value fold_unary(Tok op, const Value& a);
/// The result of int() for a float; unknown if it does not fit int64.
Value whole_part(double number);
/// True if the value has that type, so that it can replace the result of an operator on the device.
bool is_of(const Value& value, Type type);

}  // namespace quern::frontend
