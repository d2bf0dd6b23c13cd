// SPDX-License-Identifier: Apache-2.0
// Pieces of CUDA C++, with their operator precedence and C++ type, which are needed to combine them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/cpp/cpp_text.hpp"
#include "frontend/types/types.hpp"

namespace quern::frontend {

/// The C++ type of an expression; `other` for everything except numbers.
enum class CppType : std::uint8_t {
  other,
  boolean,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f16,
  bf16,
  f32,
  f64,
  c64,
  c128
};

/// Precedences, the highest first.
enum class Precedence : std::uint8_t {
  primary,
  unary,
  times,
  plus,
  shift,
  relation,
  equality,
  bit_and,
  bit_xor,
  bit_or,
  logical_and,
  logical_or,
  conditional,
};

/// A number literal.
struct Literal {
  enum class Form : std::uint8_t {
    none,
    digits,    ///< such as 12; with another type it gets a suffix
    real,      ///< such as 1.5, of type double
    suffixed,  ///< such as 12LL, 1.5f
  };
  Form form = Form::none;
  bool negative = false;  ///< it follows a minus
  double value = 0;       ///< value of `digits` and `real` literals
};

struct Code {
  CppText text;
  Precedence precedence = Precedence::primary;
  CppType cpp_type = CppType::other;
  Literal literal;
  CppText pointer;      ///< the pointer in `(*pointer)`; otherwise empty
  Tok sign = Tok::end;  ///< the '+', '-' or '~' at the start of the text
  /// The unsigned operation in a text that wrapping() has converted back; otherwise empty
  CppText modular;
  Precedence modular_precedence = Precedence::primary;
};

CppType cpp_type_of(Type type);
const CppText& cpp_of(CppType cpp_type);
/// "float", "quern::c_array<float, 2>"
CppText type_text(Type type);

/// Returns a name that is as similar to the author's as possible and that neither C++ nor CUDA reserves.
std::string cpp_name(std::string_view name);

bool is_signed(CppType cpp_type);
bool is_integer(CppType cpp_type);
bool is_real(CppType cpp_type);
/// True for number types that C++ itself has and converts implicitly: not for halves and complex numbers.
bool is_plain(CppType cpp_type);
/// True for bool, int and smaller integers: C++ computes with them in int.
bool fits_int(CppType cpp_type);
/// The result of C++'s usual arithmetic conversions of two operands.
CppType promoted(CppType a, CppType b);

/// Returns the text, in parentheses if its precedence is below `wanted`.
CppText inside(const Code& code, Precedence wanted);
/// Converts the expression unless it has the type already; literals are rewritten.
Code convert(const Code& code, CppType to);
/// Converts operands only as far as C++ needs to compute in `to`. Halves and complex numbers are never
/// combined with other types.
void meet(Code& a, Code& b, CppType to);
/// Emits `a op b` with the necessary parentheses.
Code infix(Tok op, const Code& a, const Code& b, CppType cpp_type);
/// Emits a sum, a difference or a product in `to`, int or long long, that wraps: C++ computes with the
/// unsigned type, since compilers assume that signed numbers do not overflow.
Code wrapping(Tok op, const Code& a, const Code& b, CppType to);
/// The unsigned number that wrapping() has converted to `code`, or `code` itself.
Code modular(const Code& code);
Precedence precedence_of(Tok op);
/// Emits `function(arguments)`, for a function of CUDA, of quern's device headers or of the file.
Code call(std::string_view function, const std::vector<CppText>& arguments, CppType cpp_type);
/// `callee(arguments)`
Code call_of(const CppText& callee, const std::vector<CppText>& arguments, CppType cpp_type);
/// `type{parts}`
Code braced(const CppText& type, const std::vector<CppText>& parts);

/// Emits numbers as literals of int, long long, float or double.
Code integer_code(std::int64_t value);
Code real_code(double value, bool single);
/// `-operand`, `~operand`, `!operand`
Code prefix(Tok op, const Code& operand, CppType cpp_type);
/// `(*pointer)`
Code dereference(const CppText& pointer);
/// Emits the address of an object; for `(*pointer)`, the pointer.
CppText address_of(const Code& object);
/// `object.member`, or `pointer->member` of `(*pointer)`.
CppText member_of(const Code& object, std::string_view member);

std::string integer_literal(std::int64_t value);
std::string real_literal(double value, bool single);

}  // namespace quern::frontend
