// SPDX-License-Identifier: Apache-2.0
// component: runtime
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "quern/cuda_array_interface.hpp"
#include "quern/dlpack_tensor.hpp"
#include "quern/export.hpp"
#include "quern/ndarray.hpp"
#include "quern/stream.hpp"
#include "quern/strided_array.hpp"

namespace quern {

namespace runtime {
struct BufferState;
}

/// A type whose objects export themselves by DLPack, as Python's objects with `__dlpack__(stream=...)` do:
/// `to_dlpack` gets the stream on which the consumer will use the array (nothing: no ordering is requested),
/// makes work queued there wait for the values, and returns a tensor that the consumer owns.
template <class A>
concept DlpackArray = requires(const A& array, std::optional<StreamView> consumer) {
  { array.to_dlpack(consumer) } -> std::same_as<dlpack::ManagedTensorVersioned*>;
};

/// Bytes of device memory, shared by all copies of this object; the destructor of the last one schedules the
/// release in the context's queue. Every copy without a stream is done on return; on a stream it is queued: a
/// source span is staged before the call returns, a target span must outlive the synchronisation. Throws
/// DriverError, and Error(usage) for a range outside the buffer and for writing to memory whose producer
/// forbids it.
class QUERN_API DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::shared_ptr<const runtime::BufferState> state) : state_(std::move(state)) {}

  /// The device address; null for an empty buffer.
  void* data() const noexcept;
  std::size_t size_bytes() const noexcept;

  void copy_from_host(std::span<const std::byte> source, std::size_t offset_bytes = 0,
                      std::optional<StreamView> stream = {}) const;
  void copy_to_host(std::span<std::byte> target, std::size_t offset_bytes = 0,
                    std::optional<StreamView> stream = {}) const;
  /// Device to device: the first `source.size_bytes()` bytes of this buffer become the source's.
  void copy_from(const DeviceBuffer& source, std::optional<StreamView> stream = {}) const;
  /// Sets every byte.
  void fill(std::byte value, std::optional<StreamView> stream = {}) const;

  const std::shared_ptr<const runtime::BufferState>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<const runtime::BufferState> state_;
};

/// An N-dimensional array in device memory. Shape in elements, strides in bytes. Copies and views share the
/// memory and keep it alive. Rank 0 and extents of 0 are legal.
///
/// The array is a handle, as std::span and std::shared_ptr are: a const array object refers to the same
/// elements for its whole life, and they can be written through it. Whether elements can be written is a
/// property of the elements: in a DeviceArray<const T>, checked by the compiler, and in an array that
/// is_read_only(), checked at run time, they cannot; the same holds for all copies and views of it. buffer()
/// and data() give the memory itself, without that check.
///
/// Copies without a stream are done on return. With a stream they are queued: arrays that own their memory
/// are kept alive until the copy has run, spans and NDArray::view()s are staged (sources) or must outlive the
/// stream's synchronisation (targets).
class QUERN_API DeviceNDArray : public detail::ArrayViews<DeviceNDArray> {
 public:
  DeviceNDArray() = default;
  /// C-contiguous; `buffer` holds at least the product of `shape` elements.
  DeviceNDArray(DeviceBuffer buffer, ElementType element, Shape shape);
  /// Element 0 at `offset_bytes`. Throws Error(usage) if elements would lie outside the buffer.
  DeviceNDArray(DeviceBuffer buffer, ElementType element, Layout layout, std::int64_t offset_bytes);

  /// The device address of element 0.
  void* data() const noexcept { return static_cast<std::byte*>(buffer_.data()) + offset_bytes_; }
  /// The whole memory that this array is a view of.
  const DeviceBuffer& buffer() const noexcept { return buffer_; }
  std::int64_t offset_bytes() const noexcept { return offset_bytes_; }
  /// True if the elements must not be written: as_read_only() made the array, its producer forbids writing,
  /// or it is const data that was mapped. Copies to it are rejected, and so are launches of kernels that
  /// could write to it: all except those whose source declares the parameter const. PTX does not say which
  /// parameters a kernel writes to; pass the address, data(), to kernels in PTX that only read.
  bool is_read_only() const noexcept;
  /// The same array, read-only, as are all its views.
  DeviceNDArray as_read_only() const;

  /// The array's description for consumers of the CUDA Array Interface. `stream`: they wait for its work
  /// first.
  CudaArrayInterface cuda_array_interface(std::optional<StreamView> stream = {}) const;

  // --- views: no memory is allocated, nothing is copied

  /// Numba's reshape: a view. Throws Error(usage) if the layout does not allow one. One extent may be -1.
  DeviceNDArray reshape(std::span<const std::int64_t> shape, Order order = Order::c) const;
  using ArrayViews::reshape;
  /// Returns the error if the shape needs a copy.
  Expected<DeviceNDArray> try_reshape(std::span<const std::int64_t> shape, Order order = Order::c) const;
  /// NumPy's ravel: a 1-D view if the layout allows it, otherwise a copy (queued on `stream`).
  DeviceNDArray ravel(Order order = Order::c, std::optional<StreamView> stream = {}) const;
  /// 1-D: consecutive views of `section` elements; the last one may be shorter.
  std::vector<DeviceNDArray> split(std::int64_t section) const;
  /// One field of every record; an array field adds its axes at the end.
  DeviceNDArray field(std::string_view name) const;

  /// The same bytes as elements of another type (Numba's view(dtype)); see NDArray::as_element.
  DeviceNDArray as_element(const ElementType& element) const;

  // --- transfers

  /// A new host array of the same values, in Fortran order if this array is.
  NDArray copy_to_host(std::optional<StreamView> stream = {}) const;
  /// Into `target` (same shape and element type; not C order to Fortran order); returns it.
  NDArray copy_to_host(const NDArray& target, std::optional<StreamView> stream = {}) const;
  /// From a host array or from another device array of the same shape and element type.
  void copy_to_device(const NDArray& source, std::optional<StreamView> stream = {}) const;
  void copy_to_device(const DeviceNDArray& source, std::optional<StreamView> stream = {}) const;
  /// Copies from another library's array, device to device. Waits for its producer's stream: on `stream`,
  /// where the copy is then queued, or on this thread, if none is given. `source` is kept until the copy has
  /// run.
  template <CudaArray A>
    requires(!std::derived_from<A, StridedArray>)
  void copy_to_device(A source, std::optional<StreamView> stream = {}) const {
    auto owner = std::make_shared<A>(std::move(source));
    send(owner->cuda_array_interface(), owner, stream);
  }
  template <CudaArrayPointer P>
  void copy_to_device(P source, std::optional<StreamView> stream = {}) const {
    auto owner = std::make_shared<P>(std::move(source));
    send((*owner)->cuda_array_interface(), owner, stream);
  }
  template <DlpackArray A>
    requires(!CudaArray<A>)
  void copy_to_device(const A& source, std::optional<StreamView> stream = {}) const {
    copy_to_device(source.to_dlpack(stream.value_or(StreamView())), stream);
  }
  /// Copies from a tensor that is ready on `stream` (none: on the default stream), in device or host memory.
  /// quern takes ownership: the tensor's deleter runs when the copy has run, or now if this throws.
  void copy_to_device(dlpack::ManagedTensorVersioned* source, std::optional<StreamView> stream = {}) const;
  void copy_to_device(dlpack::ManagedTensor* source, std::optional<StreamView> stream = {}) const;
  /// A contiguous array of its own memory.
  DeviceNDArray copy(Order order = Order::c, std::optional<StreamView> stream = {}) const;

  /// Sets every element (Numba's `d[...] = values`): from one value, or from a host or device array,
  /// broadcast to this one's shape.
  void assign(const NDArray& values, std::optional<StreamView> stream = {}) const;
  void assign(const DeviceNDArray& values, std::optional<StreamView> stream = {}) const;
  template <class T>
    requires(!std::derived_from<T, StridedArray>)
  void assign(const T& value, std::optional<StreamView> stream = {}) const {
    assign_element(detail::OneElement(element_, value).data(), stream);
  }
  /// The value of an array of one element, read from the device.
  template <class T>
  T item() const {
    detail::require_element(*this, element_type_of<T>(), "read");
    T value;
    read_element(&value);
    return value;
  }

  /// C-contiguous bytes of the whole array, exactly size_bytes() of them.
  void copy_bytes_from_host(std::span<const std::byte> bytes, std::optional<StreamView> stream = {}) const;
  void copy_bytes_to_host(std::span<std::byte> bytes, std::optional<StreamView> stream = {}) const;

 private:
  friend class detail::ArrayViews<DeviceNDArray>;
  DeviceNDArray over(Layout layout, std::int64_t offset_bytes = 0) const;
  NDArray host_view(const void* bytes, std::size_t size, const char* what) const;
  NDArray fetch(const NDArray& target, std::optional<StreamView> stream) const;
  void send(const NDArray& source, std::optional<StreamView> stream) const;
  void send(const DeviceNDArray& source, std::optional<StreamView> stream) const;
  void send(const CudaArrayInterface& source, std::shared_ptr<const void> owner,
            std::optional<StreamView> stream) const;
  void assign_element(const std::byte* element, std::optional<StreamView> stream) const;
  void read_element(void* value) const;

  DeviceBuffer buffer_;
  std::int64_t offset_bytes_ = 0;
  bool read_only_ = false;  ///< by as_read_only(); the memory may be read-only as well
};

inline constexpr std::size_t kAnyRank = static_cast<std::size_t>(-1);

namespace detail {
/// The base of DeviceArray<T>: a DeviceNDArray, for a const T without the functions that write.
template <class T>
class DeviceElements : public DeviceNDArray {
 protected:
  DeviceElements() = default;
  explicit DeviceElements(DeviceNDArray array) : DeviceNDArray(std::move(array)) {}
};
template <class T>
class DeviceElements<const T> : public DeviceNDArray {
 public:
  template <class... Arguments>
  void assign(Arguments&&...) const = delete;
  template <class... Arguments>
  void copy_to_device(Arguments&&...) const = delete;
  template <class... Arguments>
  void copy_bytes_from_host(Arguments&&...) const = delete;

 protected:
  DeviceElements() = default;
  explicit DeviceElements(const DeviceNDArray& array) : DeviceNDArray(array.as_read_only()) {}
};
}  // namespace detail

/// A DeviceNDArray whose element type is known to the compiler, and also its number of dimensions if `Rank`
/// gives it: `DeviceArray<float>`, `DeviceArray<float, 2>`. The elements of a `DeviceArray<const float>`
/// cannot be written through it; a DeviceArray<float> converts to it, and never back.
template <class T, std::size_t Rank = kAnyRank>
class DeviceArray;

template <class T>
class DeviceArray<T, kAnyRank> : public detail::DeviceElements<T> {
 public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;

  DeviceArray() = default;
  DeviceArray(DeviceBuffer memory, Shape extents)
      : detail::DeviceElements<T>(
            DeviceNDArray(std::move(memory), element_type_of<value_type>(), std::move(extents))) {}
  /// Throws Error(usage) if the elements have another type.
  explicit DeviceArray(DeviceNDArray array) : detail::DeviceElements<T>(std::move(array)) {
    detail::require_element(*this, element_type_of<value_type>(), "use");
  }
  template <class U>
    requires(std::same_as<T, const U>)
  DeviceArray(const DeviceArray<U>& array)  // NOLINT(google-explicit-constructor)
      : detail::DeviceElements<T>(array) {}
  template <class U>
    requires(std::same_as<const T, U> && !std::is_const_v<T>)
  DeviceArray(const DeviceArray<U>&) = delete;  // const elements stay const

  T* data() const noexcept { return static_cast<T*>(DeviceNDArray::data()); }

  template <class... I>
    requires(std::convertible_to<I, Index> && ...)
  DeviceArray operator()(I... indices) const {
    return DeviceArray(DeviceNDArray::operator()(indices...));
  }
  DeviceArray operator[](Index index) const { return DeviceArray(DeviceNDArray::operator[](index)); }
  /// The value of an array of one element: `d[3].item()`.
  value_type item() const { return DeviceNDArray::template item<value_type>(); }

  /// All elements in C order; `target` has exactly size() of them.
  void copy_to_host(std::span<value_type> target, std::optional<StreamView> stream = {}) const {
    this->copy_bytes_to_host(std::as_writable_bytes(target), stream);
  }
  NDArray copy_to_host(const NDArray& target, std::optional<StreamView> stream = {}) const {
    return DeviceNDArray::copy_to_host(target, stream);
  }
  /// Queues the copy; the result has memory of its own, which lives until the copy has run.
  NDArray copy_to_host(StreamView stream) const { return DeviceNDArray::copy_to_host(stream); }
  std::vector<value_type> copy_to_host() const {
    std::vector<value_type> target(this->size());
    copy_to_host(std::span<value_type>(target));
    return target;
  }
  /// `source` has exactly size() elements, in C order.
  void copy_from_host(std::span<const value_type> source, std::optional<StreamView> stream = {}) const
    requires(!std::is_const_v<T>)
  {
    this->copy_bytes_from_host(std::as_bytes(source), stream);
  }
};

template <class T, std::size_t Rank>
class DeviceArray : public DeviceArray<T> {
 public:
  using Extents = std::array<std::int64_t, Rank>;

  DeviceArray() = default;
  /// Throws Error(usage) for another element type or number of dimensions.
  explicit DeviceArray(DeviceNDArray array) : DeviceArray<T>(std::move(array)) {
    detail::require_rank(*this, Rank);
  }
  template <class U>
    requires(std::same_as<T, const U>)
  DeviceArray(const DeviceArray<U, Rank>& array)  // NOLINT(google-explicit-constructor)
      : DeviceArray<T>(static_cast<const DeviceArray<U>&>(array)) {}
  template <class U>
    requires(std::same_as<const T, U> && !std::is_const_v<T>)
  explicit DeviceArray(const DeviceArray<U>&) = delete;  // const elements stay const

  static constexpr std::size_t rank() noexcept { return Rank; }
  std::int64_t extent(std::size_t axis) const { return this->shape()[axis]; }
  Extents extents() const {
    Extents extents{};
    std::ranges::copy(this->shape(), extents.begin());
    return extents;
  }

  /// Positions drop their axes: `matrix(i)` is a DeviceArray<T, Rank - 1>. With kEllipsis or kNewAxis the
  /// number of dimensions is known at run time only.
  template <class... I>
    requires(std::convertible_to<I, Index> && ...)
  auto operator()(I... indices) const {
    if constexpr (((std::integral<I> || std::same_as<I, Slice>) && ...)) {
      static_assert(sizeof...(I) <= Rank, "more indices than the array has dimensions");
      constexpr std::size_t kDropped = (std::size_t{0} + ... + std::size_t{std::integral<I> ? 1 : 0});
      return DeviceArray<T, Rank - kDropped>(DeviceNDArray::operator()(indices...));
    } else {
      return DeviceArray<T>::operator()(indices...);
    }
  }
  template <class I>
    requires std::convertible_to<I, Index>
  auto operator[](I index) const {
    return operator()(index);
  }
  DeviceArray transpose() const { return DeviceArray(DeviceNDArray::transpose()); }
};

/// One record in device memory: a 0-d array of a record type (Numba's DeviceRecord).
class QUERN_API DeviceRecord : public DeviceNDArray {
 public:
  explicit DeviceRecord(DeviceNDArray array);

  /// The whole record, as the C++ struct that it is.
  template <class T>
  T get() const {
    return item<T>();
  }
  template <class T>
  void set(const T& value) const {
    assign(value);
  }
};

}  // namespace quern
