// SPDX-License-Identifier: Apache-2.0
// The README's first program, built against the installed package.
#include <quern/quern.hpp>
#include <cstdio>
#include <vector>

int main() {
  quern::Session session;  // a GPU if there is one, else the CPU device
  auto module = session.load_cuda(R"(extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; })");
  std::vector<float> x(1000, 1.0f), y(1000, 2.0f);
  auto dx = session.to_device(x), dy = session.to_device(y);
  module.kernel("saxpy")({.grid = 4, .block = 256})(1000, 2.0f, dx, dy);
  dy.copy_to_host(y);
  std::printf("y[0] = %g on %s\n", y[0], session.device().name().c_str());
}
