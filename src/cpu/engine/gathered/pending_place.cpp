// SPDX-License-Identifier: Apache-2.0
// The memory whose updates a worker may gather.
#include <algorithm>
#include <memory>

#include "cpu/engine/memory.hpp"
#include "cpu/engine/worker.hpp"

namespace quern::cpu::engine {
namespace {

/// True if updates of the allocation may be late: only kernels access it, and it lives as long as they run.
bool may_gather(const Allocation& allocation) {
  switch (allocation.kind) {
    case AllocationKind::device:
    case AllocationKind::pooled:
    case AllocationKind::module:
    case AllocationKind::mapped:
    case AllocationKind::imported:
      return (allocation.flags & kPooledOnHost) == 0 && allocation.access.load() == Access::read_write;
    case AllocationKind::host:
    case AllocationKind::managed:
    case AllocationKind::registered:
    case AllocationKind::shadow:
    case AllocationKind::heap:
      return false;
  }
  return false;
}

}  // namespace

/// The window is the whole allocation, or a part of it with the addresses in its middle.
PendingPlace place_pending(WorkerState& state, std::uint32_t window, std::uint64_t lowest,
                           std::uint64_t end) noexcept {
  if (end - lowest > kPendingBytes) return {};
  Worker& worker = *static_cast<Worker*>(state.scheduler);
  const auto* const address = reinterpret_cast<const void*>(lowest);  // NOLINT(performance-no-int-to-ptr)
  const std::shared_ptr<Allocation> found = worker.services().memory->find_range(address, end - lowest);
  if (found == nullptr || !may_gather(*found)) return {};
  std::byte* const memory = worker.pending_memory(window);
  if (memory == nullptr) return {};
  const auto base = reinterpret_cast<std::uint64_t>(found->base);
  const std::uint64_t limit = round_up(base + found->bytes, kPendingAlignment);
  std::uint64_t first = base;
  if (limit - base > kPendingBytes) {
    const std::uint64_t spare = (kPendingBytes - (end - lowest)) / 2;
    first = std::clamp(lowest - std::min(spare, lowest - base), base, limit - kPendingBytes);
  }
  first -= first % kPendingAlignment;
  return {first, std::min(limit - first, kPendingBytes), memory};
}

std::byte* Worker::pending_memory(std::uint32_t window) noexcept {
  AlignedMemory& memory = pending_memory_[window];
  return memory.reserve(kPendingBytes) ? memory.data() : nullptr;
}

}  // namespace quern::cpu::engine
