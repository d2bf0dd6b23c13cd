// SPDX-License-Identifier: Apache-2.0
// component: session
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "quern/allocator.hpp"
#include "quern/compile_stats.hpp"
#include "quern/cuda_array_interface.hpp"
#include "quern/device.hpp"
#include "quern/device_array.hpp"
#include "quern/expected.hpp"
#include "quern/export.hpp"
#include "quern/host_memory.hpp"
#include "quern/memory_stats.hpp"
#include "quern/module.hpp"
#include "quern/progress.hpp"
#include "quern/smart_array.hpp"
#include "quern/stream.hpp"

namespace quern {

namespace session {
class SessionState;
class DeferState;
struct SessionAccess;
}  // namespace session

/// The context in which a session works: the device's primary one (which the CUDA runtime uses too), or the
/// one that is current on the calling thread.
enum class ContextChoice : std::uint8_t { primary, current };

struct SessionOptions {
  /// "auto" (a GPU if there is one, else the CPU device), "cpu", "cuda", "cuda:1". Empty: QUERN_DEVICE, else
  /// "auto".
  std::string device;
  /// `current` adopts a context that the program made: the program keeps it, and it must outlive the session
  /// and all objects made from it. The device is then the context's, of the driver that `device` names.
  ContextChoice context = ContextChoice::primary;
  /// A context of the session's own, destroyed with the last object made from it: a kernel's fault ends only
  /// this session, and the session has limits of its own. Its kernels cannot take arrays of other sessions
  /// and of other libraries (which work in the primary context); copy those through the host. Not with
  /// `current`.
  bool isolated = false;
  /// The time limit for launches of this session's kernels that have no LaunchConfig::timeout of their own;
  /// 0: the limit of QUERN_CPU_TIMEOUT applies. On a GPU, opening a session with a limit throws
  /// Error(unsupported).
  std::chrono::nanoseconds launch_timeout{0};
  /// If given, set_compile_cache_bytes() for this and all other sessions of the process, which share the
  /// cache.
  std::optional<std::uint64_t> compile_cache_bytes = {};
};

/// Options of Session::to_device(NDArray).
struct ToDevice {
  std::optional<StreamView> stream = {};  ///< the copy is queued there; nothing: it is done on return
  bool copy = true;                       ///< false: only the memory is made
  std::optional<DeviceNDArray> to = {};   ///< the target, of the same shape and element type
};

/// As long as one exists, no resource is released (Session::defer_cleanup()). Nests; move-only.
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

/// A device with its context and the compiler. Copies of the object share them; arrays, streams, modules and
/// kernels keep the parts that they need alive. Functions of a session that was moved from throw
/// Error(usage), except device(). Thread-safe. It has over 40 methods because they are the functions of
/// Numba's module cuda, and docs/memory.md maps each of those to one method; the headings below group them.
class QUERN_API Session {
 public:
  /// Throws Error(not_found) if the device does not exist: the message lists the attempts and gives advice.
  explicit Session(const SessionOptions& options = {});
  explicit Session(std::string_view device) : Session(SessionOptions{std::string(device)}) {}
  static Expected<Session> try_open(const SessionOptions& options = {});

  const Device& device() const noexcept;
  std::size_t free_memory_bytes() const;

  /// CUDA C++ source text. Throws CompileError with the compiler's messages, DriverError.
  Module load_cuda(std::string_view source, const LoadOptions& options = {}) const;
  /// Kernel Python source text. A kernel whose decorator gives no types is compiled at its first launch with
  /// arguments of new types. Throws CompileError.
  Module load_python(std::string_view source, const LoadOptions& options = {}) const;
  /// A file: `.py` is Kernel Python, `.cu` CUDA C++, `.ptx` PTX; `.quern` is a saved module, as load_saved()
  /// loads it, and takes no options for the compiler (Error(usage)). Throws also Error(not_found) if it does
  /// not exist, Error(io) if it cannot be read, Error(unsupported) for other suffixes.
  Module load_file(const std::filesystem::path& path, const LoadOptions& options = {}) const;
  /// PTX text. Compile options do not apply.
  Module load_ptx(std::string_view ptx, const LoadOptions& options = {}) const;
  /// A module that Module::save() wrote, or its bytes, which are read during the call. Neither NVRTC nor the
  /// source is needed: its kernels and bind() reject requests for code that the module does not hold. The
  /// bytes need not be trusted. Throws Error(not_found, io) if the file is missing, cannot be read, or is
  /// damaged, Error(unsupported) if its format is too new or its code is for another device, CompileError if
  /// the driver refuses its PTX.
  Module load_saved(const std::filesystem::path& path) const;
  Module load_saved(std::span<const std::byte> bytes) const;
  Expected<Module> try_load_saved(const std::filesystem::path& path) const;
  Expected<Module> try_load_saved(std::span<const std::byte> bytes) const;
  /// The same for sources that may contain errors: these are returned instead of thrown.
  Expected<Module> try_load_cuda(std::string_view source, const LoadOptions& options = {}) const;
  Expected<Module> try_load_python(std::string_view source, const LoadOptions& options = {}) const;
  Expected<Module> try_load_file(const std::filesystem::path& path, const LoadOptions& options = {}) const;
  Expected<Module> try_load_ptx(std::string_view ptx, const LoadOptions& options = {}) const;

  /// load_cuda(), load_python() or load_ptx() on a thread of quern's: the call returns at once, and the
  /// handle's get() gives the module or throws. The session's handler of progress is told. The session stays
  /// open until the work has ended, also if all its objects are destroyed.
  [[nodiscard]] PendingModule load_async(SourceLanguage language, std::string source,
                                         LoadOptions options = {}) const;
  /// load_file(), which reads the file there.
  [[nodiscard]] PendingModule load_file_async(std::filesystem::path path, LoadOptions options = {}) const;

  /// Several sources as one module: functions and variables that one declares extern (`extern __device__ int
  /// f(int);`) another defines. CUDA C++ is compiled as relocatable device code by itself. Templates are
  /// instantiated by their source's name_expressions only. Throws CompileError also if the sources cannot be
  /// linked: the notes list the names.
  Module link(std::span<const LinkSource> sources) const;
  Module link(std::initializer_list<LinkSource> sources) const {
    return link(std::span(sources.begin(), sources.size()));
  }
  Expected<Module> try_link(std::span<const LinkSource> sources) const;

  /// Counts of this session's compilations. All sessions share one compiler and its cache: compile_cache.hpp
  /// has the counts of the process.
  CompileStats compile_stats() const;

  // --- arrays (numba.cuda's functions of the same names; shapes in elements, strides in bytes)

  /// Uninitialised device memory. Throws OutOfMemory.
  DeviceBuffer allocate(std::size_t bytes, StreamView stream = {}) const;
  /// An uninitialised array. Throws Error(usage) for invalid shapes and strides, OutOfMemory; nothing is
  /// allocated then.
  DeviceNDArray device_array(std::span<const std::int64_t> shape, const ElementType& element = Dtype::float64,
                             const ArrayOptions& options = {}) const;
  DeviceNDArray device_array(std::initializer_list<std::int64_t> shape,
                             const ElementType& element = Dtype::float64,
                             const ArrayOptions& options = {}) const {
    return device_array(std::span(shape.begin(), shape.size()), element, options);
  }
  template <class T>
  DeviceArray<T> device_array(std::size_t count) const {
    return DeviceArray<T>(allocate_elements(count, sizeof(T)), {static_cast<std::int64_t>(count)});
  }
  template <class T>
  DeviceArray<T> device_array(const Shape& shape, const ArrayOptions& options = {}) const {
    return DeviceArray<T>(device_array(std::span(shape), element_type_of<T>(), options));
  }
  /// The number of dimensions in the type: `session.device_array<float, 2>({3, 4})`.
  template <class T, std::size_t Rank>
  DeviceArray<T, Rank> device_array(const std::array<std::int64_t, Rank>& extents,
                                    const ArrayOptions& options = {}) const {
    return DeviceArray<T, Rank>(device_array(std::span(extents), element_type_of<T>(), options));
  }
  /// The same for allocations that may fail: errors are returned instead of thrown, OutOfMemory included.
  Expected<DeviceBuffer> try_allocate(std::size_t bytes, StreamView stream = {}) const;
  Expected<DeviceNDArray> try_device_array(const Shape& shape, const ElementType& element = Dtype::float64,
                                           const ArrayOptions& options = {}) const;
  Expected<DeviceNDArray> try_to_device(const NDArray& array, const ToDevice& options = {}) const;
  Expected<NDArray> try_pinned_array(const Shape& shape, const ElementType& element = Dtype::float64,
                                     const ArrayOptions& options = {}) const;
  Expected<MappedNDArray> try_mapped_array(const Shape& shape, const ElementType& element = Dtype::float64,
                                           const MappedOptions& options = {}) const;
  /// Uninitialised, of the same shape, element type and (if it is C or Fortran) memory order as a host,
  /// device, pinned or mapped array.
  DeviceNDArray device_array_like(const StridedArray& array, StreamView stream = {}) const;

  /// Copies a host array of any layout to new device memory (or to `options.to`), in the same memory order if
  /// it is C or Fortran, otherwise in C order.
  DeviceNDArray to_device(const NDArray& array, const ToDevice& options = {}) const;
  /// Contiguous host data (vector, array, span, C array), 1-D. Without a stream the copy is done on return;
  /// on a stream it is queued, and the source is staged before the call returns.
  template <class Range>
    requires std::ranges::contiguous_range<const Range&>
  auto to_device(const Range& source, std::optional<StreamView> stream = {}) const {
    using T = std::remove_cv_t<std::ranges::range_value_t<const Range&>>;
    const std::span<const T> span(std::ranges::data(source), std::ranges::size(source));
    DeviceArray<T> array(device_array({static_cast<std::int64_t>(span.size())}, element_type_of<T>(),
                                      {.stream = stream.value_or(StreamView())}));
    if (stream)
      array.copy_from_host(span, *stream);
    else
      array.copy_from_host(span);
    return array;
  }
  /// A std::mdspan, an ArrayView or the like: the number of dimensions stays in the type.
  template <MdspanLike M>
    requires(!std::derived_from<M, StridedArray>)
  auto to_device(const M& source, std::optional<StreamView> stream = {}) const {
    using T = std::remove_cv_t<typename M::element_type>;
    return DeviceArray<T, M::rank()>(to_device(NDArray::view(source), {.stream = stream}));
  }
  /// One struct.
  template <class T>
    requires(std::is_class_v<T> && std::is_trivially_copyable_v<T> && !std::ranges::range<T> &&
             !std::derived_from<T, StridedArray> && !MdspanLike<T>)
  DeviceRecord to_device(const T& record, std::optional<StreamView> stream = {}) const {
    return DeviceRecord(to_device(NDArray::view(const_cast<T*>(&record), {}), {.stream = stream}));
  }
  /// Copies C-contiguous host bytes of a type known only at run time.
  DeviceNDArray to_device(std::span<const std::byte> bytes, std::span<const std::int64_t> shape,
                          ElementType element) const;

  /// A host array that the driver locked into memory: queued copies use it directly.
  NDArray pinned_array(const Shape& shape, const ElementType& element = Dtype::float64,
                       const ArrayOptions& options = {}) const;
  NDArray pinned_array_like(const StridedArray& array) const;
  /// An array that host and device see in the same memory.
  MappedNDArray mapped_array(const Shape& shape, const ElementType& element = Dtype::float64,
                             const MappedOptions& options = {}) const;
  /// An array with the other one's shape, element type and order; `options` set the rest.
  MappedNDArray mapped_array_like(const StridedArray& array, MappedOptions options = {}) const;
  /// The same in memory that the driver moves by itself. Without `attach_global`, streams must attach it
  /// first.
  ManagedNDArray managed_array(const Shape& shape, const ElementType& element = Dtype::float64,
                               const ArrayOptions& options = {}, bool attach_global = true) const;
  /// Page-locks existing host arrays for a scope. Throws Error(usage) if they overlap or are locked already;
  /// nothing stays locked then. Pass vectors and spans as NDArray::view(v).
  [[nodiscard]] PinnedScope pinned(std::span<const NDArray> arrays) const;
  [[nodiscard]] PinnedScope pinned(std::initializer_list<NDArray> arrays) const {
    return pinned(std::span(arrays.begin(), arrays.size()));
  }
  /// The same without a scope, until deregister_memory() or the session's end (roc::register_).
  void register_memory(std::span<const NDArray> arrays) const;
  void deregister_memory(std::span<const NDArray> arrays) const;
  /// Lets kernels access existing host arrays for a scope, whose end waits for `stream`. Const data is
  /// read-only for kernels as well.
  [[nodiscard]] MappedScope mapped(std::span<const NDArray> arrays, StreamView stream = {}) const;
  [[nodiscard]] MappedScope mapped(std::initializer_list<NDArray> arrays, StreamView stream = {}) const {
    return mapped(std::span(arrays.begin(), arrays.size()), stream);
  }

  /// An array that is copied between host and device only when needed; see SmartArray. Unless `copy`, the
  /// array itself is one side: then it must not be read-only (Error(usage)).
  SmartArray smart_array(const NDArray& array, bool copy = true, Where where = Where::host) const;
  SmartArray smart_array(const DeviceNDArray& array, bool copy = true, Where where = Where::device) const;
  SmartArray smart_array(const Shape& shape, const ElementType& element = Dtype::float64,
                         Order order = Order::c, Where where = Where::host) const;

  /// A view of another library's device array, without copying; keeps `array` (a copy of it, or the pointer)
  /// alive and waits for its producer's stream, unless `sync` is false. Throws Error(usage) for memory that
  /// belongs to another context and is not shared with all contexts.
  template <CudaArray A>
  DeviceNDArray as_cuda_array(A array, bool sync = true) const {
    auto owner = std::make_shared<A>(std::move(array));
    return adopt(owner->cuda_array_interface(), owner, sync);
  }
  template <CudaArrayPointer P>
  DeviceNDArray as_cuda_array(P array, bool sync = true) const {
    auto owner = std::make_shared<P>(std::move(array));
    return adopt((*owner)->cuda_array_interface(), owner, sync);
  }
  /// The same from the plain description.
  DeviceNDArray adopt(const CudaArrayInterface& array, std::shared_ptr<const void> owner,
                      bool sync = true) const;

  // --- streams and events

  /// A new stream. It is ordered with the legacy default stream, as Numba's streams are, unless it is made
  /// non-blocking.
  Stream stream(const StreamOptions& options = {}) const;
  StreamPriorities stream_priorities() const;
  StreamView default_stream() const noexcept;
  StreamView legacy_default_stream() const noexcept;
  StreamView per_thread_default_stream() const noexcept;
  /// A CUstream of the program's own, which must outlive all use.
  StreamView external_stream(void* stream) const noexcept;
  /// An event without `timing` costs less and cannot measure time.
  Event event(bool timing = true) const;
  /// A CUevent of the program's own, which must outlive the object.
  Event external_event(void* event) const;
  /// Waits for all work of the device's context. Throws DriverError, also for a fault of an earlier kernel;
  /// Error(cancelled) if some of the work was cancelled during the call.
  void synchronize() const;
  /// StreamView::cancel() for every stream of the session's context: an isolated session's own context, or
  /// the one that all other sessions on the device share. Throws Error(unsupported) on a GPU.
  void cancel() const;

  // --- memory management

  /// No resource is released as long as the result exists, also if memory is exhausted. Nests.
  [[nodiscard]] DeferredCleanup defer_cleanup() const;
  /// The number of destroyed objects whose release is still pending.
  std::size_t pending_release_count() const;
  /// Performs pending releases now (Numba: `deallocations.clear()`); does nothing inside defer_cleanup().
  void release_pending() const;
  MemoryStats memory_stats() const;
  /// A table of live resources, with the places where they were made if sites are tracked
  /// (QUERN_TRACK_ALLOCATIONS=1, or a build without optimisation). Empty if nothing is live.
  /// QUERN_LEAK_REPORT=1 prints it at the process's exit.
  std::string leak_report() const;
  /// Sets the allocator of device memory in this device's context from now on; null: the driver's allocator.
  /// Memory allocated before is returned to the allocator that it came from.
  void set_allocator(std::shared_ptr<DeviceAllocator> allocator) const;
  std::shared_ptr<DeviceAllocator> allocator() const;
  /// The driver's stream-ordered pool, keeping up to `keep_bytes` of freed memory. Throws Error(unsupported)
  /// if the device has no such pool.
  std::shared_ptr<DeviceAllocator> stream_ordered_pool(std::size_t keep_bytes = SIZE_MAX) const;
  /// A pool of quern's own, over the driver's allocator or over `upstream`.
  std::shared_ptr<DeviceAllocator> caching_pool(std::shared_ptr<DeviceAllocator> upstream = nullptr,
                                                std::size_t most_cached_bytes = SIZE_MAX) const;

  // --- progress

  /// From now on `handler` receives the progress of compilations, and of copies that are done on return and
  /// have 16 MiB or more, and may cancel them; see ProgressHandler. It belongs to the session's context: an
  /// isolated session's own, or the one that all other sessions on the device share. An empty handler removes
  /// the current one. Returns the former handler when no other thread is inside it any more; the caller must
  /// not hold a lock that it takes.
  ProgressHandler set_progress(ProgressHandler handler) const;

  /// CUcontext, as void*.
  void* native_context() const noexcept;

 private:
  friend struct session::SessionAccess;
  explicit Session(std::shared_ptr<session::SessionState> state) : state_(std::move(state)) {}
  DeviceBuffer allocate_elements(std::size_t count, std::size_t element_bytes) const;
  PendingModule start(std::string attempted, std::function<Expected<Module>(const Session&)> load) const;

  std::shared_ptr<session::SessionState> state_;
};

/// Every device that a session could be opened on, CUDA devices first.
QUERN_API std::vector<Device> devices();

/// quern's own version, "0.1.0".
QUERN_API std::string_view version() noexcept;

}  // namespace quern
