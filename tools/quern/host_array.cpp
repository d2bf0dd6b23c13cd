// SPDX-License-Identifier: Apache-2.0
#include "tools/quern/host_array.hpp"

#include <fmt/format.h>

#include <cstring>

#include <quern/device_array.hpp>
#include <quern/error.hpp>

namespace tool {
namespace {

struct DescrRow {
  quern::Dtype dtype;
  const char* descr;
};
constexpr DescrRow kDescrs[] = {
    {quern::Dtype::bool_, "'|b1'"},       {quern::Dtype::int8, "'|i1'"},
    {quern::Dtype::int16, "'<i2'"},       {quern::Dtype::int32, "'<i4'"},
    {quern::Dtype::int64, "'<i8'"},       {quern::Dtype::uint8, "'|u1'"},
    {quern::Dtype::uint16, "'<u2'"},      {quern::Dtype::uint32, "'<u4'"},
    {quern::Dtype::uint64, "'<u8'"},      {quern::Dtype::float16, "'<f2'"},
    {quern::Dtype::bfloat16, "'|V2'"},    {quern::Dtype::float32, "'<f4'"},
    {quern::Dtype::float64, "'<f8'"},     {quern::Dtype::complex64, "'<c8'"},
    {quern::Dtype::complex128, "'<c16'"},
};

std::vector<std::int64_t> c_strides(const std::vector<std::int64_t>& shape, std::size_t element_bytes) {
  std::vector<std::int64_t> strides(shape.size());
  auto stride = static_cast<std::int64_t>(element_bytes);
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    if (shape[axis] > 0) stride *= shape[axis];
  }
  return strides;
}

void copy_elements(const HostArray& from, std::size_t axis, const std::byte* source, std::byte*& target) {
  if (axis == from.shape.size()) {
    std::memcpy(target, source, from.element.size_bytes);
    target += from.element.size_bytes;
    return;
  }
  for (std::int64_t i = 0; i < from.shape[axis]; ++i)
    copy_elements(from, axis + 1, source + i * from.strides_bytes[axis], target);
}

}  // namespace

ElementKind ElementKind::of(quern::Dtype dtype) {
  return {dtype, quern::size_bytes(dtype), kDescrs[static_cast<std::size_t>(dtype)].descr};
}

std::string ElementKind::name() const { return dtype ? std::string(quern::name(*dtype)) : descr; }

std::optional<std::size_t> checked_bytes(std::span<const std::int64_t> shape, std::size_t element_bytes) {
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    empty = empty || extent == 0;
  }
  if (empty) return 0;
  std::size_t bytes = element_bytes;
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes) ||
        bytes > static_cast<std::size_t>(INT64_MAX))
      return std::nullopt;
  return bytes;
}

std::size_t HostArray::size() const noexcept {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  return count;
}

bool HostArray::is_c_contiguous() const noexcept {
  auto stride = static_cast<std::int64_t>(element.size_bytes);
  for (const std::int64_t extent : shape)
    if (extent == 0) return true;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] != 1 && strides_bytes[axis] != stride) return false;
    stride *= shape[axis];
  }
  return true;
}

HostArray HostArray::contiguous() const {
  if (is_c_contiguous()) return *this;
  HostArray copy = make_array(element, shape);
  copy.written = written;
  std::byte* target = copy.data->data();
  copy_elements(*this, 0, data->data() + offset_bytes, target);
  return copy;
}

std::span<std::byte> HostArray::bytes() const {
  return std::span<std::byte>(*data).subspan(size_bytes() > 0 ? static_cast<std::size_t>(offset_bytes) : 0,
                                             size_bytes());
}

HostArray HostArray::transposed() const {
  HostArray view = *this;
  view.shape.assign(shape.rbegin(), shape.rend());
  view.strides_bytes.assign(strides_bytes.rbegin(), strides_bytes.rend());
  return view;
}

const std::byte* HostArray::element_at(std::size_t index) const {
  const std::byte* place = data->data() + offset_bytes;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const auto extent = static_cast<std::size_t>(shape[axis]);
    place += static_cast<std::int64_t>(index % extent) * strides_bytes[axis];
    index /= extent;
  }
  return place;
}

HostArray make_array(ElementKind element, std::vector<std::int64_t> shape) {
  const std::optional<std::size_t> bytes = checked_bytes(shape, element.size_bytes);
  if (!bytes)
    throw quern::Error(
        quern::ErrorCode::usage,
        fmt::format("an array of shape {} cannot be made; give extents of 0 or more, and fewer elements",
                    quern::shape_text(shape)));
  HostArray array;
  array.strides_bytes = c_strides(shape, element.size_bytes);
  array.element = std::move(element);
  array.shape = std::move(shape);
  try {
    array.data = std::make_shared<std::vector<std::byte>>(*bytes);
  } catch (const std::bad_alloc&) {
    throw quern::Error(
        quern::ErrorCode::out_of_memory,
        fmt::format("the host has no memory for an array of shape {} ({} bytes); use a smaller one",
                    quern::shape_text(array.shape), *bytes));
  }
  return array;
}

}  // namespace tool
