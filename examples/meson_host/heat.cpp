// SPDX-License-Identifier: Apache-2.0
// Heat in a bar: host arrays, two streams' worth of memory management, and a result as NumPy would see it.
#include <cmath>
#include <cstdio>
#include <quern/quern.hpp>

namespace {

constexpr const char* kSource = R"(
#include <quern/device.cuh>
extern "C" __global__ void step(quern::array<const float, 1> now, quern::array<float, 1> next) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x, n = now.extents[0];
  if (i >= n) return;
  next[i] = i == 0 || i == n - 1 ? now[i] : now[i] + 0.25f * (now[i - 1] - 2 * now[i] + now[i + 1]);
})";

}  // namespace

int main() try {
  using namespace quern;
  const Session session;
  const Kernel step = session.load_cuda(kSource).kernel();
  const Stream stream = session.stream();

  NDArray bar({1024}, Dtype::float32);
  bar(Slice{256, 768}).assign(100.0f);  // the middle half is hot
  DeviceNDArray now = session.to_device(bar, {.stream = stream.view()});
  DeviceNDArray next = session.device_array_like(now);
  for (int i = 0; i < 1000; ++i) {
    step.for_all(1024, {.stream = stream})(now, next);
    std::swap(now, next);
  }
  {
    const AutoSynchronize scope = stream.auto_synchronize();
    now.copy_to_host(bar, scope.stream());
  }
  double total = 0;
  for (const float value : bar.values<float>()) total += static_cast<double>(value);
  const auto edge = static_cast<double>(bar.at<float>(256));
  std::printf("%.0f units of heat, %.1f at the edge of the hot half, on %s\n", total, edge,
              session.device().name().c_str());
  // No heat is lost. Where a step from 0 to 100 was, half a cell inside: 50 * (1 + erf(0.5 / sqrt(4 * 0.25 *
  // 1000))).
  if (std::abs(total - 51200) > 1 || std::abs(edge - 50 * (1 + std::erf(0.5 / std::sqrt(1000.0)))) > 0.05)
    return 1;
  return 0;
} catch (const quern::Error& error) {
  std::fprintf(stderr, "heat: %s\n", error.what());
  return 1;
}
