// SPDX-License-Identifier: Apache-2.0
// Host calls, and C functions that LLVM's code generator may call.
#include <cstring>

#include "cpu/abi/state.hpp"
#include "cpu/emit/helpers/helper_code.hpp"

namespace quern::cpu::emit {
namespace {

constexpr unsigned kMaxHostArguments = 8;

}  // namespace

extern "C" {

/// Makes the host call of each running lane, lowest lane first. args: argument k of lane l is at [k * 32 +
/// l]. A call may not return.
static void quern_cpu_host_calls(engine::WorkerState* worker, const engine::LaunchState* launch,
                                 std::uint32_t call, std::uint32_t count, const std::uint64_t* args,
                                 std::uint64_t* results, std::uint32_t mask, std::uint32_t location) {
  for_each_lane(mask, [&](unsigned lane) {
    std::uint64_t own[kMaxHostArguments]{};
    for (std::uint32_t at = 0; at < count && at < kMaxHostArguments; ++at)
      own[at] = args[at * kWarpSize + lane];
    worker->fault_lane = lane;
    worker->fault_location = location;
    results[lane] = engine::quern_cpu_host_call(worker, launch, call, own);
  });
}

}  // extern "C"

std::span<const Helper> system_helpers() {
  static const Helper rows[] = {
      {"quern_cpu_global_timer", reinterpret_cast<void*>(&engine::quern_cpu_global_timer)},
      {"quern_cpu_nanosleep", reinterpret_cast<void*>(&engine::quern_cpu_nanosleep)},
      QUERN_HELPER(quern_cpu_host_calls),
      {"quern_cpu_open_pending", reinterpret_cast<void*>(&engine::quern_cpu_open_pending)},
      {"quern_cpu_apply_pending", reinterpret_cast<void*>(&engine::quern_cpu_apply_pending)},
      {"quern_cpu_own", reinterpret_cast<void*>(&engine::quern_cpu_own)},
      {"quern_cpu_unbias", reinterpret_cast<void*>(&engine::quern_cpu_unbias)},
      {"quern_cpu_trap", reinterpret_cast<void*>(&engine::quern_cpu_trap)},
      // The code generator emits calls of these for large copies.
      {"memcpy",
       reinterpret_cast<void*>(static_cast<void* (*)(void*, const void*, std::size_t)>(&std::memcpy))},
      {"memmove",
       reinterpret_cast<void*>(static_cast<void* (*)(void*, const void*, std::size_t)>(&std::memmove))},
      {"memset", reinterpret_cast<void*>(static_cast<void* (*)(void*, int, std::size_t)>(&std::memset))},
  };
  return rows;
}

}  // namespace quern::cpu::emit
