// SPDX-License-Identifier: Apache-2.0
// Types as in Numba. Types of one table are equal if their addresses are equal.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/syntax/token.hpp"
#include "quern/dtype.hpp"

namespace quern::frontend {

struct Declaration;
struct Builtin;
struct TypeInfo;
/// Null if nothing is known yet.
using Type = const TypeInfo*;

enum class TypeKind : std::uint8_t {
  error,  ///< an error that was reported
  none,
  boolean,
  integer,
  floating,
  complex,
  array,
  tuple,
  record,
  string,    ///< a literal; it has no value in a kernel
  dtype,     ///< a type as a value: float32
  function,  ///< a function of the file
  builtin,   ///< a row of builtins.def
  module_,   ///< `cuda`, `math`
  dim3,      ///< threadIdx and similar objects
  range,
  enumerate,
  zip,
  slice,
  ellipsis,
  group,   ///< cooperative groups: the grid
  vector,  ///< such as float32x4: its parts are x, y, z, w
};

struct Field {
  std::string name;
  Type type = nullptr;  ///< type of one element if `shape` is given
  std::uint32_t offset = 0;
  std::vector<std::int64_t> shape;  ///< for a field that is an array
};

struct TypeInfo {
  TypeKind kind = TypeKind::error;
  std::uint8_t bits = 0;  ///< bits of a number; for a complex number, of both parts
  bool is_signed = false;
  bool brain = false;       ///< bfloat16
  std::uint8_t ndim = 0;    ///< of an array; for a vector, the number of parts
  char layout = 'C';        ///< 'C', 'F' or 'A'
  bool read_only = false;   ///< an array that cannot be written
  Type element = nullptr;   ///< element of an array, vector, range or dtype
  std::vector<Type> items;  ///< items of a tuple; for enumerate and zip, the iterables
  std::vector<Field> fields;
  std::uint32_t size_bytes = 0;  ///< size of a record
  std::uint32_t weight = 1;      ///< for a tuple: the number of all items, including those of nested tuples
  const Declaration* function = nullptr;
  const Builtin* builtin = nullptr;
  std::string name;   ///< name of a record or built-in; path of a module
  std::string label;  ///< name of a record in CUDA C++
};

/// Creates types, each only once.
class TypeTable {
 public:
  TypeTable();

  Type error, none, boolean, string, slice, ellipsis, group;
  Type int8, int16, int32, int64, uint8, uint16, uint32, uint64;
  Type float16, bfloat16, float32, float64, complex64, complex128;

  Type of(Dtype dtype) const;
  Type integer(unsigned bits, bool is_signed) const;
  Type floating(unsigned bits) const;
  Type complex(unsigned bits) const { return bits <= 64 ? complex64 : complex128; }
  Type array(Type element, unsigned ndim, char layout, bool read_only = false);
  Type tuple(std::vector<Type> items);
  Type dtype(Type element);
  Type range(Type element);
  Type enumerate(Type of);
  Type zip(std::vector<Type> items);
  Type function(const Declaration* declaration);
  /// `shown` is the name in messages.
  Type builtin(const Builtin* row, std::string_view shown);
  /// The type of threadIdx and similar objects; `row` identifies it.
  Type dim3(const Builtin* row, std::string_view shown);
  Type module_(std::string path);
  Type record(std::vector<Field> fields, std::uint32_t size_bytes);
  Type vector(Type element, unsigned count);
  /// The type of "float32x4" and CUDA's "float4"; null if the name is not a vector type.
  Type vector_named(std::string_view name);
  /// "float32", "int_", "f4", ...: the names that Numba and NumPy give scalar types.
  Type scalar_named(std::string_view name) const;
  std::vector<std::string_view> scalar_names() const;

 private:
  Type intern(TypeInfo info);

  std::string label_for(const std::vector<Field>& fields) const;

  std::deque<TypeInfo> all_;
  std::unordered_map<std::string, Type> known_;
};

/// Numba's text for the type: "array(float32, 2d, C)", "Tuple(int64, float32)".
std::string text_of(Type type);
/// The size of one element in memory, in bytes.
std::uint32_t size_of(Type type);
/// The size of the whole field, in bytes.
std::uint32_t size_of(const Field& field);

inline bool is_integer(Type t) { return t->kind == TypeKind::integer; }
inline bool is_integral(Type t) { return t->kind == TypeKind::integer || t->kind == TypeKind::boolean; }
inline bool is_floating(Type t) { return t->kind == TypeKind::floating; }
inline bool is_complex(Type t) { return t->kind == TypeKind::complex; }
inline bool is_number(Type t) { return is_integral(t) || is_floating(t) || is_complex(t); }
inline bool is_array(Type t) { return t->kind == TypeKind::array; }
inline bool is_tuple(Type t) { return t->kind == TypeKind::tuple; }
inline bool is_record(Type t) { return t->kind == TypeKind::record; }
inline bool is_vector(Type t) { return t->kind == TypeKind::vector; }
inline bool is_error(Type t) { return t->kind == TypeKind::error; }
/// True if the type determines the value, so that no value exists at run time: functions, types, None, and
/// tuples of these.
bool is_valueless(Type t);
/// Larger tuples are rejected: their types would grow faster than the source.
inline constexpr std::uint32_t kMostItems = 1000;
/// True for a tuple with one or more elements, all of one type.
bool is_uniform(Type tuple);

/// The common type of two assignments that join, according to Numba; null if there is none.
Type unify(TypeTable& table, Type a, Type b);

/// The operand type and the result type of a binary operator on two numbers.
struct Operation {
  Type operand = nullptr;
  Type result = nullptr;
  Type exponent = nullptr;  ///< for a power with an integer exponent: the type of the right operand
};
/// Returns nothing if the operator does not accept these types. `op` is a binary operator or a comparison.
std::optional<Operation> operation(const TypeTable& table, Tok op, Type a, Type b);
/// The operator with this text: "+" of one or two operands, "not", "//".
Tok unary_operator(std::string_view text);
Tok binary_operator(std::string_view text);
/// The type of `op a`: +, -, ~ or not.
Type unary_result(const TypeTable& table, Tok op, Type a);
/// The type in which a real function of math computes `a`: float32 or float64.
Type real_operand(const TypeTable& table, Type a);
/// True if a value of type `from` may be assigned to a place of type `to`, with Numba's conversions.
bool converts(Type from, Type to);

}  // namespace quern::frontend
