// SPDX-License-Identifier: Apache-2.0
#include "arrays/picture.hpp"

#include <fmt/format.h>
#include <png.h>
#include <quern/error.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "arrays/files.hpp"

namespace quern::cli {
namespace {

struct Rgb {
  double red, green, blue;
};
// From night blue over teal and amber to white. The lightness increases evenly, so that the map also works in
// grey.
constexpr std::array<Rgb, 7> kColours{{{3, 7, 30},
                                       {20, 33, 97},
                                       {18, 88, 138},
                                       {31, 149, 139},
                                       {132, 190, 100},
                                       {245, 196, 84},
                                       {255, 250, 235}}};

template <class T>
double load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<double>(value);
}

double to_double(Dtype dtype, const std::byte* bytes) {
  switch (dtype) {
    case Dtype::bool_:
    case Dtype::uint8:
      return load<std::uint8_t>(bytes);
    case Dtype::int8:
      return load<std::int8_t>(bytes);
    case Dtype::int16:
      return load<std::int16_t>(bytes);
    case Dtype::uint16:
      return load<std::uint16_t>(bytes);
    case Dtype::int32:
      return load<std::int32_t>(bytes);
    case Dtype::uint32:
      return load<std::uint32_t>(bytes);
    case Dtype::int64:
      return load<std::int64_t>(bytes);
    case Dtype::uint64:
      return load<std::uint64_t>(bytes);
    case Dtype::float32:
      return load<float>(bytes);
    case Dtype::float64:
      return load<double>(bytes);
    default:
      return std::stod(format_element(element_of(dtype), bytes));  // float16, bfloat16
  }
}

std::vector<std::uint8_t> coloured(const Array& array) {
  const std::int64_t count = array.count();
  std::vector<double> values(static_cast<std::size_t>(count));
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = to_double(*array.element.dtype, element_at(array, i));
    values[static_cast<std::size_t>(i)] = value;
    if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  }
  const double span = high > low ? high - low : 1;
  std::size_t dark = 0;
  for (double& value : values) {
    value = std::isnan(value) ? value : std::clamp((value - low) / span, 0.0, 1.0);
    if (value < 1.0 / 16) ++dark;
  }
  const bool logarithmic = dark > values.size() / 2;
  std::vector<std::uint8_t> pixels;
  pixels.reserve(values.size() * 3);
  for (double value : values) {
    if (std::isnan(value)) {
      pixels.insert(pixels.end(), {0, 0, 0});
      continue;
    }
    const double place =
        (logarithmic ? std::log1p(255 * value) / std::log(256.0) : value) * (kColours.size() - 1);
    const std::size_t left = std::min(static_cast<std::size_t>(place), kColours.size() - 2);
    const double part = place - static_cast<double>(left);
    const auto blend = [&](double Rgb::* channel) {
      return static_cast<std::uint8_t>(
          std::lround(kColours[left].*channel * (1 - part) + kColours[left + 1].*channel * part));
    };
    pixels.insert(pixels.end(), {blend(&Rgb::red), blend(&Rgb::green), blend(&Rgb::blue)});
  }
  return pixels;
}

std::string encode(const std::uint8_t* pixels, std::uint32_t width, std::uint32_t height,
                   std::uint32_t format) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  png_alloc_size_t size = 0;
  if (png_image_write_get_memory_size(image, size, 0, pixels, 0, nullptr) == 0)
    throw Error(ErrorCode::io, fmt::format("cannot encode the picture: {}", image.message));
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels, 0, nullptr) == 0)
    throw Error(ErrorCode::io, fmt::format("cannot encode the picture: {}", image.message));
  bytes.resize(size);
  return bytes;
}

}  // namespace

void write_picture(const std::string& path, const Array& array) {
  const bool rgb = array.shape.size() == 3 && (array.shape[2] == 3 || array.shape[2] == 4) &&
                   array.element.dtype == Dtype::uint8;
  const bool plane =
      array.shape.size() == 2 && array.element.dtype && *array.element.dtype < Dtype::complex64;
  if ((!rgb && !plane) || array.count() == 0 || array.shape[0] > 1 << 16 || array.shape[1] > 1 << 16)
    throw Error(ErrorCode::usage, fmt::format("an array of shape ({}) and type {} is no picture\nhint: a "
                                              "picture is a 2-D array of numbers, or (h, w, 3) or (h, w, 4) "
                                              "uint8, with at most 65536 rows and columns",
                                              fmt::join(array.shape, ", "), name(array.element)));
  const auto width = static_cast<std::uint32_t>(array.shape[1]);
  const auto height = static_cast<std::uint32_t>(array.shape[0]);
  if (rgb) {
    Array packed = make_array(array.element, array.shape);
    for (std::int64_t i = 0; i < array.count(); ++i) packed.bytes->data()[i] = *element_at(array, i);
    const auto* pixels = reinterpret_cast<const std::uint8_t*>(packed.bytes->data());
    return write_whole_file(
        path, encode(pixels, width, height, array.shape[2] == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA));
  }
  write_whole_file(path, encode(coloured(array).data(), width, height, PNG_FORMAT_RGB));
}

}  // namespace quern::cli
