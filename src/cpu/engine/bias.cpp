// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/bias.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <system_error>

#include "base/thread.hpp"
#include "cpu/engine/memory.hpp"
#include "cpu/engine/worker.hpp"

namespace quern::cpu::engine {
namespace {

/// Regions that may be taken away in an epoch, which costs about a microsecond each: so many, and one for
/// each kClaimsPerLoss that were claimed. Beyond that no more regions get an owner.
constexpr std::uint64_t kLosses = 32;
constexpr std::uint64_t kClaimsPerLoss = 16;

/// Makes all running threads of the process execute a fence.
bool fence_all_threads() noexcept {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

std::atomic<bool> has_fences{false};  // the process may call fence_all_threads()
std::atomic<bool> asked_for_fences{false};

/// The system takes some 40 ms to prepare a process with several threads for the fences.
void prepare_fences() {
  if (asked_for_fences.exchange(true)) return;
  try {
    base::start_thread(
        [] { has_fences = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0; });
  } catch (const std::system_error&) {
    asked_for_fences = false;  // no thread can be started now
  }
}

// Emitted code accesses these fields while other threads read them.
std::uint64_t section_of(const WorkerState& worker) noexcept {
  return __atomic_load_n(&worker.bias.section, __ATOMIC_ACQUIRE);
}
void set_section(WorkerState& worker, std::uint64_t section) noexcept {
  __atomic_store_n(&worker.bias.section, section, __ATOMIC_RELEASE);
}
void end_section(WorkerState& worker) noexcept {
  if (const std::uint64_t section = worker.bias.section; section % 2 != 0) set_section(worker, section + 1);
}

}  // namespace

Bias::Bias() : owners_(kEntries) {}

void Bias::add(WorkerState& worker) {
  const base::LockGuard lock(mutex_);
  workers_.push_back(&worker);
  worker.bias.owners = owners_.data();
  worker.bias.mask = kEntries - 1;
}

void Bias::enter(WorkerState& worker, ir::AtomicUse use) {
  if (use == ir::AtomicUse::none) return;
  const base::LockGuard lock(mutex_);
  if (workers_.size() < 2) return;
  if (use == ir::AtomicUse::other) {
    if (others_++ == 0 && biased_ > 0) take_all_away();
    return;
  }
  prepare_fences();
  if (biased_++ == 0) {
    ++epoch_;
    claimed_ = taken_away_ = 0;
  }
  worker.bias.tag = epoch_ << kIndexBits | (worker.worker_index + 1);
}

void Bias::leave(WorkerState& worker, ir::AtomicUse use) noexcept {
  if (use == ir::AtomicUse::none) return;
  end_section(worker);  // a fault, or a request to leave, may have ended the kernel in it
  const base::LockGuard lock(mutex_);
  if (workers_.size() < 2) return;
  worker.bias.tag = kNoTag;
  --(use == ir::AtomicUse::other ? others_ : biased_);
}

void Bias::forbid() {
  const base::LockGuard lock(mutex_);
  forbidden_.store(true, std::memory_order_relaxed);
  take_all_away();
}

bool Bias::may_claim() const {
  return has_fences && !is_forbidden() && others_ == 0 && taken_away_ < kLosses + claimed_ / kClaimsPerLoss;
}

Bias::Entry Bias::read(std::uint64_t address) const {
  return __atomic_load_n(&owners_[address >> kBiasRegionBits & (kEntries - 1)], __ATOMIC_RELAXED);
}
void Bias::write(std::uint64_t address, Entry entry) {
  __atomic_store_n(&owners_[address >> kBiasRegionBits & (kEntries - 1)], entry, __ATOMIC_RELEASE);
}

WorkerState* Bias::take_away(const WorkerState& worker, std::uint64_t address) {
  const Entry entry = read(address);
  if (entry == shared_entry()) return nullptr;
  write(address, shared_entry());
  if (!is_current(entry)) return nullptr;
  const std::uint64_t index = (entry & ((1u << kIndexBits) - 1)) - 1;
  const auto owner = std::ranges::find(workers_, index, &WorkerState::worker_index);
  return owner == workers_.end() || *owner == &worker ? nullptr : *owner;
}

/// Returns when none of the workers is in a section that it began before the call.
void Bias::await(std::span<WorkerState* const> owners) {
  if (owners.empty()) return;
  fence_all_threads();
  for (const WorkerState* owner : owners) {
    const std::uint64_t section = section_of(*owner);
    if (section % 2 == 0) continue;
    for (std::uint32_t turn = 1; section_of(*owner) == section; ++turn)
      turn % 64 == 0 ? static_cast<void>(::sched_yield()) : __builtin_ia32_pause();
  }
  ++taken_away_;
}

void Bias::take_all_away() {
  for (Entry& entry : owners_) __atomic_store_n(&entry, shared_entry(), __ATOMIC_RELEASE);
  if (has_fences) await(workers_);
}

void Bias::make_shared(const WorkerState& worker, const std::uint64_t* addresses, std::uint32_t mask) {
  std::array<WorkerState*, 32> owners{};
  std::size_t count = 0;
  for (std::uint32_t left = mask; left != 0; left &= left - 1)
    if (WorkerState* const owner = take_away(worker, addresses[std::countr_zero(left)]))
      owners[count++] = owner;
  await(std::span(owners).first(count));
}

bool Bias::own(WorkerState& worker, std::uint64_t first, std::uint64_t last) {
  end_section(worker);  // nothing was done in it
  const Entry shared = shared_entry(worker);
  if (read(first) == shared && read(last) == shared) return false;
  const base::LockGuard lock(mutex_);
  const Entry mine = worker.bias.tag;
  const auto may_be_mine = [&](std::uint64_t address) QUERN_REQUIRES(mutex_) {
    const Entry entry = read(address);
    return entry == mine || (is_current(mine) && !is_current(entry) && may_claim());
  };
  if (may_be_mine(first) && may_be_mine(last)) {
    claimed_ += read(first) != mine;
    write(first, mine);
    write(last, mine);
    set_section(worker, worker.bias.section + 1);
    return true;
  }
  const std::uint64_t addresses[] = {first, last};
  make_shared(worker, addresses, 0b11);
  return false;
}

void Bias::unbias(WorkerState& worker, const std::uint64_t* addresses, std::uint32_t mask) {
  const Entry mine = worker.bias.tag, shared = shared_entry(worker);
  std::uint32_t others = 0;
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const Entry entry = read(addresses[std::countr_zero(left)]);
    if (entry != mine && entry != shared) others |= left & -left;
  }
  if (others == 0) return;
  const base::LockGuard lock(mutex_);
  make_shared(worker, addresses, others);
}

extern "C" {

bool quern_cpu_own(WorkerState* state, std::uint64_t first, std::uint64_t last) {
  return static_cast<Worker*>(state->scheduler)->services().memory->bias().own(*state, first, last);
}

void quern_cpu_unbias(WorkerState* state, const std::uint64_t* addresses, std::uint32_t mask) {
  static_cast<Worker*>(state->scheduler)->services().memory->bias().unbias(*state, addresses, mask);
}

}  // extern "C"

}  // namespace quern::cpu::engine
