// SPDX-License-Identifier: Apache-2.0
// The owners of biased regions (abi/bias.hpp), and the launches that allow them.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/abi/bias.hpp"
#include "cpu/abi/facts.hpp"
#include "cpu/abi/state.hpp"

namespace quern::cpu::engine {

/// A region has an owner only while all running kernels use atomic operations in the biased way. Kernels that
/// use others (ir::AtomicUse::other) end all ownership before they begin. Thread-safe.
class Bias {
 public:
  Bias();

  /// Must be called for all workers before the first launch. The state must live as long as this.
  void add(WorkerState& worker);

  /// A worker that begins and ends its part of a kernel.
  void enter(WorkerState& worker, ir::AtomicUse use);
  void leave(WorkerState& worker, ir::AtomicUse use) noexcept;

  /// Ends all ownership for good: threads outside of this process may use atomic operations on the memory.
  void forbid();
  bool is_forbidden() const noexcept { return forbidden_.load(std::memory_order_relaxed); }

  /// quern_cpu_own() and quern_cpu_unbias().
  bool own(WorkerState& worker, std::uint64_t first, std::uint64_t last);
  void unbias(WorkerState& worker, const std::uint64_t* addresses, std::uint32_t mask);

 private:
  using Entry = std::uint64_t;
  static constexpr std::uint64_t kEntries = 8192;
  // An entry is the epoch, and in its low bits 1 + the owner's index, or 0 if nobody may own the region. An
  // entry of another epoch says nothing.
  static constexpr unsigned kIndexBits = 16;

  Entry shared_entry() const QUERN_REQUIRES(mutex_) { return epoch_ << kIndexBits; }
  /// The same of the epoch in which the worker entered its kernel.
  static Entry shared_entry(const WorkerState& worker) { return worker.bias.tag >> kIndexBits << kIndexBits; }
  bool is_current(Entry entry) const QUERN_REQUIRES(mutex_) { return entry >> kIndexBits == epoch_; }
  bool may_claim() const QUERN_REQUIRES(mutex_);
  Entry read(std::uint64_t address) const;
  void write(std::uint64_t address, Entry entry);
  /// Takes the region of `address` from its owner, if it has one that is not `worker`; returns the owner.
  WorkerState* take_away(const WorkerState& worker, std::uint64_t address) QUERN_REQUIRES(mutex_);
  void await(std::span<WorkerState* const> owners) QUERN_REQUIRES(mutex_);
  void make_shared(const WorkerState& worker, const std::uint64_t* addresses, std::uint32_t mask)
      QUERN_REQUIRES(mutex_);
  void take_all_away() QUERN_REQUIRES(mutex_);

  std::vector<Entry> owners_;
  base::Mutex mutex_;
  std::vector<WorkerState*> workers_ QUERN_GUARDED_BY(mutex_);
  std::uint64_t epoch_ QUERN_GUARDED_BY(mutex_) = 1;
  std::uint32_t biased_ QUERN_GUARDED_BY(mutex_) = 0;  ///< workers that run kernels of this use
  std::uint32_t others_ QUERN_GUARDED_BY(mutex_) = 0;
  std::uint64_t claimed_ QUERN_GUARDED_BY(mutex_) = 0;     ///< regions, in this epoch
  std::uint64_t taken_away_ QUERN_GUARDED_BY(mutex_) = 0;  ///< of these
  std::atomic<bool> forbidden_{false};                     ///< written under the mutex
};

}  // namespace quern::cpu::engine
