// SPDX-License-Identifier: Apache-2.0
// quern inside a program with driver code of its own: it adopts the program's context and stream, compiles a
// kernel, and runs it on memory that the program allocated, in the program's stream.
#include <cmath>
#include <cstdio>
#include <exception>
#include <quern/quern.hpp>
#include <vector>

#include "driver.hpp"

namespace {

constexpr const char* kSource = R"(
#include <quern/device.cuh>
extern "C" __global__ void waves(quern::array<float, 2> field, float time) {
  int y = blockIdx.y * blockDim.y + threadIdx.y, x = blockIdx.x * blockDim.x + threadIdx.x;
  if (y < field.extents[0] && x < field.extents[1]) field(y, x) += sinf(0.1f * x + time) * cosf(0.1f * y);
})";
constexpr int kWidth = 64, kHeight = 32;

void* find(const char* name, void* device) {
  return quern::driver_function(*static_cast<quern::Device*>(device), name);
}

}  // namespace

int main() try {
  using namespace quern;
  std::vector<Device> found = devices();  // GPUs first, the CPU device last
  if (found.empty()) return std::fputs("waves: no device\n", stderr), 1;
  Driver driver(&find, &found.front());  // a program for GPUs alone would use dlsym here
  std::vector<float> host(kWidth * kHeight, 1.0f);
  const CUdeviceptr memory = driver.allocate(host.size() * sizeof(float));
  driver.upload(memory, host.data(), host.size() * sizeof(float));
  {
    const Session session({found.front().label(), ContextChoice::current});
    CudaArrayInterface description;
    description.shape = {kHeight, kWidth};
    description.typestr = "<f4";
    description.data = reinterpret_cast<void*>(memory);
    const DeviceNDArray field = session.adopt(description, nullptr);
    const StreamView stream = session.external_stream(driver.stream);
    const Kernel waves = session.load_cuda(kSource).kernel();
    waves({.grid = {kWidth / 16, kHeight / 16}, .block = {16, 16}, .stream = stream})(field, 0.5f);
    field(0).assign(0.0f, stream);
  }
  driver.download(host.data(), memory, host.size() * sizeof(float));
  const float expected = 1 + std::sin(0.1f * 3 + 0.5f) * std::cos(0.1f * 2);
  std::printf("field(2, 3) = %.4f, as it must be: %.4f; first row %.1f; on %s\n",
              static_cast<double>(host[2 * kWidth + 3]), static_cast<double>(expected),
              static_cast<double>(host[5]), found.front().name().c_str());
  return std::fabs(host[2 * kWidth + 3] - expected) < 1e-4f && host[5] == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "waves: %s\n", error.what());
  return 1;
}
