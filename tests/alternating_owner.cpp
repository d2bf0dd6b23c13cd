// SPDX-License-Identifier: Apache-2.0
// For programs that run emitted code without the device: defines what it asks about the owners of regions
// (cpu/abi/bias.hpp).
#include "cpu/abi/state.hpp"

namespace quern::cpu::engine {

/// Two of three times the worker owns the region, so that both plain and locked instructions run.
extern "C" bool quern_cpu_own(WorkerState* worker, std::uint64_t, std::uint64_t) {
  static thread_local unsigned calls = 0;
  if (++calls % 3 != 0) return true;  // still in the section
  ++worker->bias.section;
  return false;
}
extern "C" void quern_cpu_unbias(WorkerState*, const std::uint64_t*, std::uint32_t) {}

}  // namespace quern::cpu::engine
