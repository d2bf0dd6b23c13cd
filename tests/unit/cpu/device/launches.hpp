// SPDX-License-Identifier: Apache-2.0
// Launches whose kernels are functions of the tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cpu/engine/jobs.hpp"

namespace quern::cpu::test {

/// Records the order in which host functions ran.
struct Log {
  std::mutex mutex;
  std::vector<int> entries;
  struct Entry {
    Log* log;
    int number;
  };
  std::vector<std::unique_ptr<Entry>> owned;
  engine::HostJob job(int number) {
    owned.push_back(std::make_unique<Entry>(Entry{this, number}));
    return engine::HostJob{[](void* user) {
                             auto* entry = static_cast<Entry*>(user);
                             const std::lock_guard lock(entry->log->mutex);
                             entry->log->entries.push_back(entry->number);
                           },
                           owned.back().get()};
  }
};

/// Occupies the only thread for host functions until it is released.
struct Gate {
  std::atomic<bool> reached{false}, open{false};
  engine::HostJob job() {
    return {[](void* user) {
              auto* gate = static_cast<Gate*>(user);
              gate->reached = true;
              while (!gate->open) std::this_thread::yield();
            },
            this};
  }
  void wait_until_reached() const {
    while (!reached) std::this_thread::yield();
  }
};

/// The kernel reads `parameter` as its parameters.
inline std::unique_ptr<engine::LaunchJob> launch_of(engine::RunBlocks run, std::uint64_t blocks,
                                                    const void* parameter) {
  auto job = std::make_unique<engine::LaunchJob>();
  job->own.run = run;
  job->own.block_count = blocks;
  job->own.state.params = static_cast<const std::byte*>(parameter);
  job->own.state.grid[0] = static_cast<std::uint32_t>(blocks);
  return job;
}

/// The object whose address is the kernel's parameters.
template <class T>
T& parameter_of(const engine::LaunchState* launch) {
  return *const_cast<T*>(reinterpret_cast<const T*>(launch->params));
}

/// Counts how often each block ran.
struct Counts {
  explicit Counts(std::size_t blocks) : runs(blocks) {}
  std::vector<std::atomic<std::uint32_t>> runs;
  static void run(const engine::LaunchState* launch, engine::WorkerState*, std::uint64_t first,
                  std::uint64_t count) {
    auto& counts = parameter_of<Counts>(launch);
    for (std::uint64_t block = first; block < first + count; ++block) counts.runs[block].fetch_add(1);
  }
};

/// A launch of two blocks that never end; `begun` counts the running ones.
std::unique_ptr<engine::LaunchJob> endless(std::atomic<int>& begun, bool waits);

inline void wait_for(const std::atomic<int>& count, int value) {
  while (count.load() < value) std::this_thread::yield();
}

}  // namespace quern::cpu::test
