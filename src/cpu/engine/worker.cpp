// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/worker.hpp"

#include <algorithm>
#include <iterator>

#include "cpu/abi/warp_size.hpp"
#include "cpu/engine/memory.hpp"
#include "cpu/engine/resident.hpp"

namespace quern::cpu::engine {
namespace {

constexpr std::uint64_t kCacheLineBytes = 64;

bool inside(const std::byte* base, std::uint64_t size, std::uint64_t address, std::uint64_t bytes) noexcept {
  const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(base);
  return offset < size && bytes <= size - offset;
}

/// Lanes use their stacks at the same depth. An odd number of cache lines between neighbouring lanes avoids
/// conflicts in the cache.
std::uint64_t stride_of(const WorkerNeeds& needs) noexcept {
  const std::uint64_t own = round_up(needs.local_bytes, kLocalAlignment);
  if (needs.stack_bytes == 0 && needs.activation_bytes == 0) return own;
  const std::uint64_t lines = round_up(own + needs.stack_bytes, kCacheLineBytes) / kCacheLineBytes;
  if (lines % 2 != 0) return lines * kCacheLineBytes;
  return (needs.stack_bytes == 0 ? lines + 1 : lines - 1) * kCacheLineBytes;
}

}  // namespace

Worker::Worker(std::uint32_t index, const Services& services, GuardedStack stack)
    : services_(services), stack_(std::move(stack)) {
  state_.shared_base = services.window->shared(index).base;
  // In a compact window: no local memory yet, which is inaccessible.
  state_.local_base =
      services.window->compact() ? services.window->base() : services.window->local(index).base;
  state_.worker_index = index;
  state_.scheduler = this;
  services.memory->bias().add(state_);
}

Worker::~Worker() {
  if (services_.window->compact() && local_committed_ != 0)
    services_.memory->locals()->release(state_.local_base);
}

Expected<std::unique_ptr<Worker>> Worker::make(std::uint32_t index, const Services& services) {
  Expected<GuardedStack> stack = GuardedStack::make(
      services.window->compact() ? GuardedStack::kSmallStackBytes : GuardedStack::kStackBytes[0]);
  if (!stack) return std::move(stack).errors();
  std::unique_ptr<Worker> worker(new Worker(index, services, std::move(*stack)));
  if (!commit(worker->state_.shared_base, kSharedBytes)) {
    Diagnostic diagnostic;
    diagnostic.code = "out-of-memory";
    diagnostic.message = "cannot get a worker's shared memory";
    diagnostic.hint = "lower QUERN_CPU_WORKERS";
    return diagnostic;
  }
  return worker;
}

void Worker::ask_to_leave() noexcept {
  asking_.fetch_add(1);
  if (KernelRun* run = run_.load()) request_stop(*run, thread);
  asking_.fetch_sub(1);
}

bool Worker::is_asked_to_leave() const noexcept {
  const KernelRun* const run = run_.load();
  return run != nullptr && is_stopped(*run);
}

bool Worker::reserve_local(std::uint64_t bytes) {
  if (bytes <= local_committed_) return true;
  if (!services_.window->compact()) {
    if (!commit(state_.local_base, bytes)) return false;
    local_committed_ = bytes;
    return true;
  }
  // In a compact window, a worker keeps no local memory between launches.
  Arena* const locals = services_.memory->locals();
  if (locals == nullptr) return false;
  if (local_committed_ != 0) locals->release(state_.local_base);
  std::byte* const base = locals->allocate(bytes);
  state_.local_base = base == nullptr ? services_.window->base() : base;
  local_committed_ = base == nullptr ? 0 : bytes;
  return base != nullptr;
}

bool Worker::prepare(const WorkerNeeds& needs) {
  state_.local_stride = stride_of(needs);
  const std::uint64_t local = round_up(state_.local_stride * needs.warps * kWarpSize, kPageBytes);
  if (local > kMaxLocalBytes) return false;
  if (!reserve_local(local)) return false;
  if (!frames_.reserve(needs.frame_bytes * needs.warps)) return false;
  state_.frames = frames_.data();
  // The pending updates of a launch that was stopped are lost with it.
  std::fill(std::begin(state_.pending), std::end(state_.pending), PendingWindow{});
  printed = false;
  return true;
}

bool Worker::may_access(std::uint64_t address, std::uint64_t bytes) const {
  return inside(state_.shared_base, kSharedBytes, address, bytes) ||
         inside(state_.local_base, local_committed_, address, bytes) ||
         services_.memory->find_range(reinterpret_cast<const void*>(address), bytes) != nullptr;
}

}  // namespace quern::cpu::engine
