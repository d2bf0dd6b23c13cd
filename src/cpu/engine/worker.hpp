// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "cpu/engine/abi.hpp"
#include "cpu/engine/fault.hpp"
#include "cpu/engine/stack_switch.hpp"
#include "cpu/engine/window.hpp"

namespace quern::cpu::engine {

class Memory;
class Output;

/// What device helpers (printf, malloc) reach of the engine.
struct Services {
  const Window* window = nullptr;
  Memory* memory = nullptr;
  Output* output = nullptr;
};

/// What a launch needs of every worker that runs its blocks.
struct WorkerNeeds {
  std::uint32_t warps = 1;
  std::uint64_t local_bytes = 0;  ///< of a lane
  std::uint64_t frame_bytes = 0;  ///< of a warp
};

/// What one thread needs to run blocks: shared and local memory, warp frames, a stack. A thread borrows a
/// worker while it runs chunks of a launch. Thread-compatible.
class Worker {
 public:
  static Expected<std::unique_ptr<Worker>> make(std::uint32_t index, const Services& services);

  /// Gets the worker ready for a launch. False: the memory could not be had.
  bool prepare(const WorkerNeeds& needs);

  WorkerState& state() noexcept { return state_; }
  const GuardedStack& stack() const noexcept { return stack_; }
  const Services& services() const noexcept { return services_; }
  /// True if a kernel on this worker may touch all of [address, address + bytes): its own memory or an
  /// allocation.
  bool may_access(std::uint64_t address, std::uint64_t bytes) const;

  /// For whom the running launch works: the context that pays for malloc(), and its device. Set with
  /// prepare().
  std::uint64_t owner = 0;
  std::uint32_t device = 0;
  std::uint64_t heap_bytes = 0;  ///< what malloc() in kernels may have in all
  /// Blocks of the running chunk: where nothing better is known, the report of a fault names these.
  std::uint64_t chunk_first = 0;
  std::uint64_t chunk_count = 0;
  bool printed = false;

 private:
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  Worker(std::uint32_t index, const Services& services, GuardedStack stack);

  WorkerState state_;
  Services services_;
  GuardedStack stack_;
  std::uint64_t local_committed_ = 0;
  std::uint64_t frames_bytes_ = 0;
  std::unique_ptr<std::byte, Free> frames_;
};

/// Shared memory a block may have: 99 KiB opt-in, and one for the system, as compute capability 8.9 has it.
inline constexpr std::uint64_t kSharedBytes = std::uint64_t{100} * 1024;

}  // namespace quern::cpu::engine
