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

/// Bytes of device memory, shared by all copies of this object; the last one schedules the release in the
/// context's queue. Every copy without a stream is done on return; on a stream it is queued: a source span is
/// staged before the call returns, a target span must outlive the synchronisation. Throws DriverError, and
/// Error(usage) for a range outside the buffer and for writing to memory whose producer forbids it.
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
/// Copies without a stream are done on return. With a stream they are queued: arrays that own their memory
/// are kept alive until the copy has run, spans and NDArray::view()s are staged (sources) or must outlive the
/// stream's synchronisation (targets).
class QUERN_API DeviceNDArray : public StridedArray {
 public:
  DeviceNDArray() = default;
  /// C-contiguous; `buffer` holds at least the product of `shape` elements.
  DeviceNDArray(DeviceBuffer buffer, ElementType element, Shape shape);
  /// Element 0 at `offset_bytes`. Throws Error(usage) if elements would lie outside the buffer.
  DeviceNDArray(DeviceBuffer buffer, ElementType element, Layout layout, std::int64_t offset_bytes);

  /// The device address of element 0.
  void* data() const noexcept { return static_cast<std::byte*>(buffer_.data()) + offset_bytes_; }
  /// The memory, of the array that this is a view of.
  const DeviceBuffer& buffer() const noexcept { return buffer_; }
  std::int64_t offset_bytes() const noexcept { return offset_bytes_; }
  /// True if it came from a producer that forbids writing, or is const data that was mapped. Copies to it are
  /// rejected, and so are launches of kernels that could write to it: all except those whose source declares
  /// the parameter const. PTX does not tell; pass the address, data(), to kernels in PTX that only read.
  bool is_read_only() const noexcept;

  /// The array's description for consumers of the CUDA Array Interface. `stream`: they wait for its work
  /// first.
  CudaArrayInterface cuda_array_interface(std::optional<StreamView> stream = {}) const;

  // --- views: no memory is allocated, nothing is copied

  template <class... I>
    requires(std::convertible_to<I, Index> && ...)
  DeviceNDArray operator()(I... indices) const {
    const Index list[] = {Index(indices)..., kEllipsis};
    return indexed(std::span<const Index>(list, sizeof...(I)));
  }
  DeviceNDArray operator[](Index index) const { return indexed({&index, 1}); }
  DeviceNDArray indexed(std::span<const Index> indices) const;
  DeviceNDArray transpose() const { return over(layout_.transposed()); }
  /// Numba's reshape: a view. Throws Error(usage) if the layout does not allow one. One extent may be -1.
  DeviceNDArray reshape(std::span<const std::int64_t> shape, Order order = Order::c) const;
  DeviceNDArray reshape(std::initializer_list<std::int64_t> shape, Order order = Order::c) const {
    return reshape(std::span(shape.begin(), shape.size()), order);
  }
  /// The twin for shapes that may need a copy.
  Expected<DeviceNDArray> try_reshape(std::span<const std::int64_t> shape, Order order = Order::c) const;
  /// NumPy's ravel: a 1-D view if the layout allows it, otherwise a copy (queued on `stream`).
  DeviceNDArray ravel(Order order = Order::c, std::optional<StreamView> stream = {}) const;
  /// 1-D: consecutive views of `section` elements; the last one may be shorter.
  std::vector<DeviceNDArray> split(std::int64_t section) const;
  /// One field of every record; an array field adds its axes at the end.
  DeviceNDArray field(std::string_view name) const;

  /// The same bytes as elements of another type (Numba's view(dtype)); see NDArray::as_element.
  DeviceNDArray as_element(const ElementType& element) const;
  /// Without the axes of extent 1.
  DeviceNDArray squeeze() const { return over(layout_.squeezed()); }

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
};

inline constexpr std::size_t kAnyRank = static_cast<std::size_t>(-1);

/// A DeviceNDArray whose element type is known to the compiler, and also its number of dimensions if `Rank`
/// gives it: `DeviceArray<float>`, `DeviceArray<float, 2>`.
template <class T, std::size_t Rank = kAnyRank>
class DeviceArray;

template <class T>
class DeviceArray<T, kAnyRank> : public DeviceNDArray {
 public:
  using value_type = T;

  DeviceArray() = default;
  DeviceArray(DeviceBuffer memory, Shape extents)
      : DeviceNDArray(std::move(memory), element_type_of<T>(), std::move(extents)) {}
  /// Throws Error(usage) if the elements have another type.
  explicit DeviceArray(DeviceNDArray array) : DeviceNDArray(std::move(array)) {
    detail::require_element(*this, element_type_of<T>(), "use");
  }

  T* data() const noexcept { return static_cast<T*>(DeviceNDArray::data()); }

  template <class... I>
    requires(std::convertible_to<I, Index> && ...)
  DeviceArray operator()(I... indices) const {
    return DeviceArray(DeviceNDArray::operator()(indices...));
  }
  DeviceArray operator[](Index index) const { return DeviceArray(DeviceNDArray::operator[](index)); }
  /// The value of an array of one element: `d[3].item()`.
  T item() const { return DeviceNDArray::item<T>(); }

  using DeviceNDArray::copy_to_device;
  /// All elements in C order; `target` has exactly size() of them.
  void copy_to_host(std::span<T> target, std::optional<StreamView> stream = {}) const {
    copy_bytes_to_host(std::as_writable_bytes(target), stream);
  }
  NDArray copy_to_host(const NDArray& target, std::optional<StreamView> stream = {}) const {
    return DeviceNDArray::copy_to_host(target, stream);
  }
  /// On a stream the values are an array of their own memory, which lives until the copy has run.
  NDArray copy_to_host(StreamView stream) const { return DeviceNDArray::copy_to_host(stream); }
  std::vector<T> copy_to_host() const {
    std::vector<T> target(size());
    copy_to_host(std::span<T>(target));
    return target;
  }
  /// `source` has exactly size() elements, in C order.
  void copy_from_host(std::span<const T> source, std::optional<StreamView> stream = {}) const {
    copy_bytes_from_host(std::as_bytes(source), stream);
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
