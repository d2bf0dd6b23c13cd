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

struct Row {
  CppType cpp_type;
  std::string_view cpp;
  int rank;  // of C++'s arithmetic conversions
};
constexpr Row kCppTypes[] = {
    {CppType::other, "", 0},
    {CppType::boolean, "bool", 1},
    {CppType::i8, "signed char", 1},
    {CppType::i16, "short", 1},
    {CppType::i32, "int", 1},
    {CppType::i64, "long long", 3},
    {CppType::u8, "unsigned char", 1},
    {CppType::u16, "unsigned short", 1},
    {CppType::u32, "unsigned", 2},
    {CppType::u64, "unsigned long long", 4},
    {CppType::f16, "__half", 5},
    {CppType::bf16, "__nv_bfloat16", 5},
    {CppType::f32, "float", 6},
    {CppType::f64, "double", 7},
    {CppType::c64, "quern::complex<float>", 8},
    {CppType::c128, "quern::complex<double>", 9},
};
const Row& row_of(CppType cpp_type) { return kCppTypes[static_cast<std::size_t>(cpp_type)]; }

// Maps a word of the emitted code to the header that declares it.
struct Header {
  std::string_view word;
  std::string_view header;
};
constexpr Header kHeaders[] = {
    {"quern::roc::", "quern/cuda/roc.cuh"},
    {"quern::array<", "quern/cuda/array.cuh"},
    {"quern::f_array<", "quern/cuda/layout.cuh"},
    {"quern::view(", "quern/cuda/layout.cuh"},
    {"quern::wrap(", "quern/cuda/wrap.cuh"},
    {"quern::dynamic_shared<", "quern/cuda/layout.cuh"},
    {"quern::subview<", "quern/cuda/view.cuh"},
    {"quern::slice", "quern/cuda/view.cuh"},
    {"quern::fill(", "quern/cuda/view.cuh"},
    {"quern::copy(", "quern/cuda/view.cuh"},
    {"quern::copy<", "quern/cuda/view.cuh"},
    {"quern::transpose", "quern/cuda/view.cuh"},
    {"quern::tuple<", "quern/cuda/tuple.cuh"},
    {"quern::item", "quern/cuda/tuple.cuh"},
    {"quern::shape(", "quern/cuda/tuple.cuh"},
    {"quern::strides(", "quern/cuda/tuple.cuh"},
    {"quern::range<", "quern/cuda/range.cuh"},
    {"quern::complex<", "quern/cuda/complex.cuh"},
    {"quern::floor_div(", "quern/cuda/arithmetic.cuh"},
    {"quern::floor_mod(", "quern/cuda/arithmetic.cuh"},
    {"quern::power(", "quern/cuda/arithmetic.cuh"},
    {"quern::round", "quern/cuda/arithmetic.cuh"},
    {"quern::sign(", "quern/cuda/arithmetic.cuh"},
    {"quern::lesser(", "quern/cuda/arithmetic.cuh"},
    {"quern::greater(", "quern/cuda/arithmetic.cuh"},
    {"quern::square(", "quern/cuda/arithmetic.cuh"},
    {"quern::degrees(", "quern/cuda/arithmetic.cuh"},
    {"quern::radians(", "quern/cuda/arithmetic.cuh"},
    {"quern::frexp(", "quern/cuda/parts.cuh"},
    {"quern::modf(", "quern/cuda/parts.cuh"},
    {"quern::either(", "quern/cuda/arithmetic.cuh"},
    {"quern::both(", "quern/cuda/arithmetic.cuh"},
    {"quern::end_thread(", "quern/cuda/arithmetic.cuh"},
    {"quern::atomic_", "quern/cuda/atomic.cuh"},
    {"quern::lane_id(", "quern/cuda/warp.cuh"},
    {"quern::lanemask_lt(", "quern/cuda/warp.cuh"},
    {"quern::equal_sync(", "quern/cuda/warp.cuh"},
    {"quern::match_all(", "quern/cuda/match.cuh"},
    {"quern::popc(", "quern/cuda/warp.cuh"},
    {"quern::clz(", "quern/cuda/warp.cuh"},
    {"quern::brev(", "quern/cuda/warp.cuh"},
    {"quern::ffs(", "quern/cuda/warp.cuh"},
    {"quern::minimum(", "quern/cuda/number.cuh"},
    {"quern::maximum(", "quern/cuda/number.cuh"},
    {"quern::heaviside(", "quern/cuda/number.cuh"},
    {"quern::logaddexp", "quern/cuda/number.cuh"},
    {"quern::sinc(", "quern/cuda/number.cuh"},
    {"quern::reciprocal(", "quern/cuda/number.cuh"},
    {"quern::spacing(", "quern/cuda/number.cuh"},
    {"quern::ulp(", "quern/cuda/number.cuh"},
    {"quern::gcd(", "quern/cuda/number.cuh"},
    {"quern::lcm(", "quern/cuda/number.cuh"},
    {"quern::unsigned_gcd(", "quern/cuda/number.cuh"},
    {"quern::unsigned_lcm(", "quern/cuda/number.cuh"},
    {"quern::isqrt(", "quern/cuda/number.cuh"},
    {"quern::factorial(", "quern/cuda/number.cuh"},
    {"quern::comb(", "quern/cuda/number.cuh"},
    {"quern::perm(", "quern/cuda/number.cuh"},
    {"quern::isclose", "quern/cuda/number.cuh"},
    {"quern::prod(", "quern/cuda/fold.cuh"},
    {"quern::fsum(", "quern/cuda/fold.cuh"},
    {"quern::dist(", "quern/cuda/fold.cuh"},
    {"quern::sumprod(", "quern/cuda/fold.cuh"},
    {"quern::cmath::", "quern/cuda/cmath.cuh"},
    {"quern::conjugate(", "quern/cuda/complex.cuh"},
    {"quern::vector<", "quern/cuda/vector.cuh"},
    {"quern::field<", "quern/cuda/view.cuh"},
    {"quern::random::", "quern/cuda/random.cuh"},
    {"quern::libdevice::", "quern/cuda/libdevice.cuh"},
    {"quern::debug::", "quern/cuda/debug.cuh"},
    {"quern::htanh(", "quern/cuda/half.cuh"},
    {"cooperative_groups::", "quern/cuda/cg.cuh"},
    {"__half", "cuda_fp16.h"},
    {"__nv_bfloat16", "cuda_bf16.h"},
};

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

// Types that decimal digits are written in by a suffix.
struct Suffix {
  CppType to;
  std::string_view suffix;
  bool of_negative;  // not of unsigned types, where the minus would stand behind the conversion
};
constexpr Suffix kSuffixes[] = {
    {CppType::i64, "LL", true}, {CppType::u64, "ULL", false}, {CppType::u32, "u", false},
    {CppType::f64, ".0", true}, {CppType::f32, ".0f", true},
};

/// The literal in the type; nothing if it takes a cast.
std::optional<Code> rewritten(const Code& code, CppType to) {
  const Literal& literal = code.literal;
  if (literal.form == Literal::Form::digits)
    for (const Suffix& row : kSuffixes)
      if (row.to == to && (row.of_negative || !literal.negative)) {
        const Literal::Form form = to == CppType::f64 ? Literal::Form::real : Literal::Form::suffixed;
        return Code{code.text + std::string(row.suffix),
                    code.precedence,
                    to,
                    {form, literal.negative, literal.value},
                    {}};
      }
  // A float literal that is exact in float32 is written as one.
  const bool exact = static_cast<double>(static_cast<float>(literal.value)) == literal.value;
  if (literal.form == Literal::Form::real && to == CppType::f32 && code.cpp_type == CppType::f64 && exact)
    return Code{code.text + "f", code.precedence, to, {Literal::Form::suffixed, literal.negative, 0}, {}};
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
  // Names with two underscores in front are the compiler's.
  if (text.starts_with("__")) text = "python" + text;
  return text;
}

std::string_view cpp_of(CppType cpp_type) { return row_of(cpp_type).cpp; }

std::string type_text(Type type) {
  if (is_valueless(type)) return "void";
  switch (type->kind) {
    case TypeKind::array: {
      const std::string element = (type->read_only ? "const " : "") + type_text(type->element);
      const std::string_view name = type->layout == 'C'   ? "c_array"
                                    : type->layout == 'F' ? "f_array"
                                                          : "array";
      return fmt::format("quern::{}<{}, {}>", name, element, type->ndim);
    }
    case TypeKind::tuple: {
      std::string items;
      for (Type item : type->items) items += (items.empty() ? "" : ", ") + type_text(item);
      return fmt::format("quern::tuple<{}>", items);
    }
    case TypeKind::record:
      return cpp_name(type->label);
    case TypeKind::vector:
      return fmt::format("quern::vector<{}, {}>", type_text(type->element), type->ndim);
    case TypeKind::group:
      return "cooperative_groups::grid_group";
    default:
      return std::string(cpp_of(cpp_type_of(type)));
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

std::string inside(const Code& code, Precedence wanted) {
  return code.precedence <= wanted ? code.text : fmt::format("({})", code.text);
}

Code convert(const Code& code, CppType to) {
  if (code.cpp_type == to || to == CppType::other) return code;
  if (std::optional<Code> literal = rewritten(code, to)) return *std::move(literal);
  const std::string_view type = cpp_of(to);
  if (to == CppType::f16 || to == CppType::bf16)
    return {fmt::format("{}({})", type,
                        code.cpp_type == CppType::f32 ? code.text : fmt::format("float({})", code.text)),
            Precedence::primary, to};
  if ((code.cpp_type == CppType::f16 || code.cpp_type == CppType::bf16) && to != CppType::f32)
    return convert({fmt::format("float({})", code.text), Precedence::primary, CppType::f32}, to);
  if (type.find(' ') == std::string_view::npos || to == CppType::c64 || to == CppType::c128)
    return {fmt::format("{}({})", type, code.text), Precedence::primary, to};
  return {fmt::format("({}){}", type, inside(code, Precedence::unary)), Precedence::unary, to};
}

void meet(Code& a, Code& b, CppType to) {
  const bool plain = is_plain(a.cpp_type) && is_plain(b.cpp_type) && is_plain(to);
  if (plain && promoted(a.cpp_type, b.cpp_type) == to) return;
  // One converted operand takes the other along, unless that would round it on the way.
  const bool left_fits = a.cpp_type == to || is_integer(a.cpp_type) || to == CppType::f64;
  a = convert(a, to);
  if (!plain || !left_fits) b = convert(b, to);
}

Precedence precedence_of(Tok op) { return operator_of(op).precedence; }

// `a op b`; compilers warn of & | ^ << beside other operators, and people misread them: parentheses there.
Code infix(Tok op, const Code& a, const Code& b, CppType cpp_type) {
  const Operator& row = operator_of(op);
  const bool bits = row.precedence == Precedence::shift ||
                    (row.precedence >= Precedence::bit_and && row.precedence <= Precedence::bit_or);
  const Precedence left = bits ? Precedence::unary : row.precedence;
  const Precedence right = bits ? Precedence::unary : tighter(row.precedence);
  return {fmt::format("{} {} {}", inside(a, left), row.cpp, inside(b, right)), row.precedence, cpp_type};
}

Code prefix(Tok op, const Code& operand, CppType cpp_type) {
  const std::string_view sign = op == Tok::k_not ? "!" : text_of(op);
  const std::string text = inside(operand, Precedence::unary);
  const std::string_view gap = text.starts_with(sign) && op != Tok::k_not ? " " : "";  // - -x is not --x
  Code result{fmt::format("{}{}{}", sign, gap, text), Precedence::unary, cpp_type};
  const Literal& literal = operand.literal;
  const bool whole = literal.form == Literal::Form::digits || literal.form == Literal::Form::real;
  if (op == Tok::minus && whole && !literal.negative) result.literal = {literal.form, true, -literal.value};
  return result;
}

Code dereference(std::string_view pointer) {
  return {fmt::format("(*{})", pointer), Precedence::primary, CppType::other, {}, std::string(pointer)};
}

std::string address_of(const Code& object) {
  return object.pointer.empty() ? "&" + inside(object, Precedence::primary) : object.pointer;
}

std::string member_of(const Code& object, std::string_view member) {
  return object.pointer.empty() ? fmt::format("{}.{}", inside(object, Precedence::primary), member)
                                : fmt::format("{}->{}", object.pointer, member);
}

Code call(std::string_view function, const std::vector<std::string>& arguments, CppType cpp_type) {
  std::string text(function);
  text += '(';
  for (const std::string& argument : arguments) text += (text.ends_with('(') ? "" : ", ") + argument;
  return {text + ")", Precedence::primary, cpp_type};
}

std::string integer_literal(std::int64_t value) {
  if (value == INT64_MIN) return "(-9223372036854775807LL - 1)";
  if (value > INT32_MAX || value < INT32_MIN) return fmt::format("{}LL", value);
  if (value == INT32_MIN) return "(-2147483647 - 1)";
  return fmt::format("{}", value);
}

Code integer_code(std::int64_t value) {
  const bool narrow = value >= INT32_MIN && value <= INT32_MAX;
  // The least numbers are differences: C++ has no literals of them.
  const bool difference = value == INT32_MIN || value == INT64_MIN;
  const Literal::Form form = difference ? Literal::Form::none
                             : narrow   ? Literal::Form::digits
                                        : Literal::Form::suffixed;
  return {integer_literal(value),
          value < 0 && value != INT32_MIN ? Precedence::unary : Precedence::primary,
          narrow ? CppType::i32 : CppType::i64,
          {form, value < 0, static_cast<double>(value)},
          {}};
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
          {}};
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

namespace {

/// Behind "quern::c_array<": those of one and of two dimensions have a header of their own.
std::string_view c_array_header(std::string_view rest) {
  std::size_t depth = 1, at = 0;
  while (at < rest.size() && (depth += static_cast<std::size_t>(rest[at] == '<'),
                              depth -= static_cast<std::size_t>(rest[at] == '>')) > 0)
    ++at;
  const std::string_view inside = rest.substr(0, at);
  return inside.ends_with(", 1") || inside.ends_with(", 2") ? "quern/cuda/c_array.cuh"
                                                            : "quern/cuda/layout.cuh";
}

}  // namespace

std::set<std::string> headers_of(std::string_view text) {
  constexpr std::string_view kOurs = "quern::", kContiguous = "quern::c_array<";
  std::set<std::string> headers;
  std::set<std::string_view> missing;
  for (const Header& row : kHeaders)
    if (row.word.starts_with(kOurs))
      missing.insert(row.word);
    else if (text.find(row.word) != std::string_view::npos)
      headers.emplace(row.header);
  // One walk over the text for all of quern's own.
  for (std::size_t at = text.find(kOurs); at != std::string_view::npos && !missing.empty();
       at = text.find(kOurs, at + kOurs.size())) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with(kContiguous)) headers.emplace(c_array_header(rest.substr(kContiguous.size())));
    for (const Header& row : kHeaders)
      if (rest.starts_with(row.word) && missing.erase(row.word) > 0) headers.emplace(row.header);
  }
  return headers;
}

}  // namespace quern::frontend
