// SPDX-License-Identifier: Apache-2.0
#include "arrays/fill.hpp"

#include <fmt/format.h>
#include <quern/error.hpp>

#include <cmath>
#include <cstring>

#include "arrays/random.hpp"

namespace quern::cli {
namespace {

double real(const Scalar& scalar) {
  double value = 0;
  std::memcpy(&value, to_bytes(scalar, Dtype::float64).data(), sizeof value);
  return value;
}

std::int64_t whole(const Scalar& scalar, const char* what) {
  if (const auto* value = std::get_if<std::int64_t>(&scalar.value)) return *value;
  throw Error(ErrorCode::usage, fmt::format("{} is a whole number", what));
}

bool is_whole(const Scalar& scalar) { return std::holds_alternative<std::int64_t>(scalar.value); }

// Exact even if the quotient of doubles is not, so that every element is between start and stop.
double steps_between(std::int64_t start, std::int64_t stop, std::int64_t step) {
  if ((step > 0) != (stop > start) || stop == start) return 0;
  const auto distance = [](std::int64_t a, std::int64_t b) {
    return a < b ? static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a)
                 : static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b);
  };
  return static_cast<double>((distance(start, stop) - 1) / distance(0, step) + 1);
}

std::byte* at(const Array& array, std::int64_t index) {
  return array.bytes->data() + index * static_cast<std::int64_t>(array.element.size_bytes);
}

// NumPy computes the first two elements in the element type and then adds their difference (fill functions of
// its dtypes).
template <class T>
void fill_steps(const Array& array, Dtype dtype, double start, double step) {
  const T first = static_cast<T>(start);
  const T delta = static_cast<T>(static_cast<T>(start + step) - first);
  for (std::int64_t i = 0; i < array.count(); ++i)
    store_double(static_cast<double>(static_cast<T>(first + static_cast<T>(static_cast<T>(i) * delta))),
                 dtype, at(array, i));
}

}  // namespace

Array full(std::vector<std::int64_t> shape, const Scalar& value, Dtype dtype) {
  const std::vector<std::byte> bytes = to_bytes(value, dtype);
  Array array = make_array(element_of(dtype), std::move(shape));
  for (std::size_t i = 0; i < array.bytes->size(); i += bytes.size())
    std::memcpy(array.bytes->data() + i, bytes.data(), bytes.size());
  return array;
}

Array arange(const Scalar& start, const Scalar& stop, const Scalar& step, std::optional<Dtype> dtype) {
  const bool integral = is_whole(start) && is_whole(stop) && is_whole(step);
  const Dtype element = dtype.value_or(integral ? Dtype::int64 : Dtype::float64);
  if (real(step) == 0) throw Error(ErrorCode::usage, "arange's step cannot be 0");
  const double length = integral
                            ? steps_between(whole(start, "start"), whole(stop, "stop"), whole(step, "step"))
                            : std::ceil((real(stop) - real(start)) / real(step));
  if (!(length < 0x1p47)) throw Error(ErrorCode::usage, "arange would have too many elements");
  Array array = make_array(element_of(element), {length > 0 ? static_cast<std::int64_t>(length) : 0});
  if (integral) {
    for (std::int64_t i = 0; i < array.count(); ++i)
      store_integer(whole(start, "start") + i * whole(step, "step"), element, at(array, i));
  } else if (element == Dtype::float32 || element == Dtype::float16 || element == Dtype::bfloat16) {
    fill_steps<float>(array, element, real(start), real(step));
  } else {
    fill_steps<double>(array, element, real(start), real(step));
  }
  return array;
}

Array linspace(const Scalar& start, const Scalar& stop, const Scalar& num, Dtype dtype) {
  const std::int64_t count = whole(num, "num");
  Array array = make_array(element_of(dtype), {count});
  const bool integer = dtype <= Dtype::uint64;
  const double first = real(start);
  const double step = count > 1 ? (real(stop) - first) / static_cast<double>(count - 1) : 0;
  for (std::int64_t i = 0; i < count; ++i) {
    double value = static_cast<double>(i) * step + first;
    if (i == count - 1 && count > 1) value = real(stop);
    store_double(integer ? std::floor(value) : value, dtype, at(array, i));
  }
  return array;
}

Array random(std::vector<std::int64_t> shape, Dtype dtype, const Scalar& seed) {
  if (dtype != Dtype::float32 && dtype != Dtype::float64)
    throw Error(ErrorCode::usage, fmt::format("random makes float32 and float64, not {}", name(dtype)));
  const std::int64_t number = whole(seed, "seed");
  if (number < 0) throw Error(ErrorCode::usage, "seed is not negative");
  Array array = make_array(element_of(dtype), std::move(shape));
  Pcg64 generator(static_cast<std::uint64_t>(number));
  for (std::int64_t i = 0; i < array.count(); ++i)
    store_double(
        dtype == Dtype::float32 ? static_cast<double>(generator.next_float()) : generator.next_double(),
        dtype, at(array, i));
  return array;
}

}  // namespace quern::cli
