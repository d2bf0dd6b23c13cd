// SPDX-License-Identifier: Apache-2.0
// For programs that compile kernels but run none: defines the functions of the device's scheduler, which are
// not called.
#include <cstdlib>

#include "cpu/abi/state.hpp"

namespace quern::cpu::engine {
extern "C" void quern_cpu_yield(WorkerState*) { std::abort(); }
extern "C" void quern_cpu_nanosleep(std::uint32_t) { std::abort(); }
extern "C" std::uint64_t quern_cpu_global_timer() { std::abort(); }
extern "C" void quern_cpu_trap(WorkerState*, std::uint32_t) { std::abort(); }
extern "C" std::uint64_t quern_cpu_host_call(WorkerState*, const LaunchState*, std::uint32_t,
                                             const std::uint64_t*) {
  std::abort();
}
extern "C" bool quern_cpu_own(WorkerState*, std::uint64_t, std::uint64_t) { return false; }
extern "C" void quern_cpu_unbias(WorkerState*, const std::uint64_t*, std::uint32_t) {}
PendingPlace place_pending(WorkerState&, std::uint32_t, std::uint64_t, std::uint64_t) noexcept {
  std::abort();
}
}  // namespace quern::cpu::engine
