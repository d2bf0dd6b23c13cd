// SPDX-License-Identifier: Apache-2.0
// room: runtime
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "quern/dtype.hpp"
#include "quern/export.hpp"
#include "quern/stream.hpp"

namespace quern {

namespace runtime {
struct BufferState;
}

/// What one array element is: a Dtype, or bytes of a struct (no dtype).
struct ElementType {
  std::optional<Dtype> dtype;
  std::size_t size_bytes = 0;

  ElementType() = default;
  ElementType(Dtype type)
      : dtype(type), size_bytes(quern::size_bytes(type)) {}  // NOLINT(google-explicit-constructor)
  static ElementType opaque(std::size_t bytes) {
    ElementType element;
    element.size_bytes = bytes;
    return element;
  }
  friend bool operator==(const ElementType&, const ElementType&) = default;
};

/// "float32", or "24-byte record".
QUERN_API std::string to_string(const ElementType& element);

/// The ElementType of a C++ type; a trivially copyable struct is opaque.
template <class T>
ElementType element_type_of() {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable types can live in device memory");
  if constexpr (requires { DtypeOf<T>::value; }) return DtypeOf<T>::value;
  if constexpr (std::is_same_v<T, std::complex<float>>) return Dtype::complex64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return Dtype::complex128;
  return ElementType::opaque(sizeof(T));
}

/// Bytes of device memory, shared by all copies of this object; when the last one goes, the release is
/// scheduled in the context's queue. Every copy without a stream is synchronous; on a stream it is queued: a
/// source span is staged before the call returns, a target span must outlive the synchronisation. Throws
/// DriverError, and Error(usage) for a range outside the buffer.
class QUERN_API DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::shared_ptr<const runtime::BufferState> state) : state_(std::move(state)) {}

  /// The device address; null for an empty buffer.
  void* data() const noexcept;
  std::size_t size_bytes() const noexcept;

  void copy_from_host(std::span<const std::byte> source, std::size_t offset_bytes = 0) const;
  void copy_from_host(std::span<const std::byte> source, std::size_t offset_bytes, StreamView stream) const;
  void copy_to_host(std::span<std::byte> target, std::size_t offset_bytes = 0) const;
  void copy_to_host(std::span<std::byte> target, std::size_t offset_bytes, StreamView stream) const;
  /// Device to device: the first `source.size_bytes()` bytes of this buffer become the source's.
  void copy_from(const DeviceBuffer& source) const;
  void copy_from(const DeviceBuffer& source, StreamView stream) const;
  /// Sets every byte.
  void fill(std::byte value) const;
  void fill(std::byte value, StreamView stream) const;

  const std::shared_ptr<const runtime::BufferState>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<const runtime::BufferState> state_;
};

/// An N-dimensional C-contiguous array in device memory. Shape in elements, strides in bytes. Copies share
/// the memory. Rank 0 and extents of 0 are legal.
class QUERN_API DeviceNDArray {
 public:
  DeviceNDArray() = default;
  /// `buffer` holds at least the product of `shape` elements.
  DeviceNDArray(DeviceBuffer buffer, ElementType element, std::vector<std::int64_t> shape);

  void* data() const noexcept { return buffer_.data(); }
  const ElementType& element() const noexcept { return element_; }
  const std::optional<Dtype>& dtype() const noexcept { return element_.dtype; }
  std::span<const std::int64_t> shape() const noexcept { return shape_; }
  std::span<const std::int64_t> strides_bytes() const noexcept { return strides_bytes_; }
  std::size_t ndim() const noexcept { return shape_.size(); }
  /// Elements in all.
  std::size_t size() const noexcept { return size_; }
  std::size_t size_bytes() const noexcept { return size_ * element_.size_bytes; }
  const DeviceBuffer& buffer() const noexcept { return buffer_; }

  /// Whole-array copies; `bytes` has exactly size_bytes().
  void copy_bytes_from_host(std::span<const std::byte> bytes) const;
  void copy_bytes_from_host(std::span<const std::byte> bytes, StreamView stream) const;
  void copy_bytes_to_host(std::span<std::byte> bytes) const;
  void copy_bytes_to_host(std::span<std::byte> bytes, StreamView stream) const;

 private:
  void require_size(std::size_t bytes, const char* what) const;

  DeviceBuffer buffer_;
  ElementType element_;
  std::vector<std::int64_t> shape_;
  std::vector<std::int64_t> strides_bytes_;
  std::size_t size_ = 0;
};

/// A DeviceNDArray whose element type is known to the compiler.
template <class T>
class DeviceArray : public DeviceNDArray {
 public:
  using value_type = T;

  DeviceArray() = default;
  DeviceArray(DeviceBuffer memory, std::vector<std::int64_t> extents)
      : DeviceNDArray(std::move(memory), element_type_of<T>(), std::move(extents)) {}

  T* data() const noexcept { return static_cast<T*>(DeviceNDArray::data()); }

  /// Waits, and copies all elements; `target` has exactly size() of them.
  void copy_to_host(std::span<T> target) const { copy_bytes_to_host(std::as_writable_bytes(target)); }
  /// Queues the copy; `target` must outlive the stream's synchronisation.
  void copy_to_host(std::span<T> target, StreamView stream) const {
    copy_bytes_to_host(std::as_writable_bytes(target), stream);
  }
  std::vector<T> copy_to_host() const {
    std::vector<T> target(size());
    copy_to_host(target);
    return target;
  }
  /// `source` has exactly size() elements.
  void copy_from_host(std::span<const T> source) const { copy_bytes_from_host(std::as_bytes(source)); }
  void copy_from_host(std::span<const T> source, StreamView stream) const {
    copy_bytes_from_host(std::as_bytes(source), stream);
  }
};

/// "(3, 4)", "(5,)", "()": a shape as NumPy prints it.
QUERN_API std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace quern
