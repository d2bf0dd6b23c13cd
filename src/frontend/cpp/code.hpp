// SPDX-License-Identifier: Apache-2.0
// Pieces of CUDA C++ with the facts needed to combine them: operator precedence and C++ type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/cpp/cpp_text.hpp"
#include "frontend/types/types.hpp"

namespace quern::frontend {

/// The C++ type of an expression; `other` for everything that is not a number.
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

/// From the tightest.
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

/// A number that is written out.
struct Literal {
  enum class Form : std::uint8_t {
    none,
    digits,    ///< 12: in another type it has a suffix
    real,      ///< 1.5, of type double
    suffixed,  ///< 12LL, 1.5f
  };
  Form form = Form::none;
  bool negative = false;  ///< it stands behind a minus
  double value = 0;       ///< of digits and real ones
};

struct Code {
  CppText text;
  Precedence precedence = Precedence::primary;
  CppType cpp_type = CppType::other;
  Literal literal;
  CppText pointer;      ///< of `(*pointer)`; else empty
  Tok sign = Tok::end;  ///< the '+', '-' or '~' that the text begins with
};

CppType cpp_type_of(Type type);
const CppText& cpp_of(CppType cpp_type);
/// "float", "quern::c_array<float, 2>"
CppText type_text(Type type);

/// A name that neither C++ nor CUDA reserves, as similar to the author's as possible.
std::string cpp_name(std::string_view name);

bool is_signed(CppType cpp_type);
bool is_integer(CppType cpp_type);
bool is_real(CppType cpp_type);
/// Numbers that C++ itself has and converts implicitly: neither halves nor complex ones.
bool is_plain(CppType cpp_type);
/// True for bool, int and smaller integers: C++ computes with them in int.
bool fits_int(CppType cpp_type);
/// The result of C++'s usual arithmetic conversions for two operands.
CppType promoted(CppType a, CppType b);

/// The text, in parentheses if it binds less tightly than `wanted`.
CppText inside(const Code& code, Precedence wanted);
/// Converted, unless it is of that type already; literals are written in it.
Code convert(const Code& code, CppType to);
/// Converts only as much as C++ needs to compute with both in `to`. Halves and complex numbers are not mixed
/// with other types.
void meet(Code& a, Code& b, CppType to);
/// `a op b` with the parentheses that it needs.
Code infix(Tok op, const Code& a, const Code& b, CppType cpp_type);
Precedence precedence_of(Tok op);
/// `function(arguments)`, of a function of CUDA, of quern's device headers or of the file.
Code call(std::string_view function, const std::vector<CppText>& arguments, CppType cpp_type);
/// `callee(arguments)`
Code call_of(const CppText& callee, const std::vector<CppText>& arguments, CppType cpp_type);
/// `type{parts}`
Code braced(const CppText& type, const std::vector<CppText>& parts);

/// Numbers as literals of int, long long, float or double.
Code integer_code(std::int64_t value);
Code real_code(double value, bool single);
/// `-operand`, `~operand`, `!operand`
Code prefix(Tok op, const Code& operand, CppType cpp_type);
/// `(*pointer)`
Code dereference(const CppText& pointer);
/// The address of an object: of `(*pointer)`, the pointer.
CppText address_of(const Code& object);
/// `object.member`, or `pointer->member` of `(*pointer)`.
CppText member_of(const Code& object, std::string_view member);

std::string integer_literal(std::int64_t value);
std::string real_literal(double value, bool single);

}  // namespace quern::frontend
