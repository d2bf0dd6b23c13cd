// SPDX-License-Identifier: Apache-2.0
#include "tools/quern/makers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include <quern/error.hpp>

#include "tools/quern/random.hpp"

namespace tool {
namespace {

using quern::Dtype;

/// The arguments of one maker by name, taken one by one; what is left over is an error.
class Arguments {
 public:
  Arguments(const Call& call, const char* usage) : usage_(usage), keywords_(call.keywords) {
    for (const Expression& positional : call.positional) positional_.push_back(positional);
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw quern::Error(quern::ErrorCode::usage, fmt::format("{}; it is called {}", what, usage_));
  }

  const Expression* take(std::string_view name) {
    for (std::size_t i = 0; i < keywords_.size(); ++i) {
      if (keywords_[i].first != name) continue;
      taken_.push_back(std::move(keywords_[i].second));
      keywords_.erase(keywords_.begin() + static_cast<std::ptrdiff_t>(i));
      return &taken_.back();
    }
    if (next_ >= positional_.size() || (positional_[next_].kind == Expression::Kind::name && name != "dtype"))
      return nullptr;
    return &positional_[next_++];
  }

  std::optional<Number> number(std::string_view name) {
    const Expression* expression = take(name);
    if (expression == nullptr) return std::nullopt;
    if (expression->kind != Expression::Kind::number) fail(fmt::format("{} must be a number", name));
    return expression->number;
  }
  Number need_number(std::string_view name) {
    const std::optional<Number> value = number(name);
    if (!value) fail(fmt::format("{} is missing", name));
    return *value;
  }

  std::vector<std::int64_t> shape() {
    const Expression* expression = take("shape");
    if (expression == nullptr) fail("the shape is missing");
    std::vector<std::int64_t> extents;
    if (expression->kind == Expression::Kind::tuple) {
      for (const Expression& item : expression->items) extents.push_back(extent(item));
    } else {
      extents.push_back(extent(*expression));
    }
    return extents;
  }

  Dtype dtype(Dtype otherwise) {
    const Expression* expression = take("dtype");
    if (expression == nullptr) return otherwise;
    if (expression->kind != Expression::Kind::name) fail("the dtype must be a name such as float32");
    const std::optional<Dtype> named = quern::dtype_named(expression->name);
    if (!named) fail(fmt::format("there is no dtype {}", expression->name));
    return *named;
  }

  void finish() const {
    if (!keywords_.empty()) fail(fmt::format("there is no argument {}", keywords_.front().first));
    if (next_ < positional_.size()) fail("there are too many arguments");
  }

 private:
  std::int64_t extent(const Expression& expression) const {
    const std::optional<std::int64_t> value =
        expression.kind == Expression::Kind::number ? expression.number.as_int64() : std::nullopt;
    if (!value || *value < 0) fail("a shape is a whole number from 0 on, or a tuple of such");
    return *value;
  }

  const char* usage_;
  std::vector<Expression> positional_;
  std::vector<std::pair<std::string, Expression>> keywords_;
  std::vector<Expression> taken_ = reserved();
  std::size_t next_ = 0;
  static std::vector<Expression> reserved() {
    std::vector<Expression> expressions;
    expressions.reserve(16);  // pointers into it stay valid
    return expressions;
  }
};

HostArray filled(Arguments& arguments, std::vector<std::int64_t> shape, Dtype dtype, const Number& value) {
  std::byte element[16];
  if (const std::optional<std::string> problem = write_number(value, dtype, element))
    arguments.fail(*problem);
  HostArray array = make_array(ElementKind::of(dtype), std::move(shape));
  const std::size_t bytes = array.element.size_bytes;
  for (std::size_t at = 0; at < array.data->size(); at += bytes)
    std::memcpy(array.data->data() + at, element, bytes);
  return array;
}

HostArray make_zeros(Arguments& arguments) {
  std::vector<std::int64_t> shape = arguments.shape();
  const Dtype dtype = arguments.dtype(Dtype::float64);
  arguments.finish();
  return make_array(ElementKind::of(dtype), std::move(shape));
}

HostArray make_empty(Arguments& arguments) {
  HostArray array = make_zeros(arguments);
  array.written = false;
  return array;
}

HostArray make_ones(Arguments& arguments) {
  std::vector<std::int64_t> shape = arguments.shape();
  const Dtype dtype = arguments.dtype(Dtype::float64);
  arguments.finish();
  return filled(arguments, std::move(shape), dtype, Number::integer(1));
}

HostArray make_full(Arguments& arguments) {
  std::vector<std::int64_t> shape = arguments.shape();
  const Number value = arguments.need_number("value");
  const Dtype dtype = arguments.dtype(dtype_of(value));
  arguments.finish();
  return filled(arguments, std::move(shape), dtype, value);
}

template <class T>
T as_type(const Number& number) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(number.as_double());
  } else {
    const std::uint64_t bits = number.negative ? std::uint64_t{0} - number.magnitude : number.magnitude;
    return static_cast<T>(bits);
  }
}

/// As NumPy fills a range: the first two values are rounded to the type, the rest are start + i * (second -
/// start) in it.
template <class T>
void fill_range(std::byte* out, std::size_t count, T start, T second) {
  using Wide =
      std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;  // wraps, as the type itself would
  const Wide delta = static_cast<Wide>(static_cast<Wide>(second) - static_cast<Wide>(start));
  for (std::size_t i = 0; i < count; ++i) {
    T value = i == 0 ? start : second;
    if (i > 1) value = static_cast<T>(static_cast<Wide>(start) + static_cast<Wide>(i) * delta);
    std::memcpy(out + i * sizeof(T), &value, sizeof value);
  }
}

/// The 16-bit floats compute their steps in float32.
void fill_narrow_range(Dtype dtype, std::byte* out, std::size_t count, const Number& start,
                       const Number& second) {
  std::byte bytes[16];
  const auto rounded = [&](double value) {
    static_cast<void>(write_number(Number::real(value), dtype, bytes));
    return static_cast<float>(read_number(dtype, bytes).as_double());
  };
  const float first = rounded(start.as_double());
  const float delta = rounded(second.as_double()) - first;
  for (std::size_t i = 0; i < count; ++i) {
    const float value = i == 1 ? rounded(second.as_double()) : first + static_cast<float>(i) * delta;
    static_cast<void>(write_number(Number::real(static_cast<double>(value)), dtype, out + 2 * i));
  }
}

void fill_range_of(Arguments& arguments, HostArray& array, const Number& start, const Number& second) {
  std::byte* const out = array.data->data();
  const std::size_t count = array.size();
  const auto fill = [&]<class T>(T) { fill_range<T>(out, count, as_type<T>(start), as_type<T>(second)); };
  switch (*array.element.dtype) {
    case Dtype::int8:
      return fill(std::int8_t{});
    case Dtype::int16:
      return fill(std::int16_t{});
    case Dtype::int32:
      return fill(std::int32_t{});
    case Dtype::int64:
      return fill(std::int64_t{});
    case Dtype::uint8:
      return fill(std::uint8_t{});
    case Dtype::uint16:
      return fill(std::uint16_t{});
    case Dtype::uint32:
      return fill(std::uint32_t{});
    case Dtype::uint64:
      return fill(std::uint64_t{});
    case Dtype::float32:
      return fill(float{});
    case Dtype::float64:
      return fill(double{});
    case Dtype::float16:
    case Dtype::bfloat16:
      return fill_narrow_range(*array.element.dtype, out, count, start, second);
    default:
      arguments.fail(fmt::format("a range of {} cannot be made", quern::name(*array.element.dtype)));
  }
}

std::int64_t range_count(Arguments& arguments, const Number& start, const Number& stop, const Number& step) {
  if (step.as_double() == 0.0) arguments.fail("the step is 0");
  const double count = std::ceil((stop.as_double() - start.as_double()) / step.as_double());
  if (!(count < 1e15)) arguments.fail("the range is too long");
  return count > 0 ? static_cast<std::int64_t>(count) : 0;
}

HostArray make_arange(Arguments& arguments) {
  const Number first = arguments.need_number("start");
  const std::optional<Number> second = arguments.number("stop");
  const std::optional<Number> third = arguments.number("step");
  const Number start = second ? first : Number::integer(0);
  const Number stop = second.value_or(first);
  const Number step = third.value_or(Number::integer(1));
  const bool whole = start.is_whole() && stop.is_whole() && step.is_whole();
  const Dtype dtype = arguments.dtype(whole ? Dtype::int64 : Dtype::float64);
  arguments.finish();
  for (const Number& number : {start, stop, step})
    if (number.kind == Number::Kind::complex) arguments.fail("a range has no complex numbers");
  const std::int64_t count = range_count(arguments, start, stop, step);
  Number next = Number::real(start.as_double() + step.as_double());
  if (whole && start.as_int64() && step.as_int64())
    next = Number::integer(static_cast<std::int64_t>(static_cast<std::uint64_t>(*start.as_int64()) +
                                                     static_cast<std::uint64_t>(*step.as_int64())));
  std::byte probe[16];
  for (std::int64_t i = 0; i < std::min<std::int64_t>(count, 2); ++i)
    if (const std::optional<std::string> problem = write_number(i == 0 ? start : next, dtype, probe))
      arguments.fail(*problem);
  HostArray array = make_array(ElementKind::of(dtype), {count});
  fill_range_of(arguments, array, start, next);
  return array;
}

HostArray make_linspace(Arguments& arguments) {
  const double start = arguments.need_number("start").as_double();
  const double stop = arguments.need_number("stop").as_double();
  const std::optional<std::int64_t> count = arguments.number("num").value_or(Number::integer(50)).as_int64();
  const Dtype dtype = arguments.dtype(Dtype::float64);
  arguments.finish();
  if (!count || *count < 0) arguments.fail("num must be a whole number from 0 on");
  HostArray array = make_array(ElementKind::of(dtype), {*count});
  const auto divisions = static_cast<double>(*count - 1);
  const double step = (stop - start) / divisions;
  for (std::int64_t i = 0; i < *count; ++i) {
    const auto index = static_cast<double>(i);
    double value = step == 0.0 ? index / divisions * (stop - start) + start : index * step + start;
    if (*count == 1) value = start;
    if (*count > 1 && i == *count - 1) value = stop;
    Number number = Number::real(value);
    if (dtype <= Dtype::uint64 && std::isfinite(value))
      number = Number::integer(static_cast<std::int64_t>(std::floor(value)));
    std::byte* const out = array.data->data() + static_cast<std::size_t>(i) * array.element.size_bytes;
    if (const std::optional<std::string> problem = write_number(number, dtype, out)) arguments.fail(*problem);
  }
  return array;
}

HostArray make_random(Arguments& arguments) {
  std::vector<std::int64_t> shape = arguments.shape();
  const Dtype dtype = arguments.dtype(Dtype::float64);
  const Number seed = arguments.number("seed").value_or(Number::integer(0));
  arguments.finish();
  if (seed.kind != Number::Kind::integer || seed.negative)
    arguments.fail("the seed must be a whole number from 0 on");
  if (dtype != Dtype::float32 && dtype != Dtype::float64)
    arguments.fail(fmt::format("random numbers are float32 or float64, not {}", quern::name(dtype)));
  HostArray array = make_array(ElementKind::of(dtype), std::move(shape));
  Pcg64 generator(seed.magnitude);
  std::byte* const out = array.data->data();
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (dtype == Dtype::float32) {
      const float value = generator.next_float();
      std::memcpy(out + 4 * i, &value, 4);
    } else {
      const double value = generator.next_double();
      std::memcpy(out + 8 * i, &value, 8);
    }
  }
  return array;
}

struct Maker {
  const char* name;
  const char* usage;
  HostArray (*make)(Arguments&);
};
constexpr Maker kMakers[] = {
    {"zeros", "zeros(shape, dtype=float64)", make_zeros},
    {"ones", "ones(shape, dtype=float64)", make_ones},
    {"empty", "empty(shape, dtype=float64)", make_empty},
    {"full", "full(shape, value, dtype)", make_full},
    {"arange", "arange([start,] stop[, step][, dtype])", make_arange},
    {"linspace", "linspace(start, stop, num=50, dtype=float64)", make_linspace},
    {"random", "random(shape, dtype=float64, seed=0)", make_random},
};

}  // namespace

std::optional<HostArray> make_from_call(const Call& call) {
  for (const Maker& maker : kMakers) {
    if (maker.name != call.name) continue;
    Arguments arguments(call, maker.usage);
    return maker.make(arguments);
  }
  return std::nullopt;
}

}  // namespace tool
