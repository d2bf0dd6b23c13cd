// SPDX-License-Identifier: Apache-2.0
#include "tools/quern/expression.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>

#include <quern/error.hpp>

namespace tool {
namespace {

constexpr int kMaxDepth = 100;

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Python's arithmetic: whole numbers stay whole (within 64 bits), `/` makes floats.
class Arithmetic {
 public:
  explicit Arithmetic(std::function<void(const std::string&)> fail) : fail_(std::move(fail)) {}

  Number apply(std::string_view op, const Number& a, const Number& b) const {
    if (a.kind == Number::Kind::complex || b.kind == Number::Kind::complex)
      return complex(op, a.as_complex(), b.as_complex());
    if (a.is_whole() && b.is_whole() && op != "/") return whole(op, a, b);
    return Number::real(real(op, a.as_double(), b.as_double()));
  }

  Number negated(const Number& a) const {
    if (a.kind == Number::Kind::complex) return Number::complex(-a.value);
    if (!a.is_whole()) return Number::real(-a.value.real());
    Number result = a;
    result.kind = Number::Kind::integer;
    result.negative = !a.negative && a.magnitude != 0;
    return result;
  }

 private:
  Number complex(std::string_view op, std::complex<double> a, std::complex<double> b) const {
    if (op == "+") return Number::complex(a + b);
    if (op == "-") return Number::complex(a - b);
    if (op == "*") return Number::complex(a * b);
    if (op == "/") return Number::complex(a / b);
    fail_(fmt::format("'{}' is not for complex numbers", op));
    return {};
  }

  double real(std::string_view op, double a, double b) const {
    if (op == "+") return a + b;
    if (op == "-") return a - b;
    if (op == "*") return a * b;
    if (op == "**") return std::pow(a, b);
    if (b == 0.0) fail_("a division by zero");
    if (op == "/") return a / b;
    const double quotient = std::floor(a / b);
    return op == "//" ? quotient : a - quotient * b;
  }

  Number whole(std::string_view op, const Number& left, const Number& right) const {
    const std::optional<std::int64_t> a = left.as_int64();
    const std::optional<std::int64_t> b = right.as_int64();
    if (!a || !b) fail_("arithmetic beyond 64 bits");
    std::int64_t result = 0;
    bool overflow = false;
    if (op == "+")
      overflow = __builtin_add_overflow(*a, *b, &result);
    else if (op == "-")
      overflow = __builtin_sub_overflow(*a, *b, &result);
    else if (op == "*")
      overflow = __builtin_mul_overflow(*a, *b, &result);
    else if (op == "**")
      return power(*a, *b);
    else
      result = divide(op, *a, *b);
    if (overflow) fail_("arithmetic beyond 64 bits");
    return Number::integer(result);
  }

  Number power(std::int64_t base, std::int64_t exponent) const {
    if (exponent < 0) return Number::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    std::int64_t result = 1;
    for (std::int64_t i = 0; i < exponent && result != 0 && !(result == 1 && base == 1); ++i) {
      if (base == -1) return Number::integer(exponent % 2 == 0 ? 1 : -1);
      if (__builtin_mul_overflow(result, base, &result)) fail_("arithmetic beyond 64 bits");
    }
    return Number::integer(result);
  }

  std::int64_t divide(std::string_view op, std::int64_t a, std::int64_t b) const {
    if (b == 0) fail_("a division by zero");
    if (b == -1) return op == "//" ? (a == INT64_MIN ? (fail_("arithmetic beyond 64 bits"), 0) : -a) : 0;
    const std::int64_t remainder = a % b;
    const bool below = remainder != 0 && (remainder < 0) != (b < 0);  // Python rounds down
    return op == "//" ? a / b - (below ? 1 : 0) : remainder + (below ? b : 0);
  }

  std::function<void(const std::string&)> fail_;
};

class Reader {
 public:
  Reader(std::string_view text, const Lookup& lookup)
      : text_(text), lookup_(lookup), arithmetic_([this](const std::string& what) { fail(what); }) {}

  Expression read_all() {
    Expression expression = read(0);
    if (peek() != '\0') fail("unexpected text");
    return expression;
  }

  std::vector<Index> read_all_indices() {
    std::vector<Index> indices;
    do {
      if (peek() == '\0' && !indices.empty()) break;  // a comma at the end
      indices.push_back(read_index());
    } while (take(","));
    if (peek() != '\0') fail("unexpected text");
    return indices;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw quern::Error(quern::ErrorCode::usage,
                       fmt::format("'{}' is not understood: {} at position {}", text_, what, at_ + 1));
  }

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(std::string_view wanted) {
    peek();
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  void expect(std::string_view wanted) {
    if (!take(wanted)) fail(fmt::format("'{}' is missing", wanted));
  }

  Number number_of(const Expression& expression) const {
    if (expression.kind != Expression::Kind::number) fail("a number is needed");
    return expression.number;
  }
  static Expression as_expression(Number number) {
    Expression expression;
    expression.number = number;
    return expression;
  }

  // sum := product (('+' | '-') product)*
  Expression read(int depth) {
    if (depth > kMaxDepth) fail("too deep a nesting");
    peek();
    const std::size_t start = at_;
    Expression left = read_product(depth + 1);
    for (;;) {
      const char op = peek();
      if (op != '+' && op != '-') break;
      ++at_;
      const Number right = number_of(read_product(depth + 1));
      left = as_expression(arithmetic_.apply(std::string_view(&op, 1), number_of(left), right));
    }
    left.text = text_.substr(start, at_ - start);
    return left;
  }

  // product := power (('*' | '//' | '/' | '%') power)*
  Expression read_product(int depth) {
    Expression left = read_unary(depth + 1);
    for (;;) {
      peek();
      std::string_view op;
      for (const std::string_view candidate : {"//", "*", "/", "%"})
        if (op.empty() && text_.substr(at_).starts_with(candidate)) op = candidate;
      if (op.empty()) return left;
      at_ += op.size();
      const Number right = number_of(read_unary(depth + 1));
      left = as_expression(arithmetic_.apply(op, number_of(left), right));
    }
  }

  Expression read_unary(int depth) {
    if (depth > kMaxDepth) fail("too deep a nesting");
    if (take("-")) return as_expression(arithmetic_.negated(number_of(read_unary(depth + 1))));
    if (take("+")) return as_expression(number_of(read_unary(depth + 1)));
    Expression base = read_atom(depth + 1);
    if (!take("**")) return base;
    const Number exponent = number_of(read_unary(depth + 1));
    return as_expression(arithmetic_.apply("**", number_of(base), exponent));
  }

  Expression read_atom(int depth) {
    const char next = peek();
    if (next == '(') return read_parentheses(depth);
    if (next == '#') return as_expression(read_lookup());
    if (is_digit(next) || (next == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1])))
      return as_expression(read_number());
    if (is_name_char(next)) return read_name(depth);
    fail("a number, a name or '(' is needed");
  }

  Expression read_parentheses(int depth) {
    expect("(");
    Expression tuple;
    tuple.kind = Expression::Kind::tuple;
    bool comma = false;
    while (!take(")")) {
      if (!tuple.items.empty() && !comma) fail("',' or ')' is missing");
      tuple.items.push_back(read(depth + 1));
      comma = take(",");
    }
    if (tuple.items.size() == 1 && !comma) return std::move(tuple.items.front());
    return tuple;
  }

  std::string read_word() {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  Expression read_name(int depth) {
    Expression expression;
    expression.name = read_word();
    if (expression.name == "true" || expression.name == "True") return as_expression(Number::boolean(true));
    if (expression.name == "false" || expression.name == "False")
      return as_expression(Number::boolean(false));
    if (expression.name == "nan") return as_expression(Number::real(std::nan("")));
    if (expression.name == "inf") return as_expression(Number::real(HUGE_VAL));
    expression.kind = Expression::Kind::name;
    if (!take("(")) return expression;
    auto call = std::make_shared<Call>();
    call->name = expression.name;
    bool comma = true;
    while (!take(")")) {
      if (!comma) fail("',' or ')' is missing");
      read_call_argument(*call, depth);
      comma = take(",");
    }
    expression.kind = Expression::Kind::call;
    expression.call = std::move(call);
    return expression;
  }

  void read_call_argument(Call& call, int depth) {
    peek();
    const std::size_t start = at_;
    const std::string word = read_word();
    if (!word.empty() && !is_digit(word[0]) && take("=")) {
      call.keywords.emplace_back(word, read(depth + 1));
      return;
    }
    at_ = start;
    if (!call.keywords.empty()) fail("an argument without a name after one with a name");
    call.positional.push_back(read(depth + 1));
  }

  Number read_lookup() {
    expect("#");
    const std::optional<std::uint64_t> argument = read_natural();
    if (!argument) fail("the number of an argument is missing after '#'");
    std::string_view attribute;
    std::size_t axis = 0;
    if (take(".size"))
      attribute = "size";
    else if (take(".shape")) {
      attribute = "shape";
      expect("[");
      const std::optional<std::uint64_t> number = read_natural();
      if (!number) fail("the number of an axis is missing");
      axis = *number;
      expect("]");
    }
    if (!lookup_) fail("'#' stands for no argument here");
    return lookup_(*argument, attribute, axis);
  }

  std::optional<std::uint64_t> read_natural() {
    peek();
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (error != std::errc()) return std::nullopt;
    at_ = static_cast<std::size_t>(end - text_.data());
    return number;
  }

  Number read_number() {
    if (text_.substr(at_).starts_with("0x") || text_.substr(at_).starts_with("0X")) return read_hexadecimal();
    const std::size_t start = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    bool whole = true;
    if (at_ < text_.size() && text_[at_] == '.') {
      whole = false;
      for (++at_; at_ < text_.size() && is_digit(text_[at_]);) ++at_;
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) whole = !read_exponent() && whole;
    const std::string_view digits = text_.substr(start, at_ - start);
    const bool imaginary = at_ < text_.size() && text_[at_] == 'j' ? (++at_, true) : false;
    if (at_ < text_.size() && is_name_char(text_[at_])) fail("a number with letters in it");
    if (whole && !imaginary) {
      std::uint64_t number = 0;
      if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec != std::errc())
        fail("a whole number beyond 64 bits");
      return Number::natural(number);
    }
    double number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc::result_out_of_range) number = out_of_range(digits);
    return imaginary ? Number::complex({0.0, number}) : Number::real(number);
  }

  /// Too large or too small for a double: as Python, infinity or zero.
  static double out_of_range(std::string_view digits) {
    return std::strtod(std::string(digits).c_str(), nullptr);
  }

  bool read_exponent() {
    const std::size_t before = at_++;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    const std::size_t digits = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ > digits) return true;
    at_ = before;
    return false;
  }

  Number read_hexadecimal() {
    at_ += 2;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number, 16);
    if (error != std::errc()) fail("a hexadecimal number that is none, or beyond 64 bits");
    at_ = static_cast<std::size_t>(end - text_.data());
    return Number::natural(number);
  }

  std::optional<std::int64_t> read_optional_integer() {
    const char next = peek();
    if (next == ':' || next == ',' || next == '\0') return std::nullopt;
    const std::optional<std::int64_t> value = number_of(read(0)).as_int64();
    if (!value) fail("a whole number is needed");
    return value;
  }

  Index read_index() {
    Index index;
    if (take("...")) {
      index.kind = Index::Kind::ellipsis;
      return index;
    }
    if (take("None") || take("newaxis")) {
      index.kind = Index::Kind::new_axis;
      return index;
    }
    index.start = read_optional_integer();
    if (!take(":")) {
      if (!index.start) fail("an index is missing");
      return index;
    }
    index.kind = Index::Kind::slice;
    index.stop = read_optional_integer();
    if (take(":")) index.step = read_optional_integer();
    if (index.step == std::int64_t{0}) fail("a step of 0");
    return index;
  }

  std::string_view text_;
  const Lookup& lookup_;
  Arithmetic arithmetic_;
  std::size_t at_ = 0;
};

}  // namespace

Expression read_expression(std::string_view text, const Lookup& lookup) {
  return Reader(text, lookup).read_all();
}

std::vector<Index> read_indices(std::string_view text, const Lookup& lookup) {
  return Reader(text, lookup).read_all_indices();
}

Number evaluate_number(std::string_view text) {
  const Expression expression = read_expression(text, nullptr);
  if (expression.kind == Expression::Kind::number) return expression.number;
  throw quern::Error(quern::ErrorCode::usage, fmt::format("'{}' is not a number", text));
}

}  // namespace tool
