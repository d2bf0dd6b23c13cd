// SPDX-License-Identifier: Apache-2.0
#include "launches.hpp"

#include "cpu/abi/warps.hpp"

namespace quern::cpu::test {
namespace {

using namespace engine;

/// Symbols of the linker for the bounds of the section that contains only `loop_for_ever`.
extern "C" const std::byte __start_endless_kernel[], __stop_endless_kernel[];

/// This function is in a separate section: a signal may end a run wherever the thread is in the kernel's
/// text, and the engine's own code must not be part of that.
__attribute__((section("endless_kernel"), noinline)) void loop_for_ever(const LaunchState* launch,
                                                                        WorkerState*, std::uint64_t,
                                                                        std::uint64_t) {
  parameter_of<std::atomic<int>>(launch).fetch_add(1);
  for (volatile bool on = true; on;) {
  }
}

}  // namespace

std::unique_ptr<LaunchJob> endless(std::atomic<int>& begun, bool waits) {
  if (!waits) {
    auto job = launch_of(&loop_for_ever, 2, &begun);
    job->own.text_begin = __start_endless_kernel;
    job->own.text_end = __stop_endless_kernel;
    return job;
  }
  auto job = launch_of(
      [](const LaunchState* launch, WorkerState* worker, std::uint64_t, std::uint64_t) {
        parameter_of<std::atomic<int>>(launch).fetch_add(1);
        for (;;) quern_cpu_yield(worker);
      },
      2, &begun);
  job->own.waits = true;
  return job;
}

}  // namespace quern::cpu::test
