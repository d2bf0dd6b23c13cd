// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/thread_annotations.hpp"
#include "cache/disk_store.hpp"
#include "serve/metrics.hpp"
#include "serve/nursery_process.hpp"
#include "serve/precompiled_queue.hpp"
#include "serve/settings.hpp"
#include "serve/worker_process.hpp"

namespace quern::serve {

/// The toolkit that results are made with, and the sandbox of its workers.
struct PoolFacts {
  remote::ToolkitIdentity toolkit;
  std::string problem;  ///< why nothing can be compiled; empty if it can
  SandboxState sandbox;
};

/// A worker, and the nursery and the number of its precompiled headers when the worker was forked.
struct WorkerSlot {
  std::optional<WorkerProcess> worker;
  std::shared_ptr<NurseryProcess> nursery;
  std::uint64_t header_count = 0;
};

/// Workers of the current nursery. It starts a new nursery after reload() and if the toolkit has changed, and
/// has precompiled headers made in a thread of its own. Thread-safe.
class WorkerSource {
 public:
  WorkerSource(const Settings& settings, Metrics& metrics, cache::DiskStore* disk);
  /// Ends the thread; stop() has been called.
  ~WorkerSource();
  WorkerSource(const WorkerSource&) = delete;
  WorkerSource& operator=(const WorkerSource&) = delete;

  /// Null until the first worker has reported.
  std::shared_ptr<const PoolFacts> facts() const QUERN_EXCLUDES(mutex_);
  /// Replaces the workers before their next compile, and reads the toolkit again.
  void reload() noexcept { ++generation_; }
  /// The number of calls of reload().
  std::uint64_t generation() const noexcept { return generation_; }
  void stop() QUERN_EXCLUDES(mutex_);

  /// The slot has a worker of the current nursery, with all its precompiled headers, for at least one more
  /// compile. False if none could be started; an older one may still be there.
  bool renew_worker(WorkerSlot& slot) QUERN_EXCLUDES(mutex_, nursing_);
  void end_worker(WorkerSlot& slot);
  /// `request` was compiled in `seconds`, without a precompiled header that would have served it.
  void note_compile(const abi::KernelRequest& request, double seconds) QUERN_EXCLUDES(mutex_);

 private:
  /// The current nursery; null if it cannot be started.
  std::shared_ptr<NurseryProcess> nursery() QUERN_EXCLUDES(mutex_, nursing_);
  bool start_nursery(std::uint64_t generation) QUERN_REQUIRES(nursing_) QUERN_EXCLUDES(mutex_);
  /// Looks at the files of the toolkit every two seconds at most.
  bool has_toolkit_changed() QUERN_REQUIRES(nursing_);
  void drop_nursery(const std::shared_ptr<NurseryProcess>& nursery) QUERN_EXCLUDES(nursing_);
  /// Takes the sandbox that a nursery's first worker reports as that of all its workers.
  void note_worker(const NurseryProcess& nursery, const WorkerHello& hello) QUERN_EXCLUDES(mutex_);
  void run_precompiling() QUERN_EXCLUDES(mutex_);
  void precompile(const abi::KernelRequest& lines) QUERN_EXCLUDES(mutex_, nursing_);
  bool is_stopping() const QUERN_EXCLUDES(mutex_);

  const Settings& settings_;
  Metrics& metrics_;
  cache::DiskStore* const disk_;  // may be null
  mutable base::Mutex mutex_;
  bool stopping_ QUERN_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const PoolFacts> facts_ QUERN_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> generation_{0};
  PrecompiledQueue precompiled_;
  base::ConditionVariable precompiled_there_;  // with mutex_
  base::Mutex nursing_;                        // before mutex_
  std::shared_ptr<NurseryProcess> nursery_ QUERN_GUARDED_BY(nursing_);
  std::uint64_t nursery_generation_ QUERN_GUARDED_BY(nursing_) = 0;
  std::int64_t looked_ns_ QUERN_GUARDED_BY(nursing_) = 0;
  std::thread precompiling_;
};

}  // namespace quern::serve
