// SPDX-License-Identifier: Apache-2.0
// A program with threads, faults and callbacks, for ThreadSanitizer over an ordinary build of quern.
#include <quern/quern.hpp>

#include <cstdio>
#include <thread>
#include <vector>

using namespace quern;

namespace {

constexpr const char* kSource = R"(
extern "C" __global__ void twice(int n, float* x) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }
extern "C" __global__ void wild(int* x) { x[1ll << 40] = 1; }
)";

/// Faults create texts on quern's threads, which this thread reads.
int count_faults() {
  int faults = 0;
  for (int i = 0; i < 3; ++i) {
    try {
      const Session session("cpu");
      session.load_cuda(kSource).kernel("wild")({.grid = 1, .block = 1})(session.device_array<int>(4));
      session.synchronize();
    } catch (const DriverError& error) {
      faults += error.code() == ErrorCode::device_fault ? 1 : 0;
    }
  }
  return faults;
}

bool work(const Session& session, const Module& module, float begin) {
  const Stream stream = session.stream();
  std::vector<float> values(1 << 16, begin), back(1 << 16);
  const auto array = session.device_array<float>(1 << 16);
  int called = 0;
  array.copy_from_host(std::span<const float>(values), stream);
  module.kernel("twice")({.grid = 256, .block = 256, .stream = stream})(1 << 16, array);
  array.copy_to_host(std::span<float>(back), stream);
  stream.add_callback([&] { called = 1; });
  stream.synchronize();
  return called == 1 && back.back() == 2 * begin;
}

}  // namespace

int main() {
  const int faults = count_faults();
  const Session session("cpu");
  const Module module = session.load_cuda(kSource);
  std::vector<char> good(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < good.size(); ++i)
    threads.emplace_back([&, i] { good[i] = work(session, module, static_cast<float>(i)) ? 1 : 0; });
  for (std::thread& thread : threads) thread.join();
  std::printf("%d faults, %d threads\n", faults, good[0] + good[1] + good[2] + good[3]);
  return faults == 3 && good == std::vector<char>(4, 1) ? 0 : 1;
}
