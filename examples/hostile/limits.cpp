// SPDX-License-Identifier: Apache-2.0
// A host that may not have many addresses (`ulimit -v`, RLIMIT_AS): the CPU device reserves fewer and checks
// more. A kernel computes correct results, and one that stores outside its array ends as an error. If not
// even that fits, the exception says how much is needed and what to change.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <quern/quern.hpp>
#include <string>
#include <vector>

#include "check.hpp"

namespace {

constexpr const char* kSource = R"(
extern "C" __global__ void scale(float* x, int n, float by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}
extern "C" __global__ void stray(float* x, long long at) { x[at + threadIdx.x] = 1; }
)";

void set_limit(rlim_t bytes) {
  rlimit limit{};
  EXPECT(getrlimit(RLIMIT_AS, &limit) == 0);
  limit.rlim_cur = bytes;
  EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
}

/// The message of a session that finds no room for the device.
std::string refusal() {
  try {
    const quern::Session session("cpu");
  } catch (const quern::Error& error) {
    return error.what();
  }
  return "";
}

void check_scale(const quern::Session& session) {
  const quern::Kernel scale = session.load_cuda(kSource).kernel("scale");
  std::vector<float> host(10000, 2.0f);
  const quern::DeviceArray<float> x = session.to_device(host);
  scale({.grid = 40, .block = 256})(x, 10000, 1.5f);
  x.copy_to_host(host);
  for (const float each : host) EXPECT(each == 3.0f);
}

/// Each ends the context: the next one is another session's.
void check_stray(long long at) {
  const quern::Session session("cpu");
  const quern::Kernel stray = session.load_cuda(kSource).kernel("stray");
  const std::vector<float> mine(64, 7.0f);
  const quern::DeviceArray<float> x = session.to_device(mine);
  bool seen = false;
  try {
    stray({.grid = 1, .block = 64})(x, at);
    session.synchronize();
  } catch (const quern::Error& error) {
    seen = error.code() == quern::ErrorCode::device_fault;
  }
  EXPECT(seen);
  for (const float each : mine) EXPECT(each == 7.0f);
}

}  // namespace

int main() {
  setenv("QUERN_CPU_MEMORY", "256M", 1);
  setenv("QUERN_CPU_WORKERS", "2", 1);
  set_limit(rlim_t{600} << 20);
  const std::string said = refusal();
  EXPECT(said.find("the CPU device needs ") != std::string::npos);
  EXPECT(said.find("`ulimit -v` is 600 MiB") != std::string::npos);
  EXPECT(said.find("raise `ulimit -v` to ") != std::string::npos);
  set_limit(rlim_t{4000000} << 10);
  check_scale(quern::Session("cpu"));
  for (const long long at : {1ll << 24, 1ll << 30, 1ll << 33, 1ll << 40, -(1ll << 24), -(1ll << 33)})
    check_stray(at);
  check_scale(quern::Session("cpu"));
  std::puts("ok");
}
