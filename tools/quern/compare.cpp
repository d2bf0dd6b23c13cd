// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "values.hpp"

namespace quern::cli {
namespace {

bool close(double actual, double expected, double rtol, double atol) {
  if (std::isnan(actual) || std::isnan(expected)) return std::isnan(actual) && std::isnan(expected);
  if (actual == expected) return true;
  if (std::isinf(actual) || std::isinf(expected)) return false;
  return std::fabs(actual - expected) <= atol + rtol * std::fabs(expected);
}

/// Records match if their fields do: the bytes between them are not data.
bool matches(const ElementType& element, const std::byte* actual, const std::byte* expected, double rtol,
             double atol) {
  if (std::memcmp(actual, expected, element.size_bytes) == 0) return true;
  if (element.record != nullptr)
    return std::ranges::all_of(element.record->fields(), [&](const Field& field) {
      std::int64_t count = 1;
      for (const std::int64_t extent : field.shape) count *= extent;
      std::size_t at = field.offset_bytes;
      for (std::int64_t i = 0; i < count; ++i, at += field.element.size_bytes)
        if (!matches(field.element, actual + at, expected + at, rtol, atol)) return false;
      return true;
    });
  if (!element.dtype || (*element.dtype < Dtype::float16 && rtol == 0 && atol == 0)) return false;
  const std::complex<double> a = number_at(*element.dtype, actual);
  const std::complex<double> b = number_at(*element.dtype, expected);
  return close(a.real(), b.real(), rtol, atol) && close(a.imag(), b.imag(), rtol, atol);
}

std::string place_text(std::int64_t index, const std::vector<std::int64_t>& shape) {
  std::string text;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    text = fmt::format("{}{}{}", index % shape[axis], text.empty() ? "" : ", ", text);
    index /= shape[axis];
  }
  return "[" + text + "]";
}

/// The first element that does not match and how many do not; `expected_at(i)` gives the bytes that element i
/// must have.
template <class ExpectedAt>
std::optional<std::string> first_mismatch(const Array& actual, double rtol, double atol,
                                          ExpectedAt expected_at) {
  std::int64_t first = -1;
  std::int64_t wrong = 0;
  const ElementType& type = actual.element.type;
  for (std::int64_t i = 0; i < actual.count(); ++i) {
    if (matches(type, element_at(actual, i), expected_at(i), rtol, atol)) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return std::nullopt;
  return fmt::format("{} is {}, expected {}; {} of {} values are wrong", place_text(first, actual.shape),
                     format_element(actual.element, element_at(actual, first)),
                     format_element(actual.element, expected_at(first)), wrong, actual.count());
}

}  // namespace

std::optional<std::string> difference(const Array& actual, const Array& expected, double rtol, double atol) {
  if (actual.element.dtype != expected.element.dtype ||
      actual.element.size_bytes != expected.element.size_bytes)
    return fmt::format("it holds {}, expected {}", name(actual.element), name(expected.element));
  if (actual.shape != expected.shape)
    return fmt::format("its shape is {}, expected {}", shape_text(actual.shape), shape_text(expected.shape));
  return first_mismatch(actual, rtol, atol, [&](std::int64_t i) { return element_at(expected, i); });
}

std::optional<std::string> difference(const Array& actual, const ExpectedValues& expected, double rtol,
                                      double atol) {
  if (!actual.element.dtype)
    return "it holds records, which cannot be compared with numbers; use file or sha256";
  const auto given = static_cast<std::int64_t>(expected.numbers.size());
  if (!expected.single && given != actual.count())
    return fmt::format("it has {} values, expected {}", actual.count(), given);
  std::vector<std::vector<std::byte>> bytes;
  for (const Scalar& number : expected.numbers) bytes.push_back(to_bytes(number, *actual.element.dtype));
  return first_mismatch(actual, rtol, atol, [&](std::int64_t i) {
    return bytes[expected.single ? 0 : static_cast<std::size_t>(i)].data();
  });
}

}  // namespace quern::cli
