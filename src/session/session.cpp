// SPDX-License-Identifier: Apache-2.0
#include "quern/session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/background.hpp"
#include "driver/output.hpp"
#include "quern/attempt.hpp"
#include "quern/error.hpp"
#include "runtime/array/buffer.hpp"
#include "runtime/array/host_memory.hpp"
#include "runtime/array/interop.hpp"
#include "runtime/array/smart_array.hpp"
#include "runtime/context/stream.hpp"
#include "runtime/memory/pools.hpp"
#include "session/backends.hpp"
#include "session/gate.hpp"
#include "session/remote.hpp"
#include "session/state.hpp"

namespace quern {
namespace session {
namespace {

// The PTX that every device gets is the same, so that results on the CPU device and on a GPU can be compared.
constexpr std::uint32_t kVirtualArchitecture = 89;

abi::Target target_of(const Device& device) {
  abi::Target target;
  target.compute = kVirtualArchitecture;
  if (device.kind() == DeviceKind::cpu) return target;
  const auto capability = static_cast<std::uint32_t>(device.compute_capability());
  target.compute = std::min(kVirtualArchitecture, capability);
  target.sm = capability;
  target.driver_version = static_cast<std::uint32_t>(device.driver_version());
  return target;
}

/// Nothing if the device supports the session's time limit.
Diagnostics check_launch_timeout(const SessionOptions& options, const Device& device) {
  if (options.launch_timeout.count() < 0)
    return {make_diagnostic("usage", "cannot open a session with a negative time limit for launches",
                            "0 is no limit")};
  if (options.launch_timeout.count() == 0 || device.kind() == DeviceKind::cpu) return {};
  return {make_diagnostic(
      "unsupported",
      fmt::format("cannot open a session with a time limit for launches: CUDA has none on {}", device.name()),
      "leave SessionOptions::launch_timeout at 0 on a GPU")};
}

Expected<std::shared_ptr<SessionState>> open_session(const SessionOptions& options) {
  Expected<DeviceChoice> choice = read_device_choice(options.device);
  if (!choice) return std::move(choice).errors();
  Expected<Device> device = choose_device(*choice);
  if (!device) return std::move(device).errors();
  if (Diagnostics refused = check_launch_timeout(options, *device); !refused.empty()) return refused;
  if (device->kind() == DeviceKind::cuda) driver::note_own_stdout(device->name());
  std::shared_ptr<runtime::Context> context;
  if (options.isolated && options.context != ContextChoice::primary)
    return make_diagnostic("usage", "cannot open an isolated session in the current context",
                           "leave SessionOptions::context at primary: an isolated session makes its own");
  if (options.isolated) {
    context = runtime::Context::create_isolated(*device);
  } else if (options.context == ContextChoice::primary) {
    context = runtime::Context::create(*device);
  } else {
    context = runtime::adopt_current_context(*device);
    if (context == nullptr)
      return make_diagnostic(
          "usage", "cannot adopt the current context: none is current on this thread",
          "make one current with cuCtxSetCurrent, or leave SessionOptions::context at primary");
    device = Device(context->device_state());
  }
  if (options.compile_cache_bytes) compile::set_shared_cache_bytes(*options.compile_cache_bytes);
  return std::make_shared<SessionState>(*std::move(device), std::move(context), options.launch_timeout);
}

Expected<Module> load(const std::shared_ptr<SessionState>& session, Expected<abi::KernelSource> source,
                      const LoadOptions& options) {
  if (!source) return std::move(source).errors();
  Expected<std::shared_ptr<ModuleState>> module = load_module(
      session, make_request(*std::move(source), options, session->target(), session->context().get()));
  if (!module) return std::move(module).errors();
  return Module(*std::move(module));
}

/// Names of instances are accepted: kernel() finds those that were saved.
Diagnostics check_saved_options(const std::filesystem::path& path, const LoadOptions& options) {
  if (options.defines.empty() && options.include_dirs.empty() && options.options.empty() &&
      !options.fastmath && options.constants.empty() && options.headers.empty())
    return {};
  return {make_diagnostic(
      "usage",
      fmt::format("cannot load {} with options for the compiler: it is compiled already", path.string()),
      "leave them out, or load the source")};
}

}  // namespace

SessionState::SessionState(Device device, std::shared_ptr<runtime::Context> context,
                           std::chrono::nanoseconds launch_timeout)
    : device_(std::move(device)),
      context_(std::move(context)),
      compiler_(value_or_throw(shared_compiler())),
      launch_timeout_(launch_timeout),
      target_(target_of(device_)) {}

void SessionState::register_memory(std::span<const NDArray> arrays) {
  std::vector<std::unique_ptr<runtime::Registration>> made;  // released if a later one fails
  for (const NDArray& array : arrays)
    made.push_back(std::make_unique<runtime::Registration>(context_, array, 0));
  const base::LockGuard lock(mutex_);
  for (std::unique_ptr<runtime::Registration>& registration : made) {
    const std::byte* const begin = registration->begin();
    registered_.insert_or_assign(begin, std::move(registration));
  }
}

void SessionState::deregister_memory(std::span<const NDArray> arrays) {
  std::string unknown;
  for (const NDArray& array : arrays) {
    std::vector<std::unique_ptr<runtime::Registration>> found;
    {
      const base::LockGuard lock(mutex_);
      if (auto node = registered_.extract(array.data() + array.layout().reach().lowest); !node.empty())
        found.push_back(std::move(node.mapped()));
    }
    if (found.empty()) unknown = describe(array);
    const PinnedScope ends(std::move(found));
  }
  if (!unknown.empty())
    throw Error(
        ErrorCode::usage,
        fmt::format("cannot deregister the array of {}: it is not registered; register_ it first", unknown));
}

const std::shared_ptr<SessionState>& live(const std::shared_ptr<SessionState>& state) {
  if (state == nullptr) [[unlikely]]
    throw Error(ErrorCode::usage, "the session was moved from; use the one that it was moved to");
  return state;
}

Session SessionAccess::open(const Device& device) {
  return Session(std::make_shared<SessionState>(device, runtime::Context::create(device)));
}
Session SessionAccess::with_context(const Device& device, std::shared_ptr<runtime::Context> context) {
  return Session(std::make_shared<SessionState>(device, std::move(context)));
}

}  // namespace session

using session::live;
using session::value_or_throw;

Session::Session(const SessionOptions& options) : state_(value_or_throw(session::open_session(options))) {}

Expected<Session> Session::try_open(const SessionOptions& options) {
  Expected<std::shared_ptr<session::SessionState>> state = session::open_session(options);
  if (!state) return std::move(state).errors();
  return Session(*std::move(state));
}

const Device& Session::device() const noexcept { return state_->device(); }
std::size_t Session::free_memory_bytes() const {
  return live(state_)->context()->allocation().free_memory_bytes();
}

Expected<Module> Session::try_load_cuda(std::string_view source, const LoadOptions& options) const {
  return session::load(live(state_), session::text_source(abi::Language::cuda, source), options);
}
Expected<Module> Session::try_load_ptx(std::string_view ptx, const LoadOptions& options) const {
  return session::load(live(state_), session::text_source(abi::Language::ptx, ptx), options);
}
Expected<Module> Session::try_load_python(std::string_view source, const LoadOptions& options) const {
  return session::load(live(state_), session::text_source(abi::Language::python, source), options);
}
Module Session::load_python(std::string_view source, const LoadOptions& options) const {
  return value_or_throw(try_load_python(source, options));
}
Expected<Module> Session::try_load_file(const std::filesystem::path& path, const LoadOptions& options) const {
  if (path.extension() == ".quern") {
    if (Diagnostics wrong = session::check_saved_options(path, options); !wrong.empty()) return wrong;
    return try_load_saved(path);
  }
  return session::load(live(state_), session::read_kernel_file(path), options);
}
Module Session::load_cuda(std::string_view source, const LoadOptions& options) const {
  return value_or_throw(try_load_cuda(source, options));
}
Module Session::load_ptx(std::string_view ptx, const LoadOptions& options) const {
  return value_or_throw(try_load_ptx(ptx, options));
}
Module Session::load_file(const std::filesystem::path& path, const LoadOptions& options) const {
  return value_or_throw(try_load_file(path, options));
}

PendingModule Session::start(std::string attempted,
                             std::function<Expected<Module>(const Session&)> load) const {
  live(state_);
  auto result = std::make_shared<Expected<Module>>(Diagnostics());
  const auto work = [session = *this, result, load = std::move(load)] {
    *result = load(session);
    if (!*result) session::throw_diagnostics(result->errors());
  };
  return {base::run_in_background(std::move(attempted), work), result};
}
PendingModule Session::load_async(SourceLanguage language, std::string source, LoadOptions options) const {
  const abi::Language known = session::language_of(language);
  const std::string name = options.file_name.empty() ? "source text" : options.file_name;
  return start("load " + name,
               [known, source = std::move(source), options = std::move(options)](const Session& session) {
                 return session::load(session.state_, session::text_source(known, source), options);
               });
}
PendingModule Session::load_file_async(std::filesystem::path path, LoadOptions options) const {
  const std::string attempted = "load " + path.string();
  return start(attempted, [path = std::move(path), options = std::move(options)](const Session& session) {
    return session.try_load_file(path, options);
  });
}
Module PendingModule::get() const {
  rethrow();
  return result_->value();
}
Expected<Module> PendingModule::try_get() const {
  return attempt([&] { return get(); });
}

CompileStats Session::compile_stats() const { return live(state_)->compile_stats(); }

DeviceBuffer Session::allocate(std::size_t bytes, StreamView stream) const {
  return runtime::make_buffer(live(state_)->context(), bytes, stream);
}

DeviceNDArray Session::device_array(std::span<const std::int64_t> shape, const ElementType& element,
                                    const ArrayOptions& options) const {
  return runtime::make_device_array(live(state_)->context(), Shape(shape.begin(), shape.end()), element,
                                    options);
}

Expected<DeviceBuffer> Session::try_allocate(std::size_t bytes, StreamView stream) const {
  return attempt([&] { return allocate(bytes, stream); });
}
Expected<DeviceNDArray> Session::try_device_array(const Shape& shape, const ElementType& element,
                                                  const ArrayOptions& options) const {
  return attempt([&] { return device_array(std::span(shape), element, options); });
}
Expected<DeviceNDArray> Session::try_to_device(const NDArray& array, const ToDevice& options) const {
  return attempt([&] { return to_device(array, options); });
}
Expected<NDArray> Session::try_pinned_array(const Shape& shape, const ElementType& element,
                                            const ArrayOptions& options) const {
  return attempt([&] { return pinned_array(shape, element, options); });
}
Expected<MappedNDArray> Session::try_mapped_array(const Shape& shape, const ElementType& element,
                                                  const MappedOptions& options) const {
  return attempt([&] { return mapped_array(shape, element, options); });
}

DeviceBuffer Session::allocate_elements(std::size_t count, std::size_t element_bytes) const {
  if (count > static_cast<std::size_t>(INT64_MAX))
    throw Error(
        ErrorCode::usage,
        fmt::format("an array of {} elements is larger than an address space; use a smaller one", count));
  return allocate(Layout({static_cast<std::int64_t>(count)}, element_bytes).size_bytes());
}

DeviceNDArray Session::device_array_like(const StridedArray& array, StreamView stream) const {
  return device_array(array.shape(), array.element(), {.order = array.layout().order(), .stream = stream});
}

DeviceNDArray Session::to_device(const NDArray& array, const ToDevice& options) const {
  const DeviceNDArray target =
      options.to ? *options.to : device_array_like(array, options.stream.value_or(StreamView()));
  if (options.to) detail::require_alike(array, "the host array", target, "the device array");
  if (!options.copy) return target;
  if (options.stream)
    target.copy_to_device(array, *options.stream);
  else
    target.copy_to_device(array);
  return target;
}

DeviceNDArray Session::to_device(std::span<const std::byte> bytes, std::span<const std::int64_t> shape,
                                 ElementType element) const {
  const DeviceNDArray array = device_array(shape, element);
  array.copy_bytes_from_host(bytes);
  return array;
}

NDArray Session::pinned_array(const Shape& shape, const ElementType& element,
                              const ArrayOptions& options) const {
  return runtime::make_pinned_array(live(state_)->context(), shape, element, options);
}
MappedNDArray Session::mapped_array(const Shape& shape, const ElementType& element,
                                    const MappedOptions& options) const {
  return runtime::make_mapped_array(live(state_)->context(), shape, element, options);
}
NDArray Session::pinned_array_like(const StridedArray& array) const {
  return pinned_array(Shape(array.shape().begin(), array.shape().end()), array.element(),
                      {.order = array.layout().order()});
}
MappedNDArray Session::mapped_array_like(const StridedArray& array, MappedOptions options) const {
  options.order = array.layout().order();
  return mapped_array(Shape(array.shape().begin(), array.shape().end()), array.element(), options);
}
ManagedNDArray Session::managed_array(const Shape& shape, const ElementType& element,
                                      const ArrayOptions& options, bool attach_global) const {
  return runtime::make_managed_array(live(state_)->context(), shape, element, options, attach_global);
}
PinnedScope Session::pinned(std::span<const NDArray> arrays) const {
  return runtime::pin(live(state_)->context(), arrays);
}
void Session::register_memory(std::span<const NDArray> arrays) const {
  live(state_)->register_memory(arrays);
}
void Session::deregister_memory(std::span<const NDArray> arrays) const {
  live(state_)->deregister_memory(arrays);
}
MappedScope Session::mapped(std::span<const NDArray> arrays, StreamView stream) const {
  return runtime::map(live(state_)->context(), arrays, stream);
}

SmartArray Session::smart_array(const NDArray& array, bool copy, Where where) const {
  return runtime::make_smart(live(state_)->context(), array, copy, where);
}
SmartArray Session::smart_array(const DeviceNDArray& array, bool copy, Where where) const {
  return runtime::make_smart(live(state_)->context(), array, copy, where);
}
SmartArray Session::smart_array(const Shape& shape, const ElementType& element, Order order,
                                Where where) const {
  return runtime::make_smart(live(state_)->context(), shape, element, order, where);
}

DeviceNDArray Session::adopt(const CudaArrayInterface& array, std::shared_ptr<const void> owner,
                             bool sync) const {
  return runtime::adopt_cuda_array(live(state_)->context(), array, std::move(owner), sync);
}

Stream Session::stream(const StreamOptions& options) const {
  return runtime::make_stream(live(state_)->context(), options);
}
StreamPriorities Session::stream_priorities() const {
  return runtime::stream_priorities(*live(state_)->context());
}
StreamView Session::default_stream() const noexcept { return external_stream(nullptr); }
StreamView Session::legacy_default_stream() const noexcept { return external_stream(CU_STREAM_LEGACY); }
StreamView Session::per_thread_default_stream() const noexcept {
  return external_stream(CU_STREAM_PER_THREAD);
}
StreamView Session::external_stream(void* stream) const noexcept {
  return state_ == nullptr ? runtime::no_stream() : StreamView(state_->context().get(), stream);
}
Event Session::event(bool timing) const { return runtime::make_event(live(state_)->context(), timing); }
Event Session::external_event(void* event) const {
  return runtime::adopt_event(live(state_)->context(), event);
}
void Session::synchronize() const { live(state_)->context()->waiting().synchronize(); }
void Session::cancel() const { live(state_)->context()->waiting().cancel(); }

DeferredCleanup Session::defer_cleanup() const {
  return DeferredCleanup(std::make_shared<session::DeferState>(live(state_)->context()));
}
std::size_t Session::pending_release_count() const {
  return live(state_)->context()->resources().queue().pending_count();
}
void Session::release_pending() const {
  live(state_)->context()->work().reap();
  live(state_)->context()->resources().queue().flush();
}
MemoryStats Session::memory_stats() const { return live(state_)->context()->resources().counters().stats(); }
std::string Session::leak_report() const {
  return live(state_)->context()->resources().counters().leak_report();
}
void Session::set_allocator(std::shared_ptr<DeviceAllocator> allocator) const {
  live(state_)->context()->allocation().set_allocator(std::move(allocator));
}
std::shared_ptr<DeviceAllocator> Session::allocator() const {
  return live(state_)->context()->allocation().allocator();
}
std::shared_ptr<DeviceAllocator> Session::stream_ordered_pool(std::size_t keep_bytes) const {
  return runtime::make_stream_ordered_pool(*live(state_)->context(), keep_bytes);
}
std::shared_ptr<DeviceAllocator> Session::caching_pool(std::shared_ptr<DeviceAllocator> upstream,
                                                       std::size_t most_cached_bytes) const {
  runtime::Context& context = *live(state_)->context();
  return context.allocation().note_pool(
      runtime::make_caching_pool(context, std::move(upstream), most_cached_bytes));
}
ProgressHandler Session::set_progress(ProgressHandler handler) const {
  return live(state_)->progress()->exchange(std::move(handler));
}
void* Session::native_context() const noexcept {
  return state_ == nullptr ? nullptr : state_->context()->handle();
}

std::vector<Device> devices() {
  std::vector<Device> found;
  for (auto open : {&session::open_cuda_driver, &session::open_cpu_driver}) {
    const Expected<std::shared_ptr<const runtime::Driver>> driver = open();
    if (!driver) continue;
    for (int ordinal = 0; ordinal < runtime::device_count(**driver); ++ordinal)
      found.push_back(runtime::open_device(*driver, ordinal));
  }
  return found;
}

std::string_view version() noexcept { return QUERN_VERSION; }

}  // namespace quern
