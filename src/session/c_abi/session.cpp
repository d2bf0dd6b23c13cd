// SPDX-License-Identifier: Apache-2.0
// The C ABI: handles, errors, devices, sessions and their objects.
#include <algorithm>
#include <cstring>

#include "quern/native.hpp"
#include "session/c_abi/handles.hpp"
#include "session/state.hpp"

namespace quern::session::c_abi {

Table& table() {
  static auto* const instance = new Table;
  return *instance;
}

LastError& last_error() {
  thread_local LastError error;
  return error;
}

void give_text(std::string_view text, char* buffer, std::size_t bytes, std::size_t* needed) {
  if (needed != nullptr) *needed = text.size() + 1;
  if (buffer == nullptr || bytes == 0) return;
  const std::size_t kept = std::min(text.size(), bytes - 1);
  std::memcpy(buffer, text.data(), kept);
  buffer[kept] = '\0';
}

}  // namespace quern::session::c_abi

namespace {

using namespace quern;
using namespace quern::session::c_abi;

QuernStatus open(const char* device, SessionOptions options, QuernSession* session) {
  return guarded([&] {
    require(session != nullptr, "opening a session needs a pointer for it");
    options.device = device != nullptr ? device : "";
    session->id = insert(Session(options));
  });
}

QuernDeviceInfo info_of(const Device& device) {
  QuernDeviceInfo info{};
  info.kind = device.kind() == DeviceKind::cpu ? QUERN_DEVICE_CPU : QUERN_DEVICE_CUDA;
  info.ordinal = device.ordinal();
  info.compute_capability = device.compute_capability();
  info.driver_version = device.driver_version();
  info.multiprocessor_count = device.multiprocessor_count();
  info.warp_size = device.warp_size();
  info.cooperative_launch = device.cooperative_launch() ? 1 : 0;
  info.max_threads_per_block = device.max_threads_per_block();
  std::ranges::copy(device.max_block(), info.max_block);
  std::ranges::copy(device.max_grid(), info.max_grid);
  info.total_memory_bytes = device.total_memory_bytes();
  info.shared_bytes_per_block = device.shared_bytes_per_block();
  info.max_shared_bytes_per_block = device.max_shared_bytes_per_block();
  give_text(device.label(), info.label, sizeof info.label, nullptr);
  give_text(device.name(), info.name, sizeof info.name, nullptr);
  return info;
}

static_assert(static_cast<int>(MemoryAccess::atomic) == QUERN_ACCESS_ATOMIC);
QuernFault fault_struct(const DeviceFault& fault) {
  QuernFault made{};
  const auto give = [&](const DeviceFault::Index& from, uint32_t(&to)[3], uint32_t known) {
    std::ranges::copy(from, to);
    made.known |= known;
  };
  std::ranges::copy(fault.grid, made.grid);
  std::ranges::copy(fault.block_dim, made.block_dim);
  if (fault.block) give(*fault.block, made.block, QUERN_FAULT_BLOCK);
  if (fault.thread) made.known |= QUERN_FAULT_THREAD;
  if (fault.threads) {
    give(fault.threads->first, made.first_thread, QUERN_FAULT_THREADS);
    give(fault.threads->second, made.last_thread, QUERN_FAULT_THREADS);
  }
  if (fault.address) made.known |= QUERN_FAULT_ADDRESS;
  made.address = fault.address.value_or(0);
  made.line = fault.line;
  made.access = static_cast<QuernAccess>(fault.access);
  made.access_bytes = fault.access_bytes;
  made.kernel = fault.kernel.c_str();
  made.file = fault.file.c_str();
  made.space = fault.space.c_str();
  return made;
}

MemoryStats::Kind stats_of(const MemoryStats& stats, QuernMemoryKind kind) {
  if (kind == QUERN_MEMORY_ALL) return stats.total();
  require(kind >= 0 && kind < static_cast<int>(kResourceKindCount),
          "the kind is not a value of QuernMemoryKind");
  return stats[static_cast<ResourceKind>(kind)];
}
static_assert(static_cast<int>(ResourceKind::device) == QUERN_MEMORY_DEVICE &&
              static_cast<int>(ResourceKind::registered) == QUERN_MEMORY_REGISTERED &&
              static_cast<int>(ResourceKind::module) == QUERN_MEMORY_MODULE);

/// A program's own allocator, given as C functions.
class CAllocator final : public DeviceAllocator {
 public:
  explicit CAllocator(const QuernAllocator& functions) : functions_(functions) {}
  ~CAllocator() override {
    if (functions_.release != nullptr) functions_.release(functions_.user);
  }
  CAllocator(const CAllocator&) = delete;
  CAllocator& operator=(const CAllocator&) = delete;

  /// Null means out of memory: the context flushes its queue, calls again, then throws.
  void* allocate(std::size_t bytes, std::size_t alignment, StreamView stream) override {
    void* const memory = functions_.allocate(functions_.user, bytes, alignment, stream.handle());
    if (memory != nullptr) return memory;
    throw OutOfMemory(2, "CUDA_ERROR_OUT_OF_MEMORY", "allocate",
                      "cannot allocate " + std::to_string(bytes) +
                          " bytes of device memory: the session's allocator gave none; free arrays or give "
                          "the allocator more",
                      bytes);
  }
  void deallocate(void* address, std::size_t bytes, std::size_t alignment, StreamView stream) override {
    functions_.deallocate(functions_.user, address, bytes, alignment, stream.handle());
  }
  void trim() override {
    if (functions_.trim != nullptr) functions_.trim(functions_.user);
  }
  std::optional<MemoryInfo> memory_info() override {
    MemoryInfo info;
    if (functions_.memory_info == nullptr ||
        functions_.memory_info(functions_.user, &info.free_bytes, &info.total_bytes) == 0)
      return std::nullopt;
    return info;
  }
  bool is_stream_ordered() const noexcept override { return functions_.deallocate_waits == 0; }

 private:
  const QuernAllocator functions_;
};

}  // namespace

std::uint64_t quern::session::c_handle(Session session) { return insert(std::move(session)); }

uint32_t quern_abi_version(void) { return QUERN_ABI_VERSION; }
const char* quern_version(void) { return version().data(); }

size_t quern_last_error(char* buffer, size_t bytes) {
  size_t needed = 0;
  give_text(last_error().view(), buffer, bytes, &needed);
  return needed;
}
int32_t quern_last_driver_result(void) { return last_error().driver_result; }

QuernStatus quern_last_fault(QuernFault* fault) {
  // This thread's latest error remains, unless the arguments are invalid.
  const std::shared_ptr<const DeviceFault> known = last_error().fault;
  const QuernStatus status = guarded([&] {
    check_target(fault, sizeof(QuernFault), "QuernFault");
    if (known != nullptr) write_struct(fault, fault_struct(*known));
  });
  if (status != QUERN_OK) return status;
  return known != nullptr ? QUERN_OK : QUERN_NOT_FOUND;
}

QuernStatus quern_release(uint64_t id) {
  return guarded([&] {
    std::optional<Object> object;  // released outside the lock: the release may call the driver
    {
      Table& all = table();
      const base::LockGuard lock(all.mutex);
      object = all.slots.remove(id);
    }
    if (!object) throw BadHandle{kBadHandle<void>};
  });
}

QuernStatus quern_device_count(size_t* count) {
  return guarded([&] {
    require(count != nullptr, "quern_device_count needs a pointer for the count");
    *count = devices().size();
  });
}
QuernStatus quern_device_info(size_t index, QuernDeviceInfo* info) {
  return guarded([&] {
    const std::vector<Device> all = devices();
    if (index >= all.size())
      throw Error(ErrorCode::not_found, "there is no device " + std::to_string(index) + "; there are " +
                                            std::to_string(all.size()));
    write_struct(info, info_of(all[index]));
  });
}

QuernStatus quern_session_open(const char* device, QuernSession* session) {
  return open(device, {}, session);
}
QuernStatus quern_session_adopt(const char* device, QuernSession* session) {
  return open(device, {.context = ContextChoice::current}, session);
}
QuernStatus quern_session_open_isolated(const char* device, QuernSession* session) {
  return open(device, {.isolated = true}, session);
}
QuernStatus quern_session_open_with(const char* device, const QuernSessionOptions* options,
                                    QuernSession* session) {
  SessionOptions wanted;
  const QuernStatus status = guarded([&] {
    require(options != nullptr, "quern_session_open_with needs a QuernSessionOptions");
    const QuernSessionOptions given = read_struct(options);
    wanted.isolated = given.isolated != 0;
    wanted.launch_timeout = nanoseconds_of(given.launch_timeout_ns);
    require(given.reserved == 0, "the reserved fields of a QuernSessionOptions must be 0");
    if (given.bounds_compile_cache != 0) wanted.compile_cache_bytes = given.compile_cache_bytes;
  });
  return status != QUERN_OK ? status : open(device, wanted, session);
}
QuernStatus quern_session_cancel(QuernSession session) {
  return guarded([&] { session_of(session).cancel(); });
}
QuernStatus quern_session_synchronize(QuernSession session) {
  return guarded([&] { session_of(session).synchronize(); });
}
QuernStatus quern_session_device(QuernSession session, QuernDeviceInfo* info) {
  return guarded([&] { write_struct(info, info_of(session_of(session).device())); });
}
QuernStatus quern_session_device_name(QuernSession session, char* buffer, size_t bytes, size_t* needed) {
  return guarded([&] { give_text(session_of(session).device().name(), buffer, bytes, needed); });
}

QuernStatus quern_session_memory(QuernSession session, size_t* free_bytes, size_t* total_bytes) {
  return guarded([&] {
    const Session in = session_of(session);
    const std::size_t free_now = in.free_memory_bytes();
    if (free_bytes != nullptr) *free_bytes = free_now;
    if (total_bytes != nullptr) *total_bytes = in.device().total_memory_bytes();
  });
}
QuernStatus quern_session_memory_stats(QuernSession session, QuernMemoryKind kind, QuernMemoryStats* stats) {
  return guarded([&] {
    const MemoryStats::Kind known = stats_of(session_of(session).memory_stats(), kind);
    write_struct(stats, QuernMemoryStats{0, 0, known.live_count, known.live_bytes, known.pending_count,
                                         known.pending_bytes, known.peak_bytes, known.made_count});
  });
}
QuernStatus quern_session_leak_report(QuernSession session, char* buffer, size_t bytes, size_t* needed) {
  return guarded([&] { give_text(session_of(session).leak_report(), buffer, bytes, needed); });
}

QuernStatus quern_session_set_allocator(QuernSession session, const QuernAllocator* allocator) {
  return guarded([&] {
    const Session in = session_of(session);
    if (allocator == nullptr) return in.set_allocator(nullptr);
    const QuernAllocator given = read_struct(allocator);
    require(given.allocate != nullptr && given.deallocate != nullptr,
            "quern_session_set_allocator needs a QuernAllocator with both functions");
    in.set_allocator(std::make_shared<CAllocator>(given));
  });
}
QuernStatus quern_session_use_stream_ordered_pool(QuernSession session, uint64_t keep_bytes) {
  return guarded([&] {
    const Session in = session_of(session);
    in.set_allocator(in.stream_ordered_pool(keep_bytes));
  });
}
QuernStatus quern_session_use_caching_pool(QuernSession session, uint64_t most_cached_bytes) {
  return guarded([&] {
    const Session in = session_of(session);
    in.set_allocator(in.caching_pool(nullptr, most_cached_bytes));
  });
}

QuernStatus quern_defer_begin(QuernSession session, QuernDeferral* deferral) {
  return guarded([&] {
    require(deferral != nullptr, "quern_defer_begin needs a pointer for the deferral");
    deferral->id = insert(Deferral{std::make_shared<DeferredCleanup>(session_of(session).defer_cleanup())});
  });
}
QuernStatus quern_defer_end(QuernDeferral deferral) {
  const QuernStatus known = guarded([&] { static_cast<void>(find<Deferral>(deferral.id)); });
  return known != QUERN_OK ? known : quern_release(deferral.id);
}
QuernStatus quern_session_release_pending(QuernSession session) {
  return guarded([&] { session_of(session).release_pending(); });
}

QuernStatus quern_session_context(QuernSession session, void** context) {
  return guarded([&] {
    require(context != nullptr, "quern_session_context needs a pointer for the context");
    *context = session_of(session).native_context();
  });
}
QuernStatus quern_session_memory_pool(QuernSession session, void** pool) {
  return guarded([&] {
    require(pool != nullptr, "quern_session_memory_pool needs a pointer for the pool");
    const std::shared_ptr<DeviceAllocator> allocator = session_of(session).allocator();
    void* const handle = allocator != nullptr ? allocator->native_pool() : nullptr;
    if (handle == nullptr)
      throw Error(ErrorCode::unsupported,
                  "the session's memory comes from no pool of the driver's; call "
                  "quern_session_use_stream_ordered_pool() first");
    *pool = handle;
  });
}
QuernStatus quern_session_driver_function(QuernSession session, const char* name, void** function) {
  return guarded([&] {
    require(name != nullptr && function != nullptr,
            "quern_session_driver_function needs a name and a pointer for the address");
    void* const found = driver_function(session_of(session).device(), name);
    if (found == nullptr)
      throw Error(ErrorCode::not_found, std::string("quern knows no function '") + name +
                                            "' of the driver's; give the versioned name of cuda.h");
    *function = found;
  });
}
