// SPDX-License-Identifier: Apache-2.0
// From a request to its result: stored results, one compile for equal requests, a bounded queue, and the
// workers.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/digest.hpp"
#include "base/thread_annotations.hpp"
#include "cache/disk_store.hpp"
#include "serve/bounded_store.hpp"
#include "serve/metrics.hpp"
#include "serve/settings.hpp"
#include "serve/worker_process.hpp"

namespace quern::serve {

/// The answer to a compile request: an HTTP status and the JSON body.
struct Result {
  int status = 200;
  std::string body;
  std::shared_ptr<const std::string> machine_code;  ///< that the body names by its digest; null: none
};
using ResultPointer = std::shared_ptr<const Result>;
using ArtifactStore = BoundedStore<std::string>;

enum class Tier : std::uint8_t { none, shared, memory, disk };
std::string_view name(Tier tier) noexcept;

/// The toolkit that results are made with, and what the sandbox of its workers is.
struct PoolFacts {
  remote::ToolkitIdentity toolkit;
  std::string stamp;    ///< nvrtc_stamp()
  std::string problem;  ///< why nothing can be compiled; empty: it can
  SandboxState sandbox;
};

class CompilePool {
 public:
  CompilePool(const Settings& settings, Metrics& metrics, ArtifactStore& artifacts);
  /// Ends the workers; nobody may be inside compile().
  ~CompilePool();
  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;

  /// Null until the first worker has reported.
  std::shared_ptr<const PoolFacts> facts() const QUERN_EXCLUDES(mutex_);

  struct Request {
    base::Digest key;
    std::shared_ptr<const PoolFacts> facts;  ///< that `key` was made with
    std::function<std::string()> text;       ///< the worker's request; called if there is no result yet
    std::function<bool()> gone;              ///< the client does not wait any more
    std::string request_id;
  };
  struct Answer {
    ResultPointer result;  ///< null: the client has gone
    Tier tier = Tier::none;
  };
  Answer compile(const Request& request) QUERN_EXCLUDES(mutex_);

  /// From now on workers start anew before they compile, and the toolkit is read again.
  void reload() QUERN_EXCLUDES(mutex_);
  std::uint64_t cache_bytes() const { return results_.bytes(); }

 private:
  /// One compile and those who wait for it.
  struct Flight {
    base::Digest key;
    std::shared_ptr<const PoolFacts> facts;
    std::string text;
    std::string request_id;   // of the request that began it
    std::size_t waiting = 0;  // guarded by the pool's mutex, as the rest is
    bool running = false;
    bool abandoned = false;
    ResultPointer result;
    base::ConditionVariable done;
  };
  using FlightPointer = std::shared_ptr<Flight>;

  /// Takes the result from the disk, or has it made.
  void begin(const FlightPointer& flight, const Request& request, Tier& tier) QUERN_EXCLUDES(mutex_);
  /// Clients may fetch the result's machine code from now on.
  void offer(const Result& result);
  Answer wait(const FlightPointer& flight, const Request& request, Tier tier) QUERN_EXCLUDES(mutex_);
  void leave(const FlightPointer& flight) QUERN_REQUIRES(mutex_);
  void run_slot() QUERN_EXCLUDES(mutex_);
  FlightPointer next() QUERN_EXCLUDES(mutex_);
  bool is_wanted(const Flight& flight) QUERN_EXCLUDES(mutex_);
  void publish(const FlightPointer& flight, ResultPointer result, bool keep) QUERN_EXCLUDES(mutex_);
  std::optional<WorkerProcess> start_worker() QUERN_EXCLUDES(mutex_);
  void note_worker(const WorkerProcess& worker) QUERN_EXCLUDES(mutex_);
  /// False: the worker must be replaced.
  bool work(WorkerProcess& worker, const FlightPointer& flight);
  ResultPointer finished(const Frame& frame, const Flight& flight);
  ResultPointer failed(WorkerProcess& worker, Receive got, const Flight& flight, bool late);

  const Settings& settings_;
  Metrics& metrics_;
  ArtifactStore& artifacts_;
  cache::DiskStore* const disk_;  // null: none
  BoundedStore<Result> results_;
  mutable base::Mutex mutex_;
  base::ConditionVariable work_there_;
  bool stopping_ QUERN_GUARDED_BY(mutex_) = false;
  std::uint64_t generation_ QUERN_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<const PoolFacts> facts_ QUERN_GUARDED_BY(mutex_);
  std::unordered_map<base::Digest, FlightPointer> flights_ QUERN_GUARDED_BY(mutex_);
  std::deque<FlightPointer> queue_ QUERN_GUARDED_BY(mutex_);
  base::Mutex identifying_;
  std::vector<std::thread> slots_;
};

/// A result that is an error of the protocol's.
ResultPointer error_result(int status, const std::string& code, const std::string& message,
                           const std::string& hint = {});

}  // namespace quern::serve
