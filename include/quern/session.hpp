// SPDX-License-Identifier: Apache-2.0
// room: session
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "quern/device.hpp"
#include "quern/device_array.hpp"
#include "quern/expected.hpp"
#include "quern/export.hpp"
#include "quern/module.hpp"
#include "quern/stream.hpp"

namespace quern {

namespace session {
class SessionState;
class DeferState;
}  // namespace session

struct SessionOptions {
  /// "auto" (a GPU if there is one, else the CPU device), "cpu", "cuda", "cuda:1". Empty: QUERN_DEVICE, else
  /// "auto".
  std::string device;
};

/// While one lives, nothing that was dropped is released (Session::defer_cleanup()). Nests; move-only.
class QUERN_API DeferredCleanup {
 public:
  explicit DeferredCleanup(std::shared_ptr<session::DeferState> state) : state_(std::move(state)) {}
  DeferredCleanup(DeferredCleanup&&) noexcept = default;
  DeferredCleanup& operator=(DeferredCleanup&&) noexcept = default;
  DeferredCleanup(const DeferredCleanup&) = delete;
  DeferredCleanup& operator=(const DeferredCleanup&) = delete;

 private:
  std::shared_ptr<session::DeferState> state_;
};

/// Everything that is needed to compile and run kernels on one device. Copies share it; arrays, streams,
/// modules and kernels keep alive what they need of it. Thread-safe.
class QUERN_API Session {
 public:
  /// Throws Error(not_found) where the device is not there: the message says what was tried and what to do.
  explicit Session(const SessionOptions& options = {});
  explicit Session(std::string_view device) : Session(SessionOptions{std::string(device)}) {}
  static Expected<Session> try_open(const SessionOptions& options = {});

  const Device& device() const noexcept;
  std::size_t free_memory_bytes() const;

  /// CUDA C++ source text. Throws CompileError with the compiler's messages, DriverError.
  Module load_cuda(std::string_view source, const LoadOptions& options = {}) const;
  /// Kernel Python source text. A kernel whose decorator gives no types is compiled at its first launch with
  /// arguments of theirs. Throws CompileError.
  Module load_python(std::string_view source, const LoadOptions& options = {}) const;
  /// A file: `.py` is Kernel Python, `.cu` CUDA C++, `.ptx` PTX. Throws also Error(io), Error(unsupported)
  /// for other suffixes.
  Module load_file(const std::filesystem::path& path, const LoadOptions& options = {}) const;
  /// PTX text. Compile options do not apply.
  Module load_ptx(std::string_view ptx, const LoadOptions& options = {}) const;
  /// The twins for sources that may well be wrong: refusals come back, not thrown.
  Expected<Module> try_load_cuda(std::string_view source, const LoadOptions& options = {}) const;
  Expected<Module> try_load_python(std::string_view source, const LoadOptions& options = {}) const;
  Expected<Module> try_load_file(const std::filesystem::path& path, const LoadOptions& options = {}) const;
  Expected<Module> try_load_ptx(std::string_view ptx, const LoadOptions& options = {}) const;

  /// Uninitialised device memory. Throws OutOfMemory.
  DeviceBuffer allocate(std::size_t bytes) const;
  /// An uninitialised array of `shape` elements. Throws Error(usage) for negative or overflowing extents,
  /// OutOfMemory.
  DeviceNDArray device_array(std::span<const std::int64_t> shape, ElementType element) const;
  template <class T>
  DeviceArray<T> device_array(std::size_t count) const {
    return DeviceArray<T>(allocate_elements(count, sizeof(T)), {static_cast<std::int64_t>(count)});
  }
  template <class T>
  DeviceArray<T> device_array(const std::vector<std::int64_t>& shape) const {
    const DeviceNDArray array = device_array(shape, element_type_of<T>());
    return DeviceArray<T>(array.buffer(), shape);
  }

  /// Copies contiguous host data (vector, array, span, C array) into new device memory, 1-D. Synchronous; on
  /// a stream it is queued there, the source staged before the call returns.
  template <class Range>
    requires std::ranges::contiguous_range<const Range&>
  auto to_device(const Range& source) const {
    using T = std::remove_cv_t<std::ranges::range_value_t<const Range&>>;
    const std::span<const T> span(std::ranges::data(source), std::ranges::size(source));
    DeviceArray<T> array = device_array<T>(span.size());
    array.copy_from_host(span);
    return array;
  }
  template <class Range>
    requires std::ranges::contiguous_range<const Range&>
  auto to_device(const Range& source, StreamView stream) const {
    using T = std::remove_cv_t<std::ranges::range_value_t<const Range&>>;
    const std::span<const T> span(std::ranges::data(source), std::ranges::size(source));
    DeviceArray<T> array = device_array<T>(span.size());
    array.copy_from_host(span, stream);
    return array;
  }
  /// C-contiguous host bytes of a type known only at run time.
  DeviceNDArray to_device(std::span<const std::byte> bytes, std::span<const std::int64_t> shape,
                          ElementType element) const;

  Stream stream() const;
  StreamView default_stream() const noexcept;
  Event event() const;
  /// Waits for all work of the device's context. Throws DriverError, also for a fault of an earlier kernel.
  void synchronize() const;

  [[nodiscard]] DeferredCleanup defer_cleanup() const;
  /// Objects that were dropped and whose release is still pending.
  std::size_t pending_release_count() const;

 private:
  explicit Session(std::shared_ptr<session::SessionState> state) : state_(std::move(state)) {}
  DeviceBuffer allocate_elements(std::size_t count, std::size_t element_bytes) const;

  std::shared_ptr<session::SessionState> state_;
};

/// Every device that a session could be opened on, CUDA devices first.
QUERN_API std::vector<Device> devices();

/// quern's own version, "0.1.0".
QUERN_API std::string_view version() noexcept;

}  // namespace quern
