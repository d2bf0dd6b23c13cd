// SPDX-License-Identifier: Apache-2.0
#include "values.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

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

Json json_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return value;
}

}  // namespace

std::complex<double> number_at(Dtype dtype, const std::byte* bytes) {
  switch (dtype) {
    case Dtype::bool_:
      return read<std::uint8_t>(bytes) != 0 ? 1.0 : 0.0;
    case Dtype::int8:
      return static_cast<double>(read<std::int8_t>(bytes));
    case Dtype::int16:
      return static_cast<double>(read<std::int16_t>(bytes));
    case Dtype::int32:
      return static_cast<double>(read<std::int32_t>(bytes));
    case Dtype::int64:
      return static_cast<double>(read<std::int64_t>(bytes));
    case Dtype::uint8:
      return static_cast<double>(read<std::uint8_t>(bytes));
    case Dtype::uint16:
      return static_cast<double>(read<std::uint16_t>(bytes));
    case Dtype::uint32:
      return static_cast<double>(read<std::uint32_t>(bytes));
    case Dtype::uint64:
      return static_cast<double>(read<std::uint64_t>(bytes));
    case Dtype::float16:
      return static_cast<double>(read<_Float16>(bytes));
    case Dtype::bfloat16:
      return static_cast<double>(std::bit_cast<float>(std::uint32_t{read<std::uint16_t>(bytes)} << 16));
    case Dtype::float32:
      return static_cast<double>(read<float>(bytes));
    case Dtype::float64:
      return read<double>(bytes);
    case Dtype::complex64:
      return std::complex<double>(read<std::complex<float>>(bytes));
    case Dtype::complex128:
      return read<std::complex<double>>(bytes);
  }
  return 0.0;
}

Json json_value(const Element& element, const std::byte* bytes) {
  if (!element.dtype) return format_element(element, bytes);
  switch (*element.dtype) {
    case Dtype::bool_:
      return read<std::uint8_t>(bytes) != 0;
    case Dtype::int64:
      return read<std::int64_t>(bytes);
    case Dtype::uint64:
      return read<std::uint64_t>(bytes);
    default:
      break;
  }
  const std::complex<double> number = number_at(*element.dtype, bytes);
  if (*element.dtype >= Dtype::complex64)
    return Json::array({json_real(number.real()), json_real(number.imag())});
  if (*element.dtype < Dtype::float16) return static_cast<std::int64_t>(number.real());
  return json_real(number.real());
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace quern::cli
