// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/driver.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/env.hpp"
#include "base/thread_value.hpp"
#include "cpu/device/exit.hpp"
#include "cpu/device/reserve.hpp"
#include "cpu/engine/machine.hpp"

namespace quern::cpu::device {
namespace {

constexpr std::uint32_t kMaxDevices = 16;
constexpr std::uint32_t kMaxWorkers = 256;
/// Twice that are still addresses that a process can reserve.
constexpr std::uint64_t kMaxMemoryBytes = std::uint64_t{16} << 40;

/// The process's driver, published by cuInit.
std::atomic<Driver*> instance{nullptr};
std::atomic<bool> forked_child{false};
std::atomic<bool> host_memory_is_kept{false};

struct Range {
  std::uint64_t least;
  std::uint64_t most;
};

/// `asked`, or the nearest end of the range with a warning.
std::uint64_t within(const Range& range, const char* variable, std::uint64_t asked,
                     base::EnvComplaint complain) {
  const std::uint64_t taken = std::clamp(asked, range.least, range.most);
  if (taken != asked && complain != nullptr)
    complain(variable, fmt::format("{} is not from {} to {}; {} is taken: {}", variable, range.least,
                                   range.most, taken, asked));
  return taken;
}

std::uint32_t count_of(const char* variable, std::uint32_t otherwise, std::uint32_t most,
                       base::EnvComplaint complain) {
  const std::optional<std::uint64_t> asked = base::env_number(variable, complain);
  if (!asked) return std::clamp(otherwise, 1u, most);
  return static_cast<std::uint32_t>(within({1, most}, variable, *asked, complain));
}

std::uint32_t worker_count(base::EnvComplaint complain) {
  return count_of("QUERN_CPU_WORKERS", engine::usable_processor_count(), kMaxWorkers, complain);
}

/// Sets the size of the device's memory; the default is a quarter of the machine's memory.
void set_memory(Demand& demand) {
  constexpr const char* kVariable = "QUERN_CPU_MEMORY";
  const std::optional<std::uint64_t> asked = base::env_bytes(kVariable, &engine::report_variable);
  demand.memory_named = asked.has_value();
  demand.memory_bytes =
      asked ? within({kMinMemoryBytes, kMaxMemoryBytes}, kVariable, *asked, &engine::report_variable)
            : std::max(demand.machine_bytes / 4, kMinMemoryBytes);
}

Addresses addresses_asked(base::EnvComplaint complain) {
  constexpr std::string_view kWords[] = {"auto", "wide", "compact"};
  const auto asked = base::env_word("QUERN_CPU_ADDRESSES", kWords, complain);
  return static_cast<Addresses>(asked.value_or(0));
}

struct StartErrors {
  base::Mutex mutex;
  bool has_reader QUERN_GUARDED_BY(mutex) = false;
  Diagnostics errors QUERN_GUARDED_BY(mutex);
};
StartErrors& last_start() {
  static auto* const instance_errors = new StartErrors;  // asked for by any thread until the process ends
  return *instance_errors;
}

[[noreturn]] void fail_start(Diagnostics errors) {
  bool has_reader = false;
  {
    StartErrors& last = last_start();
    const base::LockGuard lock(last.mutex);
    has_reader = last.has_reader;
    last.errors = errors;
  }
  if (!has_reader) engine::report(LogLevel::error, to_string(errors));
  fail(CUDA_ERROR_OUT_OF_MEMORY);
}

/// CUDA_VISIBLE_DEVICES: ordinals separated by commas; the first that is no ordinal ends the list. Our
/// devices are all alike, so only their number matters.
std::uint32_t visible_devices(std::uint32_t count) {
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) return count;
  std::uint32_t visible = 0;
  for (std::string_view rest = list; !rest.empty() && visible < count;) {
    const std::string item(rest.substr(0, rest.find(',')));
    char* end = nullptr;
    const long ordinal = std::strtol(item.c_str(), &end, 10);
    if (item.empty() || *end != '\0' || ordinal < 0 || static_cast<std::uint64_t>(ordinal) >= count) break;
    ++visible;
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
  }
  return visible;
}

/// A thread's per-thread default streams, by context.
struct ThreadStreams {
  struct Entry {
    std::weak_ptr<ContextState> context;
    std::shared_ptr<engine::Stream> stream;
  };
  std::vector<Entry> entries;
  ~ThreadStreams() {
    Driver* driver = instance.load(std::memory_order_acquire);
    if (driver == nullptr || forked()) return;
    for (const Entry& entry : entries)
      if (const std::shared_ptr<ContextState> alive = entry.context.lock())
        driver->scheduler().retire(*entry.stream);
  }
};

}  // namespace

void keep_host_memory() noexcept { host_memory_is_kept.store(true, std::memory_order_relaxed); }
bool keeps_host_memory() noexcept { return host_memory_is_kept.load(std::memory_order_relaxed); }

bool forked() noexcept { return forked_child.load(std::memory_order_relaxed); }

engine::Output& output() {
  static auto* const instance_output = new engine::Output;  // outlives every thread
  return *instance_output;
}

std::uint32_t configured_worker_count() { return worker_count(nullptr); }

bool compiles_compact() {
  const Driver* const driver = Driver::started();
  return driver != nullptr ? driver->window().compact() : addresses_asked(nullptr) == Addresses::compact;
}

/// QUERN_CPU_TIMEOUT, in seconds; 0 if it is not set.
std::chrono::milliseconds launch_limit() {
  constexpr base::EnvRange kSeconds{0, 1e9, "a number of seconds"};
  const double seconds = base::env_real("QUERN_CPU_TIMEOUT", kSeconds, &engine::report_variable).value_or(0);
  const std::chrono::milliseconds limit(static_cast<std::int64_t>(seconds * 1000));
  return seconds > 0 ? std::max(limit, std::chrono::milliseconds{1}) : limit;
}

std::vector<CUcontext>& context_stack() noexcept {
  struct ContextStack;
  return base::thread_value<std::vector<CUcontext>, ContextStack>();
}

CUresult result_of(engine::FaultKind fault) noexcept {
  using engine::FaultKind;
  switch (fault) {
    case FaultKind::none:
      return CUDA_SUCCESS;
    case FaultKind::illegal_address:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case FaultKind::misaligned_address:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case FaultKind::stack_overflow:
      return CUDA_ERROR_HARDWARE_STACK_ERROR;
    case FaultKind::illegal_instruction:
      return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case FaultKind::assertion:
      return CUDA_ERROR_ASSERT;
    case FaultKind::out_of_memory:
      return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    case FaultKind::unreachable:
      return CUDA_ERROR_INVALID_PC;
    case FaultKind::launch_timeout:
      return CUDA_ERROR_LAUNCH_TIMEOUT;
    case FaultKind::trap:
    case FaultKind::divergent_barrier:
    case FaultKind::no_such_barrier:
    case FaultKind::barrier_of_part:
      return CUDA_ERROR_LAUNCH_FAILED;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

void check_fault(const ContextState& context) {
  const engine::FaultKind fault = context.domain->fault();
  require(fault == engine::FaultKind::none, result_of(fault));
}

// --- start-up

Driver::Driver(std::uint32_t device_count, std::unique_ptr<engine::Window> window,
               std::unique_ptr<engine::Memory> memory)
    : device_count_(device_count), window_(std::move(window)), memory_(std::move(memory)) {}

std::unique_ptr<Driver> Driver::make() {
  const std::uint32_t devices =
      visible_devices(count_of("QUERN_CPU_DEVICES", 1, kMaxDevices, &engine::report_variable));
  require(devices > 0, CUDA_ERROR_NO_DEVICE);
  Demand demand;
  demand.devices = devices;
  demand.workers = worker_count(&engine::report_variable);
  demand.machine_bytes = engine::usable_memory_bytes();
  demand.addresses = addresses_asked(&engine::report_variable);
  set_memory(demand);
  Expected<Reserved> reserved = reserve(demand, engine::address_limit());
  if (!reserved) fail_start(std::move(reserved).errors());
  auto memory = std::make_unique<engine::Memory>(*reserved->window, devices, reserved->step.memory_bytes,
                                                 reserved->step.host_bytes);
  std::unique_ptr<Driver> driver(new Driver(devices, std::move(reserved->window), std::move(memory)));
  const engine::Services services{driver->window_.get(), driver->memory_.get(), &output()};
  std::vector<std::unique_ptr<engine::Worker>> workers;
  for (std::uint32_t index = 0; index < demand.workers; ++index) {
    Expected<std::unique_ptr<engine::Worker>> worker = engine::Worker::make(index, services);
    if (!worker) fail_start(std::move(worker).errors());
    workers.push_back(std::move(*worker));
  }
  driver->scheduler_ = std::make_unique<engine::Scheduler>(std::move(workers), launch_limit());
  const base::LockGuard lock(driver->mutex_);
  for (std::uint32_t device = 0; device < devices; ++device) {
    auto context = std::make_shared<Context>();
    context->device = device;
    context->primary = true;
    driver->primaries_.push_back(driver->contexts_.insert(std::move(context)));
  }
  return driver;
}

void Driver::expect_reader() {
  StartErrors& last = last_start();
  const base::LockGuard lock(last.mutex);
  last.has_reader = true;
}

Diagnostics Driver::start_errors() {
  StartErrors& last = last_start();
  const base::LockGuard lock(last.mutex);
  return last.errors;
}

const Driver* Driver::started() noexcept { return instance.load(std::memory_order_acquire); }

CUresult Driver::initialise(unsigned flags) noexcept {
  return entry([flags] {
    require(flags == 0);
    static base::Mutex starting;
    const base::LockGuard lock(starting);
    if (instance.load(std::memory_order_acquire) != nullptr) return;
    std::unique_ptr<Driver> driver = make();
    static const bool watching [[maybe_unused]] =
        ::pthread_atfork(nullptr, nullptr, [] { forked_child.store(true, std::memory_order_relaxed); }) == 0;
    instance.store(driver.release(), std::memory_order_release);  // never destroyed
  });
}

Driver& Driver::get() {
  Driver* driver = instance.load(std::memory_order_acquire);
  require(driver != nullptr, CUDA_ERROR_NOT_INITIALIZED);
  return *driver;
}

std::uint32_t Driver::device(CUdevice device) const {
  require(device >= 0 && static_cast<std::uint32_t>(device) < device_count_, CUDA_ERROR_INVALID_DEVICE);
  return static_cast<std::uint32_t>(device);
}

// --- contexts

std::shared_ptr<ContextState> Driver::make_state(std::uint32_t device) {
  engine::install_fault_handlers();
  auto state = std::make_shared<ContextState>();
  state->id = next_state_id_++;
  state->device = device;
  state->domain = scheduler_->make_domain();
  return state;
}

CUcontext Driver::make_context(std::uint32_t device, unsigned flags) {
  auto context = std::make_shared<Context>();
  const base::LockGuard lock(mutex_);
  context->device = device;
  context->flags = flags;
  context->state = make_state(device);
  return contexts_.insert(std::move(context));
}

CUcontext Driver::retain_primary(std::uint32_t device) {
  const base::LockGuard lock(mutex_);
  const CUcontext handle = primaries_[device];
  const std::shared_ptr<Context> context = contexts_.find(handle);
  ++context->retained;
  if (context->state == nullptr) context->state = make_state(device);
  return handle;
}

void Driver::release_primary(std::uint32_t device) {
  std::shared_ptr<ContextState> ended;
  {
    const base::LockGuard lock(mutex_);
    const std::shared_ptr<Context> context = contexts_.find(primaries_[device]);
    require(context->retained > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--context->retained == 0) ended = std::move(context->state);
  }
  if (ended != nullptr) tear_down(ended);
}

void Driver::reset_primary(std::uint32_t device) {
  std::shared_ptr<ContextState> ended;
  {
    const base::LockGuard lock(mutex_);
    const std::shared_ptr<Context> context = contexts_.find(primaries_[device]);
    ended = std::move(context->state);
    // Threads that retained it continue with a new context under the same handle.
    context->state = context->retained > 0 ? make_state(device) : nullptr;
  }
  if (ended != nullptr) tear_down(ended);
}

std::pair<unsigned, bool> Driver::primary_state(std::uint32_t device) {
  const base::LockGuard lock(mutex_);
  const std::shared_ptr<Context> context = contexts_.find(primaries_[device]);
  return {context->flags, context->state != nullptr};
}

void Driver::destroy_context(CUcontext handle) {
  std::shared_ptr<Context> context;
  {
    const base::LockGuard lock(mutex_);
    context = contexts_.find(handle);
    require(context != nullptr && !context->primary, CUDA_ERROR_INVALID_CONTEXT);
    contexts_.remove(handle);
  }
  tear_down(context->state);
  std::vector<CUcontext>& stack = context_stack();
  if (!stack.empty() && stack.back() == handle) stack.pop_back();
}

void Driver::tear_down(const std::shared_ptr<ContextState>& state) {
  scheduler_->synchronize(*state->domain);
  // A call on another thread may have found the state before it ended: from here on nothing that it submits
  // runs, and nothing that it makes stays.
  scheduler_->close(*state->domain);
  scheduler_->synchronize(*state->domain);
  // Collected under the lock, destroyed after it.
  std::vector<std::shared_ptr<void>> ended;
  {
    const base::LockGuard lock(mutex_);
    state->ended.store(true);
    const auto collect = [&](auto& table, auto&& belongs) {
      std::vector<decltype(table.insert(nullptr))> handles;
      table.for_each([&](auto handle, const auto& object) {
        if (belongs(*object)) handles.push_back(handle);
      });
      for (const auto handle : handles) ended.push_back(table.remove(handle));
    };
    collect(functions_, [&](const FunctionObject& each) { return each.module().context == state; });
    collect(modules_, [&](const ModuleObject& each) { return each.context == state; });
    collect(streams_, [&](const StreamObject& each) { return each.context == state; });
    collect(events_, [&](const EventObject& each) { return each.context == state; });
  }
  const bool faulted = state->domain->fault() != engine::FaultKind::none;
  memory_->remove_all(state->id, !faulted              ? engine::Remains::nothing
                                 : keeps_host_memory() ? engine::Remains::host_memory
                                                       : engine::Remains::addresses);
}

std::shared_ptr<engine::Allocation> Driver::allocate(const ContextState& context, engine::AllocationKind kind,
                                                     std::uint64_t bytes, unsigned flags) {
  std::shared_ptr<engine::Allocation> made =
      memory_->allocate({bytes, kind, context.device, context.id, flags});
  if (made != nullptr && context.ended.load()) {
    memory_->remove(*made);
    require_not_ended(context);
  }
  note_object();
  return made;
}

void Driver::release_kept(const void* base) {
  const std::shared_ptr<engine::Allocation> found = memory_->find(base);
  require(found != nullptr && found->base == base &&
          (found->kind == engine::AllocationKind::host || found->kind == engine::AllocationKind::managed));
  require(memory_->remove(*found));
}

void Driver::require_not_ended(const ContextState& context) {
  if (!context.ended.load()) return;
  const engine::FaultKind fault = context.domain->fault();
  fail(fault == engine::FaultKind::none ? CUDA_ERROR_CONTEXT_IS_DESTROYED : result_of(fault));
}

std::uint32_t Driver::context_device(CUcontext handle) {
  const base::LockGuard lock(mutex_);
  const std::shared_ptr<Context> context = contexts_.find(handle);
  require(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  return context->device;
}

std::shared_ptr<ContextState> Driver::current_even_failed() {
  const std::vector<CUcontext>& stack = context_stack();
  require(!stack.empty() && stack.back() != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  const base::LockGuard lock(mutex_);
  const std::shared_ptr<Context> context = contexts_.find(stack.back());
  require(context != nullptr && context->state != nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  return context->state;
}

std::shared_ptr<ContextState> Driver::current() {
  std::shared_ptr<ContextState> state = current_even_failed();
  const engine::FaultKind fault = state->domain->fault();
  require(fault == engine::FaultKind::none, result_of(fault));
  return state;
}

CUcontext Driver::context_of(std::uint64_t owner) {
  CUcontext found = nullptr;
  const base::LockGuard lock(mutex_);
  contexts_.for_each([&](CUcontext handle, const std::shared_ptr<Context>& context) {
    if (context->state != nullptr && context->state->id == owner) found = handle;
  });
  return found;
}

void Driver::synchronize_owner(std::uint64_t owner) {
  std::shared_ptr<ContextState> state;
  {
    const CUcontext handle = context_of(owner);
    const base::LockGuard lock(mutex_);
    if (const std::shared_ptr<Context> context = contexts_.find(handle)) state = context->state;
  }
  if (state != nullptr) scheduler_->synchronize(*state->domain);
}

// --- handles

CUmodule Driver::add(std::shared_ptr<ModuleObject> module) {
  const base::LockGuard lock(mutex_);
  require_not_ended(*module->context);
  note_object();
  return modules_.insert(std::move(module));
}
CUfunction Driver::add(std::shared_ptr<FunctionObject> function) {
  const base::LockGuard lock(mutex_);
  require_not_ended(*function->module().context);
  return functions_.insert(std::move(function));
}
CUstream Driver::add(std::shared_ptr<StreamObject> stream) {
  const base::LockGuard lock(mutex_);
  require_not_ended(*stream->context);
  note_object();
  return streams_.insert(std::move(stream));
}
CUevent Driver::add(std::shared_ptr<EventObject> event) {
  const base::LockGuard lock(mutex_);
  require_not_ended(*event->context);
  note_object();
  return events_.insert(std::move(event));
}
CUlinkState Driver::add(std::shared_ptr<LinkObject> link) {
  const base::LockGuard lock(mutex_);
  return links_.insert(std::move(link));
}

namespace {
template <class T>
std::shared_ptr<T> known(std::shared_ptr<T> object) {
  require(object != nullptr, CUDA_ERROR_INVALID_HANDLE);
  return object;
}
}  // namespace

std::shared_ptr<ModuleObject> Driver::find(CUmodule module) {
  const base::LockGuard lock(mutex_);
  return known(modules_.find(module));
}
std::shared_ptr<FunctionObject> Driver::find(CUfunction function) {
  const base::LockGuard lock(mutex_);
  return known(functions_.find(function));
}
std::shared_ptr<EventObject> Driver::find(CUevent event) {
  const base::LockGuard lock(mutex_);
  return known(events_.find(event));
}
std::shared_ptr<LinkObject> Driver::find(CUlinkState link) {
  const base::LockGuard lock(mutex_);
  return known(links_.find(link));
}
std::shared_ptr<StreamObject> Driver::remove(CUstream stream) {
  const base::LockGuard lock(mutex_);
  return known(streams_.remove(stream));
}
std::shared_ptr<EventObject> Driver::remove(CUevent event) {
  const base::LockGuard lock(mutex_);
  return known(events_.remove(event));
}
std::shared_ptr<LinkObject> Driver::remove(CUlinkState link) {
  const base::LockGuard lock(mutex_);
  return known(links_.remove(link));
}

std::shared_ptr<ModuleObject> Driver::remove(CUmodule handle) {
  std::vector<std::shared_ptr<FunctionObject>> ended;  // destroyed after the lock
  const base::LockGuard lock(mutex_);
  std::shared_ptr<ModuleObject> module = known(modules_.remove(handle));
  std::vector<CUfunction> functions;
  functions_.for_each([&](CUfunction function, const std::shared_ptr<FunctionObject>& each) {
    if (&each->module() == module.get()) functions.push_back(function);
  });
  for (const CUfunction function : functions) ended.push_back(functions_.remove(function));
  return module;
}

std::shared_ptr<engine::Stream> Driver::find_stream(CUstream handle,
                                                    const std::shared_ptr<ContextState>& context) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return context->domain->legacy_stream();
  if (handle == CU_STREAM_PER_THREAD) return thread_stream(context);
  const base::LockGuard lock(mutex_);
  const std::shared_ptr<StreamObject> stream = known(streams_.find(handle));
  require(stream->context == context, CUDA_ERROR_INVALID_HANDLE);
  return stream->stream;
}

std::shared_ptr<engine::Stream> Driver::thread_stream(const std::shared_ptr<ContextState>& context) {
  ThreadStreams& streams = base::thread_value<ThreadStreams>();
  std::erase_if(streams.entries, [](const ThreadStreams::Entry& entry) { return entry.context.expired(); });
  for (const ThreadStreams::Entry& entry : streams.entries)
    if (entry.context.lock() == context) return entry.stream;
  streams.entries.push_back({context, scheduler_->make_stream(*context->domain, true)});
  return streams.entries.back().stream;
}

}  // namespace quern::cpu::device
