// SPDX-License-Identifier: Apache-2.0
#include "frontend/code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <unordered_set>

namespace quern::frontend {
namespace {

constexpr std::string_view kReserved[] = {
#define QUERN_RESERVED(name) #name,
#include "frontend/reserved.def"
};

struct Row {
  Carrier carrier;
  std::string_view cpp;
  int rank;  // of C++'s arithmetic conversions
};
constexpr Row kCarriers[] = {
    {Carrier::other, "", 0},
    {Carrier::boolean, "bool", 1},
    {Carrier::i8, "signed char", 1},
    {Carrier::i16, "short", 1},
    {Carrier::i32, "int", 1},
    {Carrier::i64, "long long", 3},
    {Carrier::u8, "unsigned char", 1},
    {Carrier::u16, "unsigned short", 1},
    {Carrier::u32, "unsigned", 2},
    {Carrier::u64, "unsigned long long", 4},
    {Carrier::f16, "__half", 5},
    {Carrier::bf16, "__nv_bfloat16", 5},
    {Carrier::f32, "float", 6},
    {Carrier::f64, "double", 7},
    {Carrier::c64, "quern::complex<float>", 8},
    {Carrier::c128, "quern::complex<double>", 9},
};
const Row& row_of(Carrier carrier) { return kCarriers[static_cast<std::size_t>(carrier)]; }

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

bool is_literal(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// True for a number literal with an optional C++ suffix.
bool is_literal_of(std::string_view text) {
  return text.find_first_not_of("0123456789.feLU") == std::string_view::npos;
}

}  // namespace

Carrier carrier_of(Type type) {
  switch (type->kind) {
    case TypeKind::boolean:
      return Carrier::boolean;
    case TypeKind::integer:
      switch (type->bits) {
        case 8:
          return type->is_signed ? Carrier::i8 : Carrier::u8;
        case 16:
          return type->is_signed ? Carrier::i16 : Carrier::u16;
        case 32:
          return type->is_signed ? Carrier::i32 : Carrier::u32;
        default:
          return type->is_signed ? Carrier::i64 : Carrier::u64;
      }
    case TypeKind::floating:
      return type->brain        ? Carrier::bf16
             : type->bits == 16 ? Carrier::f16
             : type->bits == 32 ? Carrier::f32
                                : Carrier::f64;
    case TypeKind::complex:
      return type->bits == 64 ? Carrier::c64 : Carrier::c128;
    default:
      return Carrier::other;
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

std::string_view cpp_of(Carrier carrier) { return row_of(carrier).cpp; }

std::string cpp_type(Type type) {
  if (is_valueless(type)) return "void";
  switch (type->kind) {
    case TypeKind::array: {
      const std::string element = (type->read_only ? "const " : "") + cpp_type(type->element);
      const std::string_view name = type->layout == 'C'   ? "c_array"
                                    : type->layout == 'F' ? "f_array"
                                                          : "array";
      return fmt::format("quern::{}<{}, {}>", name, element, type->ndim);
    }
    case TypeKind::tuple: {
      std::string items;
      for (Type item : type->items) items += (items.empty() ? "" : ", ") + cpp_type(item);
      return fmt::format("quern::tuple<{}>", items);
    }
    case TypeKind::record:
      return cpp_name(type->label);
    case TypeKind::vector:
      return fmt::format("quern::vector<{}, {}>", cpp_type(type->element), type->ndim);
    case TypeKind::group:
      return "cooperative_groups::grid_group";
    default:
      return std::string(cpp_of(carrier_of(type)));
  }
}

bool is_signed(Carrier c) {
  return c == Carrier::i8 || c == Carrier::i16 || c == Carrier::i32 || c == Carrier::i64;
}
bool is_integer(Carrier c) { return c >= Carrier::boolean && c <= Carrier::u64; }
bool is_plain(Carrier c) { return is_integer(c) || c == Carrier::f32 || c == Carrier::f64; }
bool is_real(Carrier c) { return c >= Carrier::f16 && c <= Carrier::f64; }
bool fits_int(Carrier c) {
  return c == Carrier::boolean || c == Carrier::i8 || c == Carrier::i16 || c == Carrier::i32 ||
         c == Carrier::u8 || c == Carrier::u16;
}

Carrier promoted(Carrier a, Carrier b) {
  if (fits_int(a) && fits_int(b)) return Carrier::i32;
  return row_of(a).rank >= row_of(b).rank ? a : b;
}

std::string inside(const Code& code, Precedence wanted) {
  return code.precedence <= wanted ? code.text : fmt::format("({})", code.text);
}

Code convert(const Code& code, Carrier to) {
  if (code.carrier == to || to == Carrier::other) return code;
  if (is_literal(code.text)) {
    if (to == Carrier::i64) return {code.text + "LL", Precedence::primary, to};
    if (to == Carrier::u64) return {code.text + "ULL", Precedence::primary, to};
    if (to == Carrier::u32) return {code.text + "u", Precedence::primary, to};
    if (to == Carrier::f64) return {code.text + ".0", Precedence::primary, to};
    if (to == Carrier::f32) return {code.text + ".0f", Precedence::primary, to};
  }
  if (code.text.starts_with('-') && is_literal(std::string_view(code.text).substr(1)) &&
      (is_real(to) || to == Carrier::i64)) {
    const Code positive = convert({code.text.substr(1), Precedence::primary, code.carrier}, to);
    if (positive.precedence == Precedence::primary && is_literal_of(positive.text))
      return {"-" + positive.text, Precedence::unary, to};
  }
  // A float literal that is exact in float32 is written as one.
  if (to == Carrier::f32 && code.carrier == Carrier::f64 &&
      code.text.find_first_not_of("0123456789.e-+") == std::string::npos) {
    const double value = std::strtod(code.text.c_str(), nullptr);
    if (static_cast<double>(static_cast<float>(value)) == value)
      return {code.text + "f", code.precedence, to};
  }
  const std::string_view type = cpp_of(to);
  if (to == Carrier::f16 || to == Carrier::bf16)
    return {fmt::format("{}({})", type,
                        code.carrier == Carrier::f32 ? code.text : fmt::format("float({})", code.text)),
            Precedence::primary, to};
  if ((code.carrier == Carrier::f16 || code.carrier == Carrier::bf16) && to != Carrier::f32)
    return convert({fmt::format("float({})", code.text), Precedence::primary, Carrier::f32}, to);
  if (type.find(' ') == std::string_view::npos || to == Carrier::c64 || to == Carrier::c128)
    return {fmt::format("{}({})", type, code.text), Precedence::primary, to};
  return {fmt::format("({}){}", type, inside(code, Precedence::unary)), Precedence::unary, to};
}

void meet(Code& a, Code& b, Carrier to) {
  const bool plain = is_plain(a.carrier) && is_plain(b.carrier) && is_plain(to);
  if (plain && promoted(a.carrier, b.carrier) == to) return;
  // One converted operand takes the other along, unless that would round it on the way.
  const bool left_fits = a.carrier == to || is_integer(a.carrier) || to == Carrier::f64;
  a = convert(a, to);
  if (!plain || !left_fits) b = convert(b, to);
}

Precedence precedence_of(Tok op) { return operator_of(op).precedence; }

// `a op b`; compilers warn of & | ^ << beside other operators, and people misread them: parentheses there.
Code infix(Tok op, const Code& a, const Code& b, Carrier carrier) {
  const Operator& row = operator_of(op);
  const bool bits = row.precedence == Precedence::shift ||
                    (row.precedence >= Precedence::bit_and && row.precedence <= Precedence::bit_or);
  const Precedence left = bits ? Precedence::unary : row.precedence;
  const Precedence right = bits ? Precedence::unary : tighter(row.precedence);
  return {fmt::format("{} {} {}", inside(a, left), row.cpp, inside(b, right)), row.precedence, carrier};
}

Code call(std::string_view function, const std::vector<std::string>& arguments, Carrier carrier) {
  std::string text(function);
  text += '(';
  for (const std::string& argument : arguments) text += (text.ends_with('(') ? "" : ", ") + argument;
  return {text + ")", Precedence::primary, carrier};
}

std::string integer_literal(std::int64_t value) {
  if (value == INT64_MIN) return "(-9223372036854775807LL - 1)";
  if (value > INT32_MAX || value < INT32_MIN) return fmt::format("{}LL", value);
  if (value == INT32_MIN) return "(-2147483647 - 1)";
  return fmt::format("{}", value);
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
