// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cpu/abi/state.hpp"
#include "cpu/engine/fault.hpp"
#include "cpu/engine/stack_switch.hpp"
#include "cpu/engine/window.hpp"

namespace quern::cpu::engine {

class Memory;
class Output;

/// The engine's services for device helpers (printf, malloc).
struct Services {
  const Window* window = nullptr;
  Memory* memory = nullptr;
  Output* output = nullptr;
};

/// The resources that a launch needs in every worker that runs its blocks.
struct WorkerNeeds {
  std::uint32_t warps = 1;
  std::uint64_t local_bytes = 0;  ///< for each lane
  std::uint64_t frame_bytes = 0;  ///< for each warp
  std::uint64_t stack_bytes = 0;  ///< for each lane: local memory of called functions, after the kernel's
  /// The last part of local_bytes, for functions that are part of the kernel's graph. Its first 32 bits
  /// contain the amount of the lane's local memory in use.
  std::uint64_t activation_bytes = 0;
  bool may_overflow = false;  ///< recursive functions use an unknown amount of the worker's stack
};

/// Memory that is aligned to cache lines and grows on demand. Growing discards its contents.
class AlignedMemory {
 public:
  static constexpr std::uint64_t kAlignment = 64;
  /// Returns false if there is not enough memory.
  bool reserve(std::uint64_t bytes) {
    bytes = round_up(bytes, kAlignment);
    if (bytes <= bytes_) return true;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes)));
    bytes_ = memory_ == nullptr ? 0 : bytes;
    return memory_ != nullptr;
  }
  std::byte* data() const noexcept { return memory_.get(); }

 private:
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::uint64_t bytes_ = 0;
};

struct Command;
class ResidentBlock;

/// The resources that one thread needs to run blocks: shared and local memory, warp frames, a stack. A thread
/// borrows a worker while it runs chunks of a launch. Thread-compatible.
class Worker {
 public:
  static Expected<std::unique_ptr<Worker>> make(std::uint32_t index, const Services& services);

  /// Prepares the worker for a launch. Returns false if there is not enough memory.
  bool prepare(const WorkerNeeds& needs);

  WorkerState& state() noexcept { return state_; }
  const WorkerState& state() const noexcept { return state_; }
  const GuardedStack& stack() const noexcept { return stack_; }
  const Services& services() const noexcept { return services_; }
  /// True if a kernel on this worker may access all of [address, address + bytes): the worker's memory or an
  /// allocation.
  bool may_access(std::uint64_t address, std::uint64_t bytes) const;

  /// The context of the running launch, to which malloc() is charged, and its device. The caller of prepare()
  /// sets them.
  std::uint64_t owner = 0;
  std::uint32_t device = 0;
  const std::string* kernel = nullptr;  ///< name of the running kernel in the author's source
  const void* launch = nullptr;         ///< identifies the launch
  std::uint64_t heap_bytes = 0;         ///< the total for malloc() in kernels
  /// Blocks of the running chunk: the report of a fault names these if it knows nothing more exact.
  std::uint64_t chunk_first = 0;
  std::uint64_t chunk_count = 0;
  bool printed = false;
  // The thread that borrowed the worker, and the launch that it runs (null: none). Guarded by the scheduler's
  // mutex, which the thread holds when it returns the worker.
  pthread_t thread{};
  Command* command = nullptr;
  /// Launches that the thread has taken with `command`, and runs after it.
  std::vector<Command*> following;

  /// During its lifetime, ask_to_leave() reaches the run of the worker's thread.
  class Stay {
   public:
    Stay(Worker& worker, KernelRun& run) noexcept : worker_(worker) { worker.run_.store(&run); }
    ~Stay() {
      worker_.run_.store(nullptr);
      while (worker_.asking_.load() != 0) __builtin_ia32_pause();
    }
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

   private:
    Worker& worker_;
  };
  /// Requests that the thread that borrowed the worker leave its current run, if there is one. Must be called
  /// again until it has (request_stop). The caller must ensure that the thread has not returned the worker.
  void ask_to_leave() noexcept;
  /// True if the current run of the calling thread, which borrowed the worker, has been asked to end.
  bool is_asked_to_leave() const noexcept;

  /// Memory for a window of gathered updates, kPendingBytes; null if there is none.
  std::byte* pending_memory(std::uint32_t window) noexcept;

  std::vector<std::unique_ptr<ResidentBlock>> residents;  ///< blocks that run in turn (resident.cpp)

  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

 private:
  Worker(std::uint32_t index, const Services& services, GuardedStack stack);
  bool reserve_local(std::uint64_t bytes);

  WorkerState state_;
  Services services_;
  GuardedStack stack_;
  std::uint64_t local_committed_ = 0;
  AlignedMemory frames_;
  std::array<AlignedMemory, kPendingWindows> pending_memory_;
  std::atomic<KernelRun*> run_{nullptr};  ///< null: no run
  std::atomic<std::uint32_t> asking_{0};  ///< while not 0, `*run_` must not be destroyed
};

/// Shared memory that a block may have: 99 KiB opt-in, plus one for the system, as in compute capability 8.9.
inline constexpr std::uint64_t kSharedBytes = std::uint64_t{100} * 1024;
static_assert(kSharedBytes <= kCompactSharedBytes);

}  // namespace quern::cpu::engine
