// SPDX-License-Identifier: Apache-2.0
// Measures the cost of the memory layer without the driver; tools/bench prints it. Launches call a table
// whose cuLaunchKernel does nothing, so that only the layer is measured.
#include <quern/quern.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "driver/loader.hpp"
#include "runtime/device/driver.hpp"
#include "session/state.hpp"

namespace {

using namespace quern;

constexpr const char* kPtx = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry plain(.param .u64 x, .param .u64 y, .param .u32 n, .param .f32 a) { ret; }
)";
constexpr const char* kArrays = R"(#include <quern/device.cuh>
extern "C" __global__ void arrays(quern::array<float, 2> a, quern::array<float, 2> b, quern::array<float, 2> c,
                                  quern::array<float, 2> d) {})";
constexpr int kRounds = 9;

driver::DriverTable real;
std::uint64_t launches = 0;

/// Nanoseconds for each call, over `count` calls.
template <class F>
double mean_ns(std::uint64_t count, F&& call) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < count; ++i) call();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / static_cast<double>(count);
}

/// The best of several rounds.
template <class F>
double best_ns(std::uint64_t count, F&& call) {
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) best = std::min(best, mean_ns(count, call));
  return best;
}

Session open() {
  driver::LoadedPlugin plugin = *driver::load_cpu_plugin();
  real = plugin.table;
  runtime::Driver driver;
  driver.api = plugin.table;
  driver.plugin = plugin.plugin;
  driver.api.cuLaunchKernel = [](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 unsigned, CUstream, void**, void**) { return ++launches, CUDA_SUCCESS; };
  return session::SessionAccess::open(runtime::open_device(runtime::initialise(std::move(driver)), 0));
}

void print(const char* what, double value, double limit, const char* unit, bool below) {
  const bool good = below ? value <= limit : value >= limit;
  std::printf("%-52s%8.1f %s, limit %.0f  %s\n", what, value, unit, limit, good ? "ok" : "MISSED");
}

constexpr std::uint64_t kCount = 200'000;

void launch_with_context(const Session& session, const Kernel& plain, const LaunchConfig& config,
                         const DeviceNDArray& x, void* address) {
  print("launch with scalars and pointers, above the driver's",
        best_ns(kCount, [&] { plain(config)(address, address, 10, 2.0f); }), 100, "ns", true);
  const Kernel arrays = session.load_cuda(kArrays).kernel();
  print("launch with four array arguments, above the driver's",
        best_ns(kCount, [&] { arrays(config)(x, x, x, x); }), 300, "ns", true);
}

void launch_costs(const Session& session) {
  const LaunchConfig config = {.grid = 4, .block = 256};
  const Kernel plain = session.load_ptx(kPtx).kernel();
  const DeviceNDArray x = session.device_array({64, 64}, Dtype::float32);
  void* const address = x.data();
  {
    // A raw driver call needs its context current as well.
    const runtime::CurrentContext current(*session.default_stream().context());
    launch_with_context(session, plain, config, x, address);
  }
  std::printf("%-52s%8.1f ns\n", "the same where no context is current",
              best_ns(kCount, [&] { plain(config)(address, address, 10, 2.0f); }));
}
void copies(const Session& session) {
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  const NDArray source({kBytes}, Dtype::uint8);
  std::vector<std::byte> target(kBytes);
  const DeviceNDArray device = session.to_device(source);
  // Interleaved, since the load on the machine's memory changes from second to second.
  double native = 1e30;
  double ours = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    native = std::min(native, mean_ns(1, [&] { std::memcpy(target.data(), source.data(), kBytes); }));
    ours = std::min(ours, mean_ns(1, [&] { (void)session.to_device(source, {.to = device}); }));
  }
  print("to_device of 1 GiB, % of memcpy's speed", 100 * native / ours, 90, "%", false);
}

void views(const Session& session) {
  const DeviceNDArray x = session.device_array({64, 64}, Dtype::float32);
  const std::uint64_t made = session.memory_stats().total().made_count;
  const double slice = best_ns(100'000, [&] { (void)x(Slice{1, 60, 2}, 3); });
  std::printf("%-52s%8.1f ns, %llu allocations on the device\n", "a slice", slice,
              static_cast<unsigned long long>(session.memory_stats().total().made_count - made));
}

}  // namespace

int main() {
  const Session session = open();
  launch_costs(session);
  views(session);
  copies(session);
}
