// SPDX-License-Identifier: Apache-2.0
#include "suite.hpp"

#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

#include "driver/loader.hpp"
#include "runtime/device/exit.hpp"
#include "session/state.hpp"

namespace quern::contract {
namespace {

constexpr const char* kSource = R"(
#include <quern/device.cuh>
struct Point { float x, y; };
struct Particle { int kind; double position[3]; Point corners[2]; };
extern "C" __global__ void add_one(quern::array<float, 1> a) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < a.extents[0]) a[i] += 1;
}
extern "C" __global__ void scale(quern::array<float, 2> a, float by) {
  long long i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < a.extents[0] && j < a.extents[1]) a(i, j) *= by;
}
extern "C" __global__ void sum(int n, const float* a, const float* b, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
extern "C" __global__ void set(int n, float* out, float value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = value;
}
extern "C" __global__ void move(Particle* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  p[i].kind += 10;
  p[i].position[1] *= 2;
  p[i].corners[1].x = p[i].corners[0].y;
}
struct Pair { int a; double b; };
extern "C" __global__ void take_pair(Pair p, double* out) { out[0] = p.a + p.b; }
extern "C" __global__ void take_particle(Particle p, double* out) { out[0] = p.kind + p.position[2] + p.corners[1].y; }
extern "C" __global__ void dynamic(int* data) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void count(int* counter) { atomicAdd(counter, 1); }
extern "C" __global__ void busy(unsigned steps, unsigned* out) {
  unsigned value = threadIdx.x;
  for (unsigned i = 0; i < steps; ++i) value = value * 1664525u + (value >> 7) + i;
  out[threadIdx.x] = value;
}
)";
constexpr unsigned kBusySteps = 150'000'000;

struct Opened {
  std::optional<driver::LoadedDriver> libcuda;
  std::optional<driver::LoadedPlugin> plugin;
  std::unique_ptr<driver::FailingTable> calls;
  std::optional<Device> device;
  std::optional<Session> session;
  std::map<std::string, Kernel, std::less<>> kernels;
  std::string program;
};
/// Never destroyed: exit handlers use its driver, too.
Opened& opened() {
  static auto* const instance = new Opened;
  return *instance;
}

}  // namespace

std::string open_device(std::string_view name) {
  Opened& it = opened();
  driver::DriverTable table = driver::unsupported_table();
  runtime::Driver driver;
  driver.kind = name == "cpu" ? DeviceKind::cpu : DeviceKind::cuda;
  if (name == "cpu") {
    auto plugin = driver::load_cpu_plugin();
    if (!plugin) return to_string(plugin.errors());
    it.plugin = std::move(*plugin);
    table = it.plugin->table;
    driver.plugin = it.plugin->plugin;
  } else {
    auto libcuda = driver::load_libcuda();
    if (!libcuda) return to_string(libcuda.errors());
    it.libcuda = std::move(*libcuda);
    table = it.libcuda->table;
  }
  it.calls = std::make_unique<driver::FailingTable>(table);
  driver.api = it.calls->table();
  try {
    const auto started = runtime::initialise(std::move(driver));
    if (runtime::device_count(*started) == 0) return "there is none";
    it.device.emplace(runtime::open_device(started, 0));
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

const Device& device() { return *opened().device; }
bool is_cpu() { return device().kind() == DeviceKind::cpu; }
driver::FailingTable& calls() { return *opened().calls; }
std::uint64_t calls_of(std::string_view function) { return calls().call_count(function); }

const Session& shared() {
  std::optional<Session>& session = opened().session;
  if (!session) session.emplace(second_session());
  return *session;
}
Session second_session() { return session::SessionAccess::open(device()); }

OwnContext::OwnContext() {
  const runtime::Driver& driver = *device().state()->driver;
  driver.check(driver.api.cuCtxCreate_v4(&handle, nullptr, 0, device().state()->handle), "cuCtxCreate_v4",
               "make a context");
  CUcontext popped = nullptr;
  driver.check(driver.api.cuCtxPopCurrent_v2(&popped), "cuCtxPopCurrent_v2", "leave it");
}
OwnContext::~OwnContext() { device().state()->driver->api.cuCtxDestroy_v2(handle); }
OwnSession::OwnSession()  // not the session's own device(), which is not there yet
    : Session(session::SessionAccess::with_context(contract::device(),
                                                   runtime::Context::adopt(contract::device(), handle))) {}

Kernel kernel(std::string_view name) {
  auto& kernels = opened().kernels;
  if (const auto found = kernels.find(name); found != kernels.end()) return found->second;
  return kernels.emplace(std::string(name), kernel(shared(), name)).first->second;
}
Kernel kernel(const Session& of, std::string_view name) { return of.load_cuda(kSource).kernel(name); }

void keep_busy(StreamView stream) {
  static const Kernel busy = kernel("busy");
  static const DeviceArray<unsigned> out = shared().device_array<unsigned>(32);
  busy({.grid = 1, .block = 32, .stream = stream})(kBusySteps, out);
}

StreamView foreign_stream() {
  const runtime::Driver& driver = *device().state()->driver;
  const runtime::CurrentContext current(*shared().default_stream().context());
  CUstream stream = nullptr;
  driver.check(driver.api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate", "make a stream");
  return shared().external_stream(stream);
}

unsigned host_alloc_flags(void* memory) {
  const runtime::Driver& driver = *device().state()->driver;
  const runtime::CurrentContext current(*shared().default_stream().context());
  unsigned flags = 0;
  driver.check(driver.api.cuMemHostGetFlags(&flags, memory), "cuMemHostGetFlags", "read the flags");
  return flags;
}

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return values;
}

NDArray counting_array(const Shape& shape, Order order) {
  return NDArray::of(counting(Layout(shape, 4).size()), shape).copy(order);
}

std::string message(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

Environment::Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
Environment::~Environment() { unsetenv(name_); }

const std::string& program_path() { return opened().program; }
void set_program(const std::string& path) { opened().program = path; }

// Objects that outlive main(), destroyed before and after the library's own exit handlers.
int run_exit_child(const std::string& device_name) {
  static std::vector<DeviceNDArray> early;
  static std::optional<Stream> stream;
  static std::optional<SmartArray> smart;
  if (!open_device(device_name).empty()) return 2;
  runtime::watch_process_exit();
  static const Session late = second_session();
  stream.emplace(late.stream());
  for (int i = 0; i < 20; ++i)
    early.push_back(late.to_device(counting_array({1000}), {.stream = stream->view()}));
  smart.emplace(late.smart_array(counting_array({10})));
  static const NDArray pinned = late.pinned_array({100});
  static const MappedNDArray mapped = late.mapped_array({100});
  static const DeferredCleanup deferred = late.defer_cleanup();
  const auto out = late.device_array<unsigned>(32);
  kernel(late, "busy")({.grid = 1, .block = 32, .stream = *stream})(kBusySteps, out);
  kernel(late, "add_one")({.grid = 4, .block = 256, .stream = *stream})(early[0]);
  static const NDArray target = early[0].copy_to_host(*stream);  // still queued when main() ends
  return 0;
}

}  // namespace quern::contract
