// SPDX-License-Identifier: Apache-2.0
#include "frontend/cpp/code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>

namespace quern::frontend {
namespace {

constexpr std::string_view kReserved[] = {
#define QUERN_RESERVED(name) #name,
#include "frontend/cpp/reserved.def"
};

struct CppTypeRow {
  CppType cpp_type;
  std::string_view cpp;
  int rank;       // rank in C++'s arithmetic conversions
  bool one_word;  // one word, so that it can be followed by parentheses: int(x)
};
constexpr CppTypeRow kCppTypes[] = {
    {CppType::other, "", 0, true},
    {CppType::boolean, "bool", 1, true},
    {CppType::i8, "signed char", 1, false},
    {CppType::i16, "short", 1, true},
    {CppType::i32, "int", 1, true},
    {CppType::i64, "long long", 3, false},
    {CppType::u8, "unsigned char", 1, false},
    {CppType::u16, "unsigned short", 1, false},
    {CppType::u32, "unsigned", 2, true},
    {CppType::u64, "unsigned long long", 4, false},
    {CppType::f16, "__half", 5, true},
    {CppType::bf16, "__nv_bfloat16", 5, true},
    {CppType::f32, "float", 6, true},
    {CppType::f64, "double", 7, true},
    {CppType::c64, "quern::complex<float>", 8, true},
    {CppType::c128, "quern::complex<double>", 9, true},
};
const CppTypeRow& row_of(CppType cpp_type) { return kCppTypes[static_cast<std::size_t>(cpp_type)]; }

struct Operator {
  Tok op;
  std::string_view cpp;
  Precedence precedence;
};
constexpr Operator kOperators[] = {
    {Tok::plus, "+", Precedence::plus},
    {Tok::minus, "-", Precedence::plus},
    {Tok::times, "*", Precedence::times},
    {Tok::divide, "/", Precedence::times},
    {Tok::floor_divide, "/", Precedence::times},
    {Tok::mod, "%", Precedence::times},
    {Tok::left_shift, "<<", Precedence::shift},
    {Tok::right_shift, ">>", Precedence::shift},
    {Tok::bit_and, "&", Precedence::bit_and},
    {Tok::bit_or, "|", Precedence::bit_or},
    {Tok::bit_xor, "^", Precedence::bit_xor},
    {Tok::less, "<", Precedence::relation},
    {Tok::less_equal, "<=", Precedence::relation},
    {Tok::greater, ">", Precedence::relation},
    {Tok::greater_equal, ">=", Precedence::relation},
    {Tok::equal, "==", Precedence::equality},
    {Tok::not_equal, "!=", Precedence::equality},
    {Tok::k_and, "&&", Precedence::logical_and},
    {Tok::k_or, "||", Precedence::logical_or},
};
const Operator& operator_of(Tok op) {
  return *std::find_if(std::begin(kOperators), std::end(kOperators),
                       [&](const Operator& row) { return row.op == op; });
}

Precedence tighter(Precedence p) {
  return p == Precedence::primary ? p : static_cast<Precedence>(static_cast<int>(p) - 1);
}

// Types whose integer literals have a suffix.
struct Suffix {
  CppType to;
  std::string_view suffix;
  // a negative literal may have the suffix; not for unsigned types, where the minus would apply after the
  // conversion
  bool of_negative;
};
constexpr Suffix kSuffixes[] = {
    {CppType::i64, "LL", true}, {CppType::u64, "ULL", false}, {CppType::u32, "u", false},
    {CppType::f64, ".0", true}, {CppType::f32, ".0f", true},
};

/// Returns the literal in the type, or nothing if it needs a cast.
std::optional<Code> rewritten(const Code& code, CppType to) {
  const Literal& literal = code.literal;
  if (literal.form == Literal::Form::digits)
    for (const Suffix& row : kSuffixes)
      if (row.to == to && (row.of_negative || !literal.negative)) {
        const Literal::Form form = to == CppType::f64 ? Literal::Form::real : Literal::Form::suffixed;
        return Code{code.text + row.suffix,
                    code.precedence,
                    to,
                    {form, literal.negative, literal.value},
                    {},
                    code.sign};
      }
  // A float literal that is exact in float32 is written as a float32 literal.
  const bool exact = static_cast<double>(static_cast<float>(literal.value)) == literal.value;
  if (literal.form == Literal::Form::real && to == CppType::f32 && code.cpp_type == CppType::f64 && exact)
    return Code{code.text + "f", code.precedence, to, {Literal::Form::suffixed, literal.negative, 0}, {},
                code.sign};
  return std::nullopt;
}

}  // namespace

CppType cpp_type_of(Type type) {
  switch (type->kind) {
    case TypeKind::boolean:
      return CppType::boolean;
    case TypeKind::integer:
      switch (type->bits) {
        case 8:
          return type->is_signed ? CppType::i8 : CppType::u8;
        case 16:
          return type->is_signed ? CppType::i16 : CppType::u16;
        case 32:
          return type->is_signed ? CppType::i32 : CppType::u32;
        default:
          return type->is_signed ? CppType::i64 : CppType::u64;
      }
    case TypeKind::floating:
      return type->brain        ? CppType::bf16
             : type->bits == 16 ? CppType::f16
             : type->bits == 32 ? CppType::f32
                                : CppType::f64;
    case TypeKind::complex:
      return type->bits == 64 ? CppType::c64 : CppType::c128;
    default:
      return CppType::other;
  }
}

std::string cpp_name(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x80)
      text += c;
    else
      text += fmt::format("x{:02x}", static_cast<unsigned char>(c));
  }
  static const std::unordered_set<std::string_view> kTaken(std::begin(kReserved), std::end(kReserved));
  if (kTaken.contains(text)) return text + "_";
  // Names that begin with two underscores are reserved for the compiler.
  if (text.starts_with("__")) text = "python" + text;
  return text;
}

const CppText& cpp_of(CppType cpp_type) {
  static const std::vector<CppText> texts = [] {
    std::vector<CppText> made;
    for (const CppTypeRow& row : kCppTypes) made.push_back(device_name(row.cpp));
    return made;
  }();
  return texts[static_cast<std::size_t>(cpp_type)];
}

namespace {

/// Views with one and with two dimensions have a separate header, which NVRTC reads faster.
CppText array_template(Type type) {
  if (type->layout == 'A') return device_name("quern::array");
  if (type->layout == 'F') return device_name("quern::f_array");
  if (type->ndim == 1 || type->ndim == 2) return device_name("quern::c_array");
  return {"quern::c_array", DeviceHeader::layout};
}

}  // namespace

CppText type_text(Type type) {
  if (is_valueless(type)) return "void";
  switch (type->kind) {
    case TypeKind::array:
      return cpp_text("{}<{}{}, {}>", array_template(type), type->read_only ? "const " : "",
                      type_text(type->element), type->ndim);
    case TypeKind::tuple: {
      std::vector<CppText> items;
      for (Type item : type->items) items.push_back(type_text(item));
      return cpp_text("{}<{}>", device_name("quern::tuple"), join(items, ", "));
    }
    case TypeKind::record:
      return cpp_name(type->label);
    case TypeKind::vector:
      return cpp_text("{}<{}, {}>", device_name("quern::vector"), type_text(type->element), type->ndim);
    case TypeKind::group:
      return device_name("cooperative_groups::grid_group");
    default:
      return cpp_of(cpp_type_of(type));
  }
}

bool is_signed(CppType c) {
  return c == CppType::i8 || c == CppType::i16 || c == CppType::i32 || c == CppType::i64;
}
bool is_integer(CppType c) { return c >= CppType::boolean && c <= CppType::u64; }
bool is_plain(CppType c) { return is_integer(c) || c == CppType::f32 || c == CppType::f64; }
bool is_real(CppType c) { return c >= CppType::f16 && c <= CppType::f64; }
bool fits_int(CppType c) {
  return c == CppType::boolean || c == CppType::i8 || c == CppType::i16 || c == CppType::i32 ||
         c == CppType::u8 || c == CppType::u16;
}

CppType promoted(CppType a, CppType b) {
  if (fits_int(a) && fits_int(b)) return CppType::i32;
  return row_of(a).rank >= row_of(b).rank ? a : b;
}

CppText inside(const Code& code, Precedence wanted) {
  return code.precedence <= wanted ? code.text : cpp_text("({})", code.text);
}

Code convert(const Code& code, CppType to) {
  if (code.cpp_type == to || to == CppType::other) return code;
  // A type that is not wider holds low bits, and those are the unsigned number's.
  const bool widens = code.cpp_type == CppType::i32 && (to == CppType::i64 || to == CppType::u64);
  if (!code.modular.empty() && is_integer(to) && !widens) return convert(modular(code), to);
  if (std::optional<Code> literal = rewritten(code, to)) return *std::move(literal);
  const CppText& type = cpp_of(to);
  if (to == CppType::f16 || to == CppType::bf16)
    return {cpp_text("{}({})", type,
                     code.cpp_type == CppType::f32 ? code.text : cpp_text("float({})", code.text)),
            Precedence::primary, to};
  if ((code.cpp_type == CppType::f16 || code.cpp_type == CppType::bf16) && to != CppType::f32)
    return convert({cpp_text("float({})", code.text), Precedence::primary, CppType::f32}, to);
  if (row_of(to).one_word) return {cpp_text("{}({})", type, code.text), Precedence::primary, to};
  return {cpp_text("({}){}", type, inside(code, Precedence::unary)), Precedence::unary, to};
}

void meet(Code& a, Code& b, CppType to) {
  const bool plain = is_plain(a.cpp_type) && is_plain(b.cpp_type) && is_plain(to);
  if (plain && promoted(a.cpp_type, b.cpp_type) == to) return;
  // If one operand is converted, C++ converts the other, unless that would round it first.
  const bool left_fits = a.cpp_type == to || is_integer(a.cpp_type) || to == CppType::f64;
  a = convert(a, to);
  if (!plain || !left_fits) b = convert(b, to);
}

Precedence precedence_of(Tok op) { return operator_of(op).precedence; }

// Emits `a op b`. Parentheses are added for & | ^ << beside other operators, since compilers warn about them
// and readers misread them.
Code infix(Tok op, const Code& a, const Code& b, CppType cpp_type) {
  const Operator& row = operator_of(op);
  const bool bits = row.precedence == Precedence::shift ||
                    (row.precedence >= Precedence::bit_and && row.precedence <= Precedence::bit_or);
  const Precedence left = bits ? Precedence::unary : row.precedence;
  const Precedence right = bits ? Precedence::unary : tighter(row.precedence);
  return {cpp_text("{} {} {}", inside(a, left), row.cpp, inside(b, right)), row.precedence, cpp_type};
}

Code modular(const Code& code) {
  if (code.modular.empty()) return code;
  return {code.modular, code.modular_precedence, code.cpp_type == CppType::i64 ? CppType::u64 : CppType::u32};
}

Code wrapping(Tok op, const Code& a, const Code& b, CppType to) {
  const CppType in = to == CppType::i64 ? CppType::u64 : CppType::u32;
  // An unsigned int would not become the long long that the int becomes.
  const auto low_bits = [&](const Code& of) {
    return in == CppType::u64 && of.cpp_type != to ? of : modular(of);
  };
  Code left = low_bits(a), right = low_bits(b);
  for (Code* side : {&left, &right})
    if (row_of(side->cpp_type).rank > row_of(in).rank) *side = convert(*side, in);
  // The conversion of one operand converts the other.
  if (promoted(left.cpp_type, right.cpp_type) != in) {
    Code& side = left.literal.form == Literal::Form::none ? left : right;
    side = convert(side, in);
  }
  const Code whole = infix(op, left, right, in);
  Code result = convert(whole, to);
  result.modular = whole.text;
  result.modular_precedence = whole.precedence;
  return result;
}

Code prefix(Tok op, const Code& operand, CppType cpp_type) {
  const std::string_view sign = op == Tok::k_not ? "!" : text_of(op);
  const bool doubled = operand.sign == op && operand.precedence <= Precedence::unary;
  const std::string_view gap = doubled ? " " : "";  // - -x is not --x
  Code result{cpp_text("{}{}{}", sign, gap, inside(operand, Precedence::unary)), Precedence::unary, cpp_type};
  if (op != Tok::k_not) result.sign = op;
  const Literal& literal = operand.literal;
  const bool whole = literal.form == Literal::Form::digits || literal.form == Literal::Form::real;
  if (op == Tok::minus && whole && !literal.negative) result.literal = {literal.form, true, -literal.value};
  return result;
}

Code dereference(const CppText& pointer) {
  return {cpp_text("(*{})", pointer), Precedence::primary, CppType::other, {}, pointer};
}

CppText address_of(const Code& object) {
  return object.pointer.empty() ? "&" + inside(object, Precedence::primary) : object.pointer;
}

CppText member_of(const Code& object, std::string_view member) {
  return object.pointer.empty() ? cpp_text("{}.{}", inside(object, Precedence::primary), member)
                                : cpp_text("{}->{}", object.pointer, member);
}

Code call_of(const CppText& callee, const std::vector<CppText>& arguments, CppType cpp_type) {
  return {cpp_text("{}({})", callee, join(arguments, ", ")), Precedence::primary, cpp_type};
}

Code call(std::string_view function, const std::vector<CppText>& arguments, CppType cpp_type) {
  return call_of(device_name(function), arguments, cpp_type);
}

Code braced(const CppText& type, const std::vector<CppText>& parts) {
  return {cpp_text("{}{{{}}}", type, join(parts, ", ")), Precedence::primary, CppType::other};
}

std::string integer_literal(std::int64_t value) {
  if (value == INT64_MIN) return "(-9223372036854775807LL - 1)";
  if (value > INT32_MAX || value < INT32_MIN) return fmt::format("{}LL", value);
  if (value == INT32_MIN) return "(-2147483647 - 1)";
  return fmt::format("{}", value);
}

Code integer_code(std::int64_t value) {
  const bool narrow = value >= INT32_MIN && value <= INT32_MAX;
  // The least numbers are written as differences, since C++ has no literals for them.
  const bool difference = value == INT32_MIN || value == INT64_MIN;
  const Literal::Form form = difference ? Literal::Form::none
                             : narrow   ? Literal::Form::digits
                                        : Literal::Form::suffixed;
  return {integer_literal(value),
          value < 0 && value != INT32_MIN ? Precedence::unary : Precedence::primary,
          narrow ? CppType::i32 : CppType::i64,
          {form, value < 0, static_cast<double>(value)},
          {},
          value < 0 && !difference ? Tok::minus : Tok::end};
}

Code real_code(double value, bool single) {
  const bool finite = std::isfinite(single ? static_cast<double>(static_cast<float>(value)) : value);
  const Literal::Form form = !finite  ? Literal::Form::none
                             : single ? Literal::Form::suffixed
                                      : Literal::Form::real;
  return {real_literal(value, single),
          value < 0 ? Precedence::unary : Precedence::primary,
          single ? CppType::f32 : CppType::f64,
          {form, std::signbit(value), value},
          {},
          std::signbit(value) && !std::isnan(value) ? Tok::minus : Tok::end};
}

std::string real_literal(double value, bool single) {
  const std::string_view suffix = single ? "f" : "";
  if (std::isnan(value))
    return single ? "__int_as_float(0x7fc00000)" : "__longlong_as_double(0x7ff8000000000000LL)";
  if (std::isinf(value)) {
    const std::string_view text =
        single ? "__int_as_float(0x7f800000)" : "__longlong_as_double(0x7ff0000000000000LL)";
    return fmt::format("{}{}", value < 0 ? "-" : "", text);
  }
  std::string text = single ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + std::string(suffix);
}

}  // namespace quern::frontend
