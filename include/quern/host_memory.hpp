// SPDX-License-Identifier: Apache-2.0
// component: runtime
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "quern/device_array.hpp"
#include "quern/export.hpp"
#include "quern/ndarray.hpp"
#include "quern/where.hpp"

namespace quern {

namespace runtime {
class Registration;
}

/// The layout of a new array in memory. Explicit strides win over the order.
struct ArrayOptions {
  Order order = Order::c;
  std::optional<std::vector<std::int64_t>> strides_bytes = {};
  StreamView stream = {};  ///< of the allocation, for pooled memory
};

/// The same for memory that host and device share.
struct MappedOptions {
  Order order = Order::c;
  std::optional<std::vector<std::int64_t>> strides_bytes = {};
  bool portable = false;  ///< kernels of every session on this driver's devices may use it
  bool write_combined =
      false;  ///< faster to write for the host and to read for the device, slow to read for the host
};

/// An array that host and device see in the same memory: kernels take it as a device array, host() is the
/// host's side. The host sees a kernel's writes after synchronisation.
class QUERN_API MappedNDArray : public DeviceNDArray {
 public:
  MappedNDArray() = default;
  /// Throws Error(usage) for memory that the host does not see.
  explicit MappedNDArray(DeviceNDArray array);

  /// The same elements for the host; keeps the memory alive.
  NDArray host() const;
  template <class... I>
    requires(std::convertible_to<I, Index> && ...)
  MappedNDArray operator()(I... indices) const {
    return MappedNDArray(DeviceNDArray::operator()(indices...));
  }
  MappedNDArray operator[](Index index) const { return MappedNDArray(DeviceNDArray::operator[](index)); }
  MappedNDArray indexed(std::span<const Index> indices) const {
    return MappedNDArray(DeviceNDArray::indexed(indices));
  }
  MappedNDArray transpose() const { return MappedNDArray(DeviceNDArray::transpose()); }
  MappedNDArray reshape(std::span<const std::int64_t> shape, Order order = Order::c) const {
    return MappedNDArray(DeviceNDArray::reshape(shape, order));
  }
  MappedNDArray reshape(std::initializer_list<std::int64_t> shape, Order order = Order::c) const {
    return MappedNDArray(DeviceNDArray::reshape(shape, order));
  }
  MappedNDArray squeeze() const { return MappedNDArray(DeviceNDArray::squeeze()); }
  MappedNDArray as_element(const ElementType& element) const {
    return MappedNDArray(DeviceNDArray::as_element(element));
  }
  MappedNDArray field(std::string_view name) const { return MappedNDArray(DeviceNDArray::field(name)); }
  MappedNDArray as_read_only() const { return MappedNDArray(DeviceNDArray::as_read_only()); }
  std::vector<MappedNDArray> split(std::int64_t section) const;
};

/// Advice to the driver about the use of managed memory (cuMemAdvise).
enum class MemoryAdvice : std::uint8_t {
  read_mostly,         ///< each reader gets a copy; writes become slow
  unset_read_mostly,   ///< the default again
  preferred_location,  ///< the device that should hold it
  unset_preferred_location,
  accessed_by,  ///< mapped there, so that it need not move
  unset_accessed_by,
};

/// Memory that the driver moves between host and device by itself (Numba's managed_array). Attached globally
/// it is portable.
class QUERN_API ManagedNDArray : public MappedNDArray {
 public:
  ManagedNDArray() = default;
  /// Throws Error(usage) for memory that the host does not see.
  explicit ManagedNDArray(DeviceNDArray array) : MappedNDArray(std::move(array)) {}

  /// Queues moving the array's memory to that side, ahead of its use. Values do not change. Throws
  /// DriverError if the device's driver does not move memory by itself. On the CPU device no memory has to
  /// move.
  void prefetch(Where where = Where::device, StreamView stream = {}) const;
  /// Advice on the memory that the array covers; `where` is the host or the session's device, and is ignored
  /// for read_mostly, unset_read_mostly and unset_preferred_location. Throws DriverError.
  void advise(MemoryAdvice advice, Where where = Where::device) const;
};

/// Host arrays that are page-locked while this lives (Numba's pinned()): queued copies of arrays that own
/// their memory then run without the host. Their memory must outlive this. Move-only.
class QUERN_API PinnedScope {
 public:
  explicit PinnedScope(std::vector<std::unique_ptr<runtime::Registration>> registrations);
  PinnedScope(PinnedScope&&) noexcept;
  PinnedScope& operator=(PinnedScope&&) noexcept;
  ~PinnedScope();

 private:
  std::vector<std::unique_ptr<runtime::Registration>> registrations_;
};

/// Host arrays that kernels see while this lives (Numba's mapped()). Its destructor waits for the stream and
/// ends the kernels' access: the views must not be used any more. Move-only.
class QUERN_API MappedScope {
 public:
  MappedScope(PinnedScope registrations, std::vector<MappedNDArray> views, StreamView stream)
      : views_(std::move(views)), stream_(stream), registrations_(std::move(registrations)) {}
  MappedScope(MappedScope&&) noexcept = default;
  MappedScope& operator=(MappedScope&&) = delete;
  ~MappedScope();

  /// The views that kernels take, in the order in which the arrays were given.
  const std::vector<MappedNDArray>& views() const noexcept { return views_; }
  const MappedNDArray& operator[](std::size_t index) const { return views_.at(index); }

 private:
  std::vector<MappedNDArray> views_;
  StreamView stream_;
  PinnedScope registrations_;
};

}  // namespace quern
