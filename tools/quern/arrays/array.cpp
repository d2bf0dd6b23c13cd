// SPDX-License-Identifier: Apache-2.0
#include "arrays/array.hpp"

#include <fmt/format.h>
#include <quern/error.hpp>

#include <bit>
#include <cmath>
#include <cstring>

namespace quern::cli {
namespace {

template <class T>
T read(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// NumPy prints the shortest text that reads back, with a trailing dot for whole numbers.
template <class T>
std::string format_float(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos)
    text += '.';
  else if (text.ends_with(".0"))
    text.pop_back();
  return text;
}

template <class T>
std::string format_complex(const std::byte* bytes) {
  const T imaginary = read<T>(bytes + sizeof(T));
  const std::string text = format_float(imaginary);
  return fmt::format("({}{}{}j)", format_float(read<T>(bytes)), text.front() == '-' ? "" : "+", text);
}

float half_to_float(std::uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int mantissa = half & 1023;
  float value = 0;
  if (exponent == 31)
    value = mantissa != 0 ? NAN : INFINITY;
  else if (exponent == 0)
    value = std::ldexp(static_cast<float>(mantissa), -24);
  else
    value = std::ldexp(static_cast<float>(mantissa | 1024), exponent - 25);
  return (half & 0x8000) != 0 ? -value : value;
}

std::vector<std::int64_t> c_strides(const std::vector<std::int64_t>& shape, std::size_t item_bytes) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t step = static_cast<std::int64_t>(item_bytes);
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

// NumPy's rule: axes of extent 1 do not matter, and an array without elements is contiguous.
bool follows(const Array& array, bool reversed) {
  if (array.count() == 0) return true;
  std::int64_t step = static_cast<std::int64_t>(array.element.size_bytes);
  const std::size_t rank = array.shape.size();
  for (std::size_t k = 0; k < rank; ++k) {
    const std::size_t i = reversed ? k : rank - 1 - k;
    if (array.shape[i] != 1 && array.strides[i] != step) return false;
    step *= array.shape[i];
  }
  return true;
}

}  // namespace

Element element_of(Dtype dtype) { return {dtype, dtype, size_bytes(dtype)}; }

std::string name(const Element& element) {
  return element.dtype ? std::string(quern::name(*element.dtype)) : to_string(element.type);
}

std::int64_t Array::count() const noexcept {
  std::int64_t total = 1;
  for (const std::int64_t extent : shape) total *= extent;
  return total;
}

bool Array::c_contiguous() const noexcept { return follows(*this, false); }
bool Array::f_contiguous() const noexcept { return follows(*this, true); }

Array make_array(const Element& element, std::vector<std::int64_t> shape) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 47;
  std::int64_t total = static_cast<std::int64_t>(element.size_bytes);
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) throw Error(ErrorCode::usage, fmt::format("negative extent {} in a shape", extent));
    if (extent == 0) empty = true;
    // also if another extent is 0, as in NumPy, since strides must not overflow
    else if (total > kLimit / extent)
      throw Error(ErrorCode::usage, "an array of this shape would exceed 128 TiB");
    else
      total *= extent;
  }
  Array array;
  array.element = element;
  array.strides = c_strides(shape, element.size_bytes);
  array.shape = std::move(shape);
  try {
    array.bytes = std::make_shared<std::vector<std::byte>>(empty ? 0 : static_cast<std::size_t>(total));
  } catch (const std::exception&) {
    throw Error(
        ErrorCode::out_of_memory,
        fmt::format("this machine has no memory for an array of {} bytes\nhint: use a smaller array; arrays "
                    "begin in the host's memory",
                    total));
  }
  return array;
}

const std::byte* element_at(const Array& array, std::int64_t index) {
  std::int64_t offset = array.offset;
  for (std::size_t i = array.shape.size(); i-- > 0;) {
    offset += (index % array.shape[i]) * array.strides[i];
    index /= array.shape[i];
  }
  return array.bytes->data() + offset;
}

Array contiguous(const Array& array) {
  const std::size_t needed = static_cast<std::size_t>(array.count()) * array.element.size_bytes;
  if (array.offset == 0 && needed == array.bytes->size() && (array.c_contiguous() || array.f_contiguous()))
    return array;
  Array copy = make_array(array.element, array.shape);
  const std::int64_t count = array.count();
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(copy.bytes->data() + static_cast<std::size_t>(i) * array.element.size_bytes,
                element_at(array, i), array.element.size_bytes);
  return copy;
}

std::string format_element(const Element& element, const std::byte* bytes) {
  if (!element.dtype) {
    std::string text = "0x";
    for (std::size_t i = 0; i < element.size_bytes; ++i)
      text += fmt::format("{:02x}", std::to_integer<unsigned>(bytes[i]));
    return text;
  }
  switch (*element.dtype) {
    case Dtype::bool_:
      return std::to_integer<int>(*bytes) != 0 ? "True" : "False";
    case Dtype::int8:
      return fmt::format("{}", static_cast<int>(read<std::int8_t>(bytes)));
    case Dtype::int16:
      return fmt::format("{}", read<std::int16_t>(bytes));
    case Dtype::int32:
      return fmt::format("{}", read<std::int32_t>(bytes));
    case Dtype::int64:
      return fmt::format("{}", read<std::int64_t>(bytes));
    case Dtype::uint8:
      return fmt::format("{}", static_cast<unsigned>(read<std::uint8_t>(bytes)));
    case Dtype::uint16:
      return fmt::format("{}", read<std::uint16_t>(bytes));
    case Dtype::uint32:
      return fmt::format("{}", read<std::uint32_t>(bytes));
    case Dtype::uint64:
      return fmt::format("{}", read<std::uint64_t>(bytes));
    case Dtype::float16:
      return format_float(half_to_float(read<std::uint16_t>(bytes)));
    case Dtype::bfloat16:
      return format_float(std::bit_cast<float>(static_cast<std::uint32_t>(read<std::uint16_t>(bytes)) << 16));
    case Dtype::float32:
      return format_float(read<float>(bytes));
    case Dtype::float64:
      return format_float(read<double>(bytes));
    case Dtype::complex64:
      return format_complex<float>(bytes);
    case Dtype::complex128:
      return format_complex<double>(bytes);
  }
  return "?";
}

}  // namespace quern::cli
