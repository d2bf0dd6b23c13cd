// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/reserve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace quern::cpu::device {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

/// The sizes of a compact window, from comfortable to tight.
struct Comfort {
  std::uint64_t arena_percent;  ///< of a device's memory; the rest is for guard zones and fragments
  std::uint64_t arena_extra;
  std::uint64_t most_host_bytes;   ///< of pinned memory; and no more than a device's memory
  std::uint64_t local_per_worker;  ///< local memory; a block may need 512 MiB
  std::uint64_t least_local;
  // For NVRTC, LLVM and the host's own memory; each worker's stacks and malloc arena. The samples compile and
  // run with 300 MiB.
  std::uint64_t spare;
  std::uint64_t spare_per_worker;
};
constexpr Comfort kComforts[] = {
    {200, 256 * kMiB, ~std::uint64_t{0}, 128 * kMiB, 512 * kMiB, kGiB, 112 * kMiB},
    {125, 64 * kMiB, kGiB, 32 * kMiB, 128 * kMiB, 512 * kMiB, 112 * kMiB},
    {113, 16 * kMiB, 64 * kMiB, 8 * kMiB, 32 * kMiB, 300 * kMiB, 44 * kMiB},
};

Step wide_step(const Demand& demand) {
  Step step;
  step.layout.device_count = demand.devices;
  step.layout.arena_bytes = 2 * demand.memory_bytes + 16 * kGiB;
  step.layout.host_bytes = 2 * demand.machine_bytes + 16 * kGiB;
  step.layout.worker_count = demand.workers;
  step.memory_bytes = demand.memory_bytes;
  step.host_bytes = demand.machine_bytes;
  step.spare_bytes = kGiB;
  return step;
}

Step compact_step(const Demand& demand, std::uint64_t memory_bytes, const Comfort& comfort) {
  Step step;
  step.memory_bytes = memory_bytes;
  step.host_bytes = std::min(memory_bytes, comfort.most_host_bytes);
  step.layout.compact = true;
  step.layout.device_count = demand.devices;
  step.layout.worker_count = demand.workers;
  step.layout.arena_bytes = memory_bytes / 100 * comfort.arena_percent + comfort.arena_extra;
  step.layout.host_bytes = step.host_bytes / 100 * comfort.arena_percent + comfort.arena_extra;
  step.layout.local_bytes = std::max(comfort.least_local, demand.workers * comfort.local_per_worker);
  step.spare_bytes = comfort.spare + demand.workers * comfort.spare_per_worker;
  return step;
}

std::string size_text(std::uint64_t bytes) {
  return bytes >= 10 * kGiB ? fmt::format("{} GiB", bytes / kGiB) : fmt::format("{} MiB", bytes / kMiB);
}

bool leaves_enough(const Step& step, const engine::AddressLimit& limit) {
  const std::uint64_t left = limit.most_bytes - std::min(limit.most_bytes, limit.used_bytes);
  return step.bytes() <= left && step.spare_bytes <= left - step.bytes();
}

/// The most memory, in MiB, for which the last step fits; 0: none.
std::uint64_t affordable_mib(const Demand& demand, const engine::AddressLimit& limit) {
  const Comfort& least = kComforts[std::size(kComforts) - 1];
  std::uint64_t fits = 0, beyond = demand.memory_bytes / kMiB + 1;
  while (beyond - fits > 1) {
    const std::uint64_t middle = (fits + beyond) / 2;
    const bool good = leaves_enough(compact_step(demand, middle * kMiB, least), limit);
    (good ? fits : beyond) = middle;
  }
  return fits * kMiB >= kMinMemoryBytes ? fits : 0;
}

Diagnostic refusal(const Demand& demand, const Step& least, const engine::AddressLimit& limit,
                   const Diagnostics& system) {
  Diagnostic diagnostic;
  diagnostic.code = "address-space";
  const std::uint64_t needed = least.bytes() + least.spare_bytes;
  diagnostic.message = fmt::format("the CPU device needs {} of addresses for {} of memory and {} worker(s)",
                                   size_text(needed), size_text(least.memory_bytes), demand.workers);
  std::string smaller;
  if (limit.limited()) {
    const std::uint64_t left = limit.most_bytes - std::min(limit.most_bytes, limit.used_bytes);
    diagnostic.message +=
        fmt::format(", and this process may have {} more: `ulimit -v` is {}, {} are in use", size_text(left),
                    size_text(limit.most_bytes), size_text(limit.used_bytes));
    diagnostic.hint = fmt::format("raise `ulimit -v` to {} at least", (limit.used_bytes + needed) / 1024 + 1);
    const std::uint64_t mib = demand.memory_named ? affordable_mib(demand, limit) : 0;
    if (mib != 0) smaller = fmt::format(", set QUERN_CPU_MEMORY to {}M at most", mib);
  } else {
    if (!system.empty()) diagnostic.message += "; " + system.front().message;
    diagnostic.hint = "find out what limits this process's addresses";
    if (demand.memory_named) smaller = ", lower QUERN_CPU_MEMORY";
  }
  diagnostic.hint += smaller;
  if (demand.addresses == Addresses::wide) diagnostic.hint += ", unset QUERN_CPU_ADDRESSES";
  if (demand.workers > 1) diagnostic.hint += ", or lower QUERN_CPU_WORKERS";
  return diagnostic;
}

}  // namespace

std::vector<Step> steps_for(const Demand& demand) {
  std::vector<Step> steps;
  if (demand.addresses != Addresses::compact) steps.push_back(wide_step(demand));
  if (demand.addresses == Addresses::wide) return steps;
  for (std::uint64_t memory = demand.memory_bytes;; memory /= 2) {
    for (const Comfort& comfort : kComforts) steps.push_back(compact_step(demand, memory, comfort));
    if (demand.memory_named || memory / 2 < kMinMemoryBytes) return steps;
  }
}

Expected<Reserved> reserve(const Demand& demand, const engine::AddressLimit& limit) {
  const std::vector<Step> steps = steps_for(demand);
  Diagnostics system;
  for (const Step& step : steps) {
    if (limit.limited() && !leaves_enough(step, limit)) continue;
    Expected<std::unique_ptr<engine::Window>> window = engine::Window::reserve(step.layout);
    if (window) return Reserved{std::move(*window), step};
    system = std::move(window).errors();
  }
  return refusal(demand, steps.back(), limit, system);
}

}  // namespace quern::cpu::device
