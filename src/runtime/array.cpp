// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "quern/device_array.hpp"
#include "quern/error.hpp"
#include "runtime/buffer.hpp"

namespace quern {
namespace runtime {

std::size_t array_bytes(std::span<const std::int64_t> shape, std::size_t element_bytes) {
  std::size_t bytes = element_bytes;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0)
      throw Error(
          ErrorCode::usage,
          fmt::format("an array of shape {} cannot be: extent {} is negative; give extents of 0 or more",
                      shape_text(shape), extent));
    empty = empty || extent == 0;
  }
  if (empty) return 0;
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes) ||
        bytes > static_cast<std::size_t>(INT64_MAX))
      throw Error(ErrorCode::usage, fmt::format("an array of shape {} with elements of {} bytes is larger "
                                                "than an address space; use a smaller one",
                                                shape_text(shape), element_bytes));
  return bytes;
}

}  // namespace runtime

std::string to_string(const ElementType& element) {
  return element.dtype ? std::string(name(*element.dtype))
                       : fmt::format("{}-byte record", element.size_bytes);
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    text += fmt::format("{}{}", axis == 0 ? "" : ", ", shape[axis]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

DeviceNDArray::DeviceNDArray(DeviceBuffer buffer, ElementType element, std::vector<std::int64_t> shape)
    : buffer_(std::move(buffer)), element_(element), shape_(std::move(shape)), strides_bytes_(shape_.size()) {
  const std::size_t bytes = runtime::array_bytes(shape_, element_.size_bytes);
  if (bytes > buffer_.size_bytes())
    throw Error(
        ErrorCode::usage,
        fmt::format("an array of shape {} and {} needs {} bytes, the buffer has {}; give a larger buffer",
                    shape_text(shape_), to_string(element_), bytes, buffer_.size_bytes()));
  size_ = element_.size_bytes > 0 ? bytes / element_.size_bytes : 0;
  auto stride = static_cast<std::int64_t>(element_.size_bytes);
  for (std::size_t axis = shape_.size(); axis-- > 0;) {
    strides_bytes_[axis] = stride;
    if (size_ > 0) stride *= shape_[axis];
  }
}

void DeviceNDArray::require_size(std::size_t bytes, const char* what) const {
  if (bytes == size_bytes()) return;
  throw Error(ErrorCode::usage,
              fmt::format("cannot copy {} the device array of {} with shape {}: it has {} bytes, the host "
                          "side {}; give as many",
                          what, to_string(element_), shape_text(shape_), size_bytes(), bytes));
}

void DeviceNDArray::copy_bytes_from_host(std::span<const std::byte> bytes) const {
  require_size(bytes.size(), "to");
  buffer_.copy_from_host(bytes);
}

void DeviceNDArray::copy_bytes_from_host(std::span<const std::byte> bytes, StreamView stream) const {
  require_size(bytes.size(), "to");
  buffer_.copy_from_host(bytes, 0, stream);
}

void DeviceNDArray::copy_bytes_to_host(std::span<std::byte> bytes) const {
  require_size(bytes.size(), "from");
  buffer_.copy_to_host(bytes);
}

void DeviceNDArray::copy_bytes_to_host(std::span<std::byte> bytes, StreamView stream) const {
  require_size(bytes.size(), "from");
  buffer_.copy_to_host(bytes, 0, stream);
}

}  // namespace quern
