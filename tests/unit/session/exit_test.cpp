// SPDX-License-Identifier: Apache-2.0
// Objects that outlive main(): destroyed before or after the library's own exit, they must neither crash nor
// call an unloaded driver. The test is that the process ends with status 0.
#include <quern/quern.hpp>

#include <cstdio>
#include <optional>
#include <vector>

namespace {

// Constructed before any session, so it is destroyed after everything that the sessions registered.
std::vector<quern::DeviceArray<float>> arrays;
std::optional<quern::Kernel> kernel;
std::optional<quern::Stream> stream;
std::optional<quern::Session> session;

}  // namespace

int main() {
  try {
    session.emplace("cpu");
    stream.emplace(session->stream());
    for (int i = 0; i < 5; ++i) arrays.push_back(session->to_device(std::vector<float>(1000, 1.0f), *stream));
    kernel.emplace(
        session->load_cuda("extern \"C\" __global__ void k(float* x) { x[threadIdx.x] *= 2; }").kernel());
    // Still running or queued when main() ends.
    for (int i = 0; i < 100; ++i) (*kernel)({.grid = 1, .block = 256, .stream = *stream})(arrays[0]);
    static quern::Session late("cpu");
    static auto late_array = late.to_device(std::vector<int>(10, 1));
  } catch (const quern::Error& error) {
    if (error.code() != quern::ErrorCode::not_found) throw;
    std::printf("SKIPPED: %s\n", error.what());
  }
  return 0;
}
