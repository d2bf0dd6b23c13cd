// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/driver.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/env.hpp"
#include "cpu/device/exit.hpp"
#include "cpu/device/limits.hpp"
#include "cpu/device/reserve.hpp"
#include "cpu/device/thread_streams.hpp"
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

/// 89 for 8.9.
std::uint32_t capability_asked(base::EnvComplaint complain) {
  constexpr std::string_view kWords[] = {"7.5", "8.0",  "8.6",  "8.7",  "8.8", "8.9",
                                         "9.0", "10.0", "10.3", "11.0", "12.0"};
  constexpr std::uint32_t kNumbers[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120};
  static_assert(std::size(kWords) == std::size(kNumbers));
  const auto asked = base::env_word("QUERN_CPU_COMPUTE_CAPABILITY", kWords, complain);
  return asked ? kNumbers[*asked] : kDefaultComputeCapability;
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

/// CUDA_MODULE_LOADING is DEFAULT, LAZY or EAGER, and the default is LAZY ("CUDA C++ Programming Guide",
/// section "CUDA Environment Variables"). Other values count as unset, as with libcuda.
bool eager_loading_asked() {
  const std::optional<std::string> mode = base::env("CUDA_MODULE_LOADING");
  return mode == "EAGER";
}

}  // namespace

bool forked() noexcept { return forked_child.load(std::memory_order_relaxed); }

engine::Output& output() {
  static auto* const instance_output = new engine::Output;  // outlives every thread
  return *instance_output;
}

std::uint32_t configured_worker_count() { return worker_count(nullptr); }

std::uint32_t compute_capability() {
  const Driver* const driver = Driver::started();
  return driver != nullptr ? driver->compute_capability() : capability_asked(nullptr);
}

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

Driver::Driver(std::uint32_t device_count, std::uint32_t compute_capability,
               std::unique_ptr<engine::Window> window, std::unique_ptr<engine::Memory> memory)
    : device_count_(device_count),
      compute_capability_(compute_capability),
      loads_eagerly_(eager_loading_asked()),
      window_(std::move(window)),
      memory_(std::move(memory)),
      virtual_memory_(*memory_) {}

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
  std::unique_ptr<Driver> driver(new Driver(devices, capability_asked(&engine::report_variable),
                                            std::move(reserved->window), std::move(memory)));
  const engine::Services services{driver->window_.get(), driver->memory_.get(), &output()};
  std::vector<std::unique_ptr<engine::Worker>> workers;
  for (std::uint32_t index = 0; index < demand.workers; ++index) {
    Expected<std::unique_ptr<engine::Worker>> worker = engine::Worker::make(index, services);
    if (!worker) fail_start(std::move(worker).errors());
    workers.push_back(std::move(*worker));
  }
  driver->scheduler_ = std::make_unique<engine::Scheduler>(std::move(workers), launch_limit());
  const Contexts::Services shared{driver->scheduler_.get(), driver->memory_.get(), &driver->objects_};
  driver->contexts_ = std::make_unique<Contexts>(shared, devices);
  driver->mem_pools_ = std::make_unique<MemPools>(driver->objects_, devices);
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

std::shared_ptr<engine::Allocation> Driver::allocate(const ContextState& context, engine::AllocationKind kind,
                                                     std::uint64_t bytes, unsigned flags) {
  const engine::MemoryRequest request{bytes, kind, context.device, context.id, flags};
  std::shared_ptr<engine::Allocation> made = memory_->allocate(request);
  if (made == nullptr) {
    scheduler_->wait_for_disposal();
    made = memory_->allocate(request);
  }
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

std::shared_ptr<ContextState> Driver::current() {
  std::shared_ptr<ContextState> state = contexts_->current_even_failed();
  check_fault(*state);
  return state;
}

StreamObject Driver::stream_of(CUstream handle) {
  StreamObject stream = stream_of_even_failed(handle);
  check_fault(*stream.context);
  return stream;
}

StreamObject Driver::stream_of_even_failed(CUstream handle) {
  if (!is_default_stream(handle)) {
    const std::shared_ptr<StreamObject> made = objects_.try_find(handle);
    if (made != nullptr) return *made;
    current();  // streams end with their context: then that is the error
    fail(CUDA_ERROR_INVALID_HANDLE);
  }
  const std::shared_ptr<ContextState> context = current_even_failed();
  if (handle == nullptr) handle = default_stream();
  return {context, handle == CU_STREAM_LEGACY ? context->domain->legacy_stream()
                                              : thread_stream(*scheduler_, context)};
}

}  // namespace quern::cpu::device
