// SPDX-License-Identifier: Apache-2.0
// A state machine of the driver's functions: no crash, no hang, no leak of the host's or the device's memory.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "machine.hpp"

namespace {

std::size_t free_bytes() {
  CUcontext context = nullptr, popped = nullptr;
  quern::fuzz::must(cuDevicePrimaryCtxRetain(&context, 0));
  quern::fuzz::must(cuCtxPushCurrent_v2(context));
  std::size_t free = 0, total = 0;
  quern::fuzz::must(cuMemGetInfo_v2(&free, &total));
  quern::fuzz::must(cuCtxPopCurrent_v2(&popped));
  quern::fuzz::must(cuDevicePrimaryCtxRelease_v2(0));
  return free;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::size_t at_first = [] {
    ::setenv("QUERN_CPU_WORKERS", "2", 1);
    ::setenv("QUERN_CPU_MEMORY", "64M", 1);
    quern::fuzz::must(cuInit(0));
    return free_bytes();
  }();
  quern::fuzz::Machine({data, size}).run();
  // The thread that ran a command may still hold its memory for a moment.
  std::size_t now = free_bytes();
  for (int i = 0; i < 2000 && now != at_first; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    now = free_bytes();
  }
  if (now != at_first) {
    std::fprintf(stderr, "%zu bytes of the device were free, now %zu are\n", at_first, now);
    std::abort();
  }
  return 0;
}
