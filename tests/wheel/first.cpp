// SPDX-License-Identifier: Apache-2.0
// A program that is built against the installed wheel.
#include <quern/quern.hpp>

#include <cstdio>
#include <vector>

int main() {
  quern::Session session("cpu");
  auto module = session.load_cuda("extern \"C\" __global__ void set(int* x) { x[threadIdx.x] = 7; }");
  auto x = session.to_device(std::vector<int>(4));
  module.kernel("set")({.grid = 1, .block = 4})(x);
  for (const int value : x.copy_to_host()) std::printf("%d ", value);
}
