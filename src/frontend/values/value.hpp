// SPDX-License-Identifier: Apache-2.0
// Values known at compile time: numbers, types, functions, arrays of the module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/builtins/builtins.hpp"
#include "frontend/syntax/text.hpp"
#include "frontend/types/types.hpp"
#include "frontend/values/big_integer.hpp"

namespace quern::frontend {

/// Describes a value that kernels cannot use, since no Python runs here.
inline constexpr const char* kPythonsOwn = "a value that only Python computes";

/// The hint for functions, since a program cannot bind them.
inline constexpr const char* kFunctionHint =
    "define it once, or decide by constants of the file, by versions of numba and numpy, or inside of it";

/// The reason why the value of a file-level name is uncertain, with the lines that cause it.
struct Doubt {
  std::string why;  ///< "line 7 decides what it is, and that is not known here"
  std::vector<std::pair<Place, std::string>> notes;
  std::string hint;
  bool may_be_bound = false;  ///< the hint advises the program to bind the name
};

/// The kinds of host values that kernels cannot use.
enum class HostKind : std::uint8_t {
  imported,     ///< from another module; `text` is its path
  module_name,  ///< `__name__`
  computed,     ///< a value that only Python computes
  other,
};

struct Value {
  enum class Kind : std::uint8_t {
    unknown,
    integer,
    real,
    boolean,
    big,      ///< an integer that does not fit int64; in `big`
    complex,  ///< `real` and `imag`
    none,
    string,
    tuple,  ///< also a list
    array,
    dtype,  ///< `type` is the type that it denotes
    builtin,
    module_,
    function,
    host,  ///< a value of the host program that kernels cannot use; `text` describes it in messages
  };
  Kind kind = Kind::unknown;
  Type type = nullptr;  ///< type of a number or of an array's elements, if it is not the default
  std::int64_t integer = 0;
  double real = 0;
  double imag = 0;
  BigInteger big;
  std::string text;
  HostKind host_kind = HostKind::other;
  bool list = false;         ///< the tuple is a list
  bool version = false;      ///< the tuple is a version; `text` is its suffix, such as "rc1"
  std::vector<Value> items;  ///< items of a tuple; for an array, the elements in C order
  std::vector<std::int64_t> shape;
  const Builtin* builtin = nullptr;
  Declaration* function = nullptr;
  const Doubt* doubt = nullptr;  ///< for a host value: the reason why it is uncertain

  static Value of(std::int64_t number);
  static Value of(double number);
  static Value of(const BigInteger& number);
  static Value complex(double real, double imag);
  static Value boolean(bool truth);
  static Value host(std::string what, HostKind host_kind = HostKind::other);
  /// The value with the path `path` in another module.
  static Value imported(std::string path);
  /// A value that only Python computes.
  static Value computed(std::string what = kPythonsOwn);
  bool is_number() const { return kind == Kind::integer || kind == Kind::real || kind == Kind::boolean; }
  /// Also true for integers beyond int64 and for complex numbers.
  bool is_any_number() const { return is_number() || kind == Kind::big || kind == Kind::complex; }
  /// True if the file may change the value without rebinding its name.
  bool is_mutable() const;
  bool is_imported() const { return kind == Kind::host && host_kind == HostKind::imported; }
  bool is_imported(std::string_view path) const { return is_imported() && text == path; }
  bool is_whole() const { return kind == Kind::integer || kind == Kind::boolean || kind == Kind::big; }
  BigInteger as_whole() const { return kind == Kind::big ? big : BigInteger(integer); }
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
