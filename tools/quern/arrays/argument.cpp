// SPDX-License-Identifier: Apache-2.0
#include "arrays/argument.hpp"

#include <fmt/format.h>
#include <quern/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>

#include "arrays/fill.hpp"
#include "arrays/npy.hpp"

namespace quern::cli {
namespace {

bool word_char(char c) { return (std::isalnum(static_cast<unsigned char>(c)) != 0) || c == '_'; }

// The text between the parentheses of a call.
struct Operand {
  std::variant<Scalar, std::vector<std::int64_t>, Dtype> value;
};
using Operands = std::map<std::string, Operand, std::less<>>;

struct CallRow {
  std::string_view name;
  std::array<std::string_view, 4> parameters;
  std::size_t required;
  Array (*make)(const Operands&);
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& directory) : text_(text), directory_(directory) {}

  Argument argument() {
    Argument result;
    result.text = text_;
    result.name = name_prefix();
    result.value = value(result.unwritten);
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(
        ErrorCode::usage,
        fmt::format(
            "argument '{}': {}\n    {}\n    {}^\nhint: arguments are numbers, x.npy, zeros((4,4), float32), "
            "arange(0, 10), random((8,), float32, seed=1), #0, ...",
            text_, why, text_, std::string(at_, ' ')));
  }
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}'", c));
  }
  void expect_end() {
    if (peek() != '\0') fail("unexpected text");
  }
  std::string word() {
    peek();
    const std::size_t begin = at_;
    while (at_ < text_.size() && word_char(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::optional<std::string> name_prefix() {
    std::size_t end = 0;
    while (end < text_.size() && word_char(text_[end])) ++end;
    if (end < text_.size() && text_[0] == '#' && end == 0) return std::nullopt;
    if (end == 0 || end >= text_.size() || text_[end] != '=') return std::nullopt;
    at_ = end + 1;
    return std::string(text_.substr(0, end));
  }

  std::variant<Scalar, LengthOf, ByValue, Array, TupleOf> value(bool& unwritten) {
    if (peek() == '#') return length_of();
    if (const auto end = text_.find(".npy", at_);
        end != std::string_view::npos && text_.substr(at_, 6) != "value(")
      return file();
    const char c = peek();
    if (c == '\0') fail("it is empty");
    if (c == '(') return tuple();
    if (c == '-' || c == '+' || c == '.' || (c >= '0' && c <= '9')) return bare_number();
    const std::size_t begin = at_;
    const std::string head = word();
    if (head == "true" || head == "True") return end(Scalar{true, {}});
    if (head == "false" || head == "False") return end(Scalar{false, {}});
    if (head == "nan" || head == "inf") return end(Scalar{head == "nan" ? NAN : INFINITY, {}});
    if (peek() != '(') {
      at_ = begin;
      fail("it is neither a number nor an array expression nor a .npy file");
    }
    if (const auto dtype = dtype_named(head)) return end(typed_scalar(*dtype));
    if (head == "value") return by_value();
    unwritten = head == "empty";
    return call(head, begin);
  }
  template <class T>
  T end(T result) {
    expect_end();
    return result;
  }

  TupleOf tuple() {
    expect('(');
    TupleOf made;
    bool comma = false;
    while (!accept(')')) {
      made.items.push_back(item());
      comma = accept(',');
      if (!comma && peek() != ')') fail("expected ',' or ')'");
    }
    if (made.items.empty()) fail("a tuple argument has a number at least");
    if (made.items.size() == 1 && !comma) fail("a tuple of one number is written (3,)");
    return end(made);
  }
  Scalar item() {
    const char c = peek();
    if (c == '-' || c == '+' || c == '.' || (c >= '0' && c <= '9')) return number();
    const std::size_t begin = at_;
    const std::string head = word();
    if (head == "true" || head == "True") return {true, {}};
    if (head == "false" || head == "False") return {false, {}};
    if (head == "nan" || head == "inf") return {head == "nan" ? NAN : INFINITY, {}};
    if (const auto dtype = dtype_named(head); dtype && peek() == '(') return typed_scalar(*dtype);
    at_ = begin;
    fail("a tuple holds numbers: (3, 4.5, float32(1), true)");
  }

  LengthOf length_of() {
    ++at_;
    unsigned index = 0;
    const auto [last, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), index);
    if (error != std::errc()) fail("'#' is followed by the number of an argument");
    at_ = static_cast<std::size_t>(last - text_.data());
    return end(LengthOf{index});
  }

  Scalar bare_number() { return end(number()); }

  // [+-]digits, hexadecimal, floats, nan, inf
  Scalar number() {
    peek();
    const std::size_t begin = at_;
    bool negative = false;
    if (accept('-'))
      negative = true;
    else
      accept('+');
    if (const std::string_view rest = text_.substr(at_); rest.starts_with("inf") || rest.starts_with("nan")) {
      at_ += 3;
      const double special = rest.front() == 'i' ? INFINITY : NAN;
      return {negative ? -special : special, {}};
    }
    if (const char c = at_ < text_.size() ? text_[at_] : '\0'; c != '.' && (c < '0' || c > '9')) {
      at_ = begin;
      fail("this is not a number");
    }
    const int base = text_.substr(at_).starts_with("0x") ? 16 : 10;
    const char* first = text_.data() + at_ + (base == 16 ? 2 : 0);
    const char* last = text_.data() + text_.size();
    std::uint64_t whole = 0;
    const auto [end_whole, whole_error] = std::from_chars(first, last, whole, base);
    double real = 0;
    const auto [end_real, real_error] = std::from_chars(text_.data() + at_, last, real);
    const bool integral = whole_error == std::errc() && (base == 16 || end_whole >= end_real);
    if (!integral && real_error != std::errc()) {
      at_ = begin;
      fail("this is not a number in range");
    }
    at_ = static_cast<std::size_t>((integral ? end_whole : end_real) - text_.data());
    if (at_ < text_.size() && word_char(text_[at_])) fail("unexpected text after a number");
    if (!integral) return {negative ? -real : real, {}};
    if (!negative && whole > static_cast<std::uint64_t>(INT64_MAX)) return {whole, {}};
    if (negative && whole > std::uint64_t{1} << 63) fail("this number is below -2^63");
    return {static_cast<std::int64_t>(negative ? 0 - whole : whole), {}};
  }

  Scalar typed_scalar(Dtype dtype) {
    expect('(');
    Scalar result = peek() == 't' || peek() == 'f' ? Scalar{word() == "true", {}} : number();
    if (accept(',')) {
      const Scalar imaginary = number();
      const auto part = [](const Scalar& s) {
        double value = 0;
        std::memcpy(&value, to_bytes(s, Dtype::float64).data(), sizeof value);
        return value;
      };
      result.value = std::complex<double>(part(result), part(imaginary));
    }
    expect(')');
    result.dtype = dtype;
    static_cast<void>(to_bytes(result, dtype));  // reject values that do not fit here
    return result;
  }

  ByValue by_value() {
    expect('(');
    if (text_.back() != ')') fail("expected ')' at the end");
    const std::string_view whole = text_;
    text_.remove_suffix(1);
    Array array = file();
    text_ = whole;
    if (array.count() != 1)
      fail(fmt::format("value() takes an array of one element, this one has {}", array.count()));
    return {contiguous(array)};
  }

  Array file() {
    const std::size_t end = text_.find(".npy", at_);
    if (end == std::string_view::npos) fail("expected a .npy file");
    std::string path(text_.substr(at_, end + 4 - at_));
    at_ = end + 4;
    if (!directory_.empty() && path.front() != '/') path = directory_ + "/" + path;
    Array array = read_npy(path);
    while (peek() != '\0') {
      if (accept('[')) {
        array = index(std::move(array));
      } else if (text_.substr(at_).starts_with(".T")) {
        at_ += 2;
        std::reverse(array.shape.begin(), array.shape.end());
        std::reverse(array.strides.begin(), array.strides.end());
      } else {
        fail("expected '[...]' or '.T' after a file");
      }
    }
    return array;
  }

  std::optional<std::int64_t> optional_integer() {
    const char c = peek();
    if (c != '-' && c != '+' && (c < '0' || c > '9')) return std::nullopt;
    const Scalar scalar = number();
    const auto* whole = std::get_if<std::int64_t>(&scalar.value);
    if (whole == nullptr) fail("an index is a whole number");
    return *whole;
  }

  // NumPy's basic indexing: integers remove an axis, slices keep it, '...' stands for the axes between.
  Array index(Array array) {
    Array result = array;
    result.shape.clear();
    result.strides.clear();
    std::size_t axis = 0;
    bool ellipsis = false;
    while (!accept(']')) {
      if (text_.substr(at_).starts_with("...")) {
        if (ellipsis) fail("more than one '...'");
        at_ += 3;
        ellipsis = true;
        const std::size_t after = remaining_indices();
        while (axis + after < array.shape.size()) keep(array, axis++, result);
      } else {
        if (axis >= array.shape.size())
          fail(fmt::format("too many indices for an array of {} dimensions", array.shape.size()));
        index_axis(array, axis++, result);
      }
      if (!accept(',') && peek() != ']') fail("expected ',' or ']'");
    }
    while (axis < array.shape.size()) keep(array, axis++, result);
    return result;
  }
  static void keep(const Array& array, std::size_t axis, Array& result) {
    result.shape.push_back(array.shape[axis]);
    result.strides.push_back(array.strides[axis]);
  }
  std::size_t remaining_indices() {
    std::size_t count = 0;
    bool any = false;
    for (std::size_t i = at_; i < text_.size() && text_[i] != ']'; ++i) {
      if (text_[i] == ',')
        any = false;
      else if (text_[i] != ' ' && !any) {
        any = true;
        ++count;
      }
    }
    return count;
  }
  void index_axis(const Array& array, std::size_t axis, Array& result) {
    const std::int64_t extent = array.shape[axis];
    const std::int64_t stride = array.strides[axis];
    std::optional<std::int64_t> start = optional_integer();
    if (!accept(':')) {
      if (!start) fail("expected an index or a slice");
      const std::int64_t i = *start < 0 ? *start + extent : *start;
      if (i < 0 || i >= extent)
        fail(fmt::format("index {} is outside axis {} of {} elements", *start, axis, extent));
      result.offset += i * stride;
      return;
    }
    std::optional<std::int64_t> stop = optional_integer();
    std::int64_t step = 1;
    if (accept(':')) step = optional_integer().value_or(1);
    if (step == 0) fail("a slice's step cannot be 0");
    const auto clamp = [&](std::optional<std::int64_t> given, std::int64_t missing) {
      if (!given) return missing;
      const std::int64_t i = *given < 0 ? *given + extent : *given;
      return step > 0 ? std::clamp<std::int64_t>(i, 0, extent) : std::clamp<std::int64_t>(i, -1, extent - 1);
    };
    const std::int64_t first = clamp(start, step > 0 ? 0 : extent - 1);
    const std::int64_t last = clamp(stop, step > 0 ? extent : -1);
    const std::int64_t span = step > 0 ? last - first : first - last;
    const std::uint64_t magnitude =
        step < 0 ? 0 - static_cast<std::uint64_t>(step) : static_cast<std::uint64_t>(step);
    const std::int64_t size =
        span <= 0 ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(span - 1) / magnitude) + 1;
    if (size > 0) result.offset += first * stride;
    result.shape.push_back(size);
    // a step beyond the end of the axis could overflow
    result.strides.push_back(size > 1 ? stride * step : stride);
  }

  Operand operand() {
    if (peek() == '(') {
      ++at_;
      std::vector<std::int64_t> extents;
      while (!accept(')')) {
        const auto extent = optional_integer();
        if (!extent) fail("a shape is made of whole numbers");
        extents.push_back(*extent);
        if (!accept(',') && peek() != ')') fail("expected ',' or ')'");
      }
      return {extents};
    }
    const char c = peek();
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 && !text_.substr(at_).starts_with("inf") &&
        !text_.substr(at_).starts_with("nan")) {
      const std::size_t begin = at_;
      const std::string text = word();
      if (text == "true" || text == "false") return {Scalar{text == "true", {}}};
      if (const auto dtype = dtype_named(text)) return {*dtype};
      at_ = begin;
      fail(
          fmt::format("unknown element type '{}'; there are bool, int8 to int64, uint8 to uint64, float16, "
                      "bfloat16, float32, float64, "
                      "complex64, complex128",
                      text));
    }
    return {number()};
  }

  Array call(const std::string& head, std::size_t begin) {
    const CallRow* row = find_call(head);
    if (row == nullptr) {
      at_ = begin;
      fail(fmt::format("unknown function '{}'", head));
    }
    expect('(');
    Operands operands;
    std::size_t position = 0;
    while (!accept(')')) {
      const std::size_t before = at_;
      peek();
      std::string name = word();
      if (name.empty() || peek() != '=') {
        at_ = before;
        name = positional_name(*row, position);
      } else {
        ++at_;
        if (std::find(row->parameters.begin(), row->parameters.end(), name) == row->parameters.end())
          fail(fmt::format("{} has no parameter '{}'", row->name, name));
      }
      Operand given = operand();
      // arange(0, 10, float32): an element type in any place is the dtype
      if (std::holds_alternative<Dtype>(given.value)) name = "dtype";
      if (name.empty()) fail(fmt::format("too many arguments for {}", row->name));
      if (!operands.emplace(name, std::move(given)).second) fail(fmt::format("'{}' is given twice", name));
      ++position;
      if (!accept(',') && peek() != ')') fail("expected ',' or ')'");
    }
    expect_end();
    for (std::size_t i = 0; i < row->required; ++i)
      if (!operands.contains(row->parameters[i]))
        fail(fmt::format("{} needs '{}'", row->name, row->parameters[i]));
    try {
      return row->make(operands);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::out_of_memory) throw;
      fail(error.what());
    }
  }
  static std::string positional_name(const CallRow& row, std::size_t position) {
    return position < row.parameters.size() ? std::string(row.parameters[position]) : std::string();
  }
  static const CallRow* find_call(std::string_view name);

  std::string_view text_;
  const std::string& directory_;
  std::size_t at_ = 0;
};

std::vector<std::int64_t> shape_of(const Operands& operands) {
  const Operand& operand = operands.find("shape")->second;
  if (const auto* extents = std::get_if<std::vector<std::int64_t>>(&operand.value)) return *extents;
  if (const auto* scalar = std::get_if<Scalar>(&operand.value))
    if (const auto* extent = std::get_if<std::int64_t>(&scalar->value)) return {*extent};
  throw Error(ErrorCode::usage, "a shape is a whole number or a tuple of whole numbers");
}

Dtype dtype_of(const Operands& operands, Dtype otherwise) {
  const auto found = operands.find("dtype");
  if (found == operands.end()) return otherwise;
  if (const auto* dtype = std::get_if<Dtype>(&found->second.value)) return *dtype;
  throw Error(ErrorCode::usage, "dtype is the name of an element type");
}

std::optional<Scalar> scalar_of(const Operands& operands, std::string_view name) {
  const auto found = operands.find(name);
  if (found == operands.end()) return std::nullopt;
  if (const auto* scalar = std::get_if<Scalar>(&found->second.value)) return *scalar;
  throw Error(ErrorCode::usage, fmt::format("{} is a number", name));
}

Array make_full(const Operands& operands) {
  const Scalar value = *scalar_of(operands, "fill_value");
  return full(shape_of(operands), value, dtype_of(operands, value.natural_dtype()));
}
Array make_zeros(const Operands& operands) {
  return make_array(element_of(dtype_of(operands, Dtype::float64)), shape_of(operands));
}
Array make_ones(const Operands& operands) {
  return full(shape_of(operands), Scalar{std::int64_t{1}, {}}, dtype_of(operands, Dtype::float64));
}
Array make_arange(const Operands& operands) {
  std::optional<Scalar> start = scalar_of(operands, "start");
  std::optional<Scalar> stop = scalar_of(operands, "stop");
  if (!stop) std::swap(start, stop);
  if (!stop) throw Error(ErrorCode::usage, "arange needs 'stop'");
  const auto dtype =
      operands.contains("dtype") ? std::optional(dtype_of(operands, Dtype::int64)) : std::nullopt;
  return arange(start.value_or(Scalar{std::int64_t{0}, {}}), *stop,
                scalar_of(operands, "step").value_or(Scalar{std::int64_t{1}, {}}), dtype);
}
Array make_linspace(const Operands& operands) {
  return linspace(*scalar_of(operands, "start"), *scalar_of(operands, "stop"),
                  scalar_of(operands, "num").value_or(Scalar{std::int64_t{50}, {}}),
                  dtype_of(operands, Dtype::float64));
}
Array make_random(const Operands& operands) {
  return random(shape_of(operands), dtype_of(operands, Dtype::float64),
                scalar_of(operands, "seed").value_or(Scalar{std::int64_t{0}, {}}));
}

constexpr CallRow kCalls[] = {
    {"zeros", {"shape", "dtype"}, 1, make_zeros},
    {"ones", {"shape", "dtype"}, 1, make_ones},
    {"empty",
     {"shape", "dtype"},
     1,
     make_zeros},  // zeroed, so that a run is repeatable; `check` treats it as unwritten
    {"full", {"shape", "fill_value", "dtype"}, 2, make_full},
    {"arange", {"start", "stop", "step", "dtype"}, 0, make_arange},
    {"linspace", {"start", "stop", "num", "dtype"}, 2, make_linspace},
    {"random", {"shape", "dtype", "seed"}, 1, make_random},
};

const CallRow* Parser::find_call(std::string_view name) {
  for (const CallRow& row : kCalls)
    if (row.name == name) return &row;
  return nullptr;
}

}  // namespace

Argument parse_argument(std::string_view text, const std::string& directory) {
  return Parser(text, directory).argument();
}

std::array<std::uint32_t, 3> parse_dimensions(std::string_view text, std::string_view option) {
  std::array<std::uint32_t, 3> result{1, 1, 1};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (std::uint32_t& dimension : result) {
    const auto [next, error] = std::from_chars(at, end, dimension);
    if (error == std::errc::result_out_of_range)
      throw Error(ErrorCode::usage,
                  fmt::format("{} '{}' is too large\nhint: the most that an axis can have is 4294967295, and "
                              "devices take less; `quern devices --json` says how much",
                              option, text));
    if (error != std::errc()) break;
    if (next == end) return result;
    if (*next != 'x') break;
    at = next + 1;
  }
  throw Error(ErrorCode::usage,
              fmt::format("{} '{}' is not of the form 64, 16x16 or 8x8x4\nhint: give 1 to 3 whole "
                          "numbers with x between them: x, y, z",
                          option, text));
}

}  // namespace quern::cli
