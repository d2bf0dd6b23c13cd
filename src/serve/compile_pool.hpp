// SPDX-License-Identifier: Apache-2.0
// From a request to its result. Each part of the work has a class:
//
//   WorkerSource   nurseries, workers, precompiled headers
//   CompileRunner  one compile in a worker
//   CompilePool    stored results, one compile for equal requests, a bounded queue
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
#include "serve/compile_runner.hpp"
#include "serve/fleet.hpp"
#include "serve/metrics.hpp"
#include "serve/result.hpp"
#include "serve/settings.hpp"
#include "serve/worker_source.hpp"

namespace quern::serve {

/// Thread-safe.
class CompilePool {
 public:
  CompilePool(const Settings& settings, Metrics& metrics, ArtifactStore& artifacts);
  /// Ends the workers; no thread may be inside compile().
  ~CompilePool();
  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;

  /// Shares results with other servers. Called before the first compile(); `fleet` may be null.
  void share(std::unique_ptr<Fleet> fleet) { fleet_ = std::move(fleet); }
  /// May be null.
  Fleet* fleet() const noexcept { return fleet_.get(); }

  /// Null until the first worker has reported.
  std::shared_ptr<const PoolFacts> facts() const { return workers_.facts(); }

  struct Request {
    base::Digest key;
    std::shared_ptr<const PoolFacts> facts;  ///< that `key` was made with
    std::function<std::string()> text;       ///< the worker's request; called if there is no result yet
    std::function<bool()> gone;              ///< the client does not wait any more
    std::string request_id;
    std::string source_name;  ///< for the list of slow compiles, as `language`
    std::string_view language;
  };
  struct Answer {
    ResultPointer result;  ///< null if the client has gone
    Tier tier = Tier::none;
  };
  Answer compile(const Request& request) QUERN_EXCLUDES(mutex_);

  /// Replaces the workers before their next compile, and reads the toolkit again.
  void reload() QUERN_EXCLUDES(mutex_);
  std::uint64_t cache_bytes() const { return results_.bytes(); }

 private:
  /// One compile and the requests that wait for it.
  struct Flight {
    CompileJob job;
    std::size_t waiting = 0;  // guarded by the pool's mutex, as are the members below
    bool running = false;
    bool abandoned = false;
    ResultPointer result;
    Tier tier = Tier::none;       // of the result
    Fleet::TicketPointer ticket;  // may be null
    base::ConditionVariable done;
  };
  using FlightPointer = std::shared_ptr<Flight>;

  /// Takes the result from the disk or the store, or has it made, here or by another server.
  void begin(const FlightPointer& flight, const Request& request) QUERN_EXCLUDES(mutex_);
  /// Returns false if the bytes are not a result.
  bool take(const FlightPointer& flight, std::string_view bytes, Tier tier) QUERN_EXCLUDES(mutex_);
  void take_from_store(const FlightPointer& flight, std::string_view bytes) QUERN_EXCLUDES(mutex_);
  void enqueue(const FlightPointer& flight) QUERN_EXCLUDES(mutex_);
  /// Ends a flight that was to be compiled, and tells other servers.
  void conclude(const FlightPointer& flight, const ResultPointer& result, bool trusted)
      QUERN_EXCLUDES(mutex_);
  Answer wait(const FlightPointer& flight, const Request& request, Tier tier) QUERN_EXCLUDES(mutex_);
  void leave(const FlightPointer& flight) QUERN_REQUIRES(mutex_);
  void run_slot() QUERN_EXCLUDES(mutex_);
  /// The flight to compile; null if the server stops, or if workers must be renewed first.
  FlightPointer next(std::uint64_t generation) QUERN_EXCLUDES(mutex_);
  bool is_stopping() const QUERN_EXCLUDES(mutex_);
  bool is_wanted(const Flight& flight) QUERN_EXCLUDES(mutex_);
  void publish(const FlightPointer& flight, ResultPointer result, bool keep) QUERN_EXCLUDES(mutex_);

  const Settings& settings_;
  Metrics& metrics_;
  ArtifactStore& artifacts_;
  cache::DiskStore* const disk_;  // may be null
  BoundedStore<Result> results_;
  mutable base::Mutex mutex_;
  base::ConditionVariable work_there_;
  bool stopping_ QUERN_GUARDED_BY(mutex_) = false;
  std::unordered_map<base::Digest, FlightPointer> flights_ QUERN_GUARDED_BY(mutex_);
  std::deque<FlightPointer> queue_ QUERN_GUARDED_BY(mutex_);
  WorkerSource workers_;
  CompileRunner runner_;
  std::unique_ptr<Fleet> fleet_;  // may be null
  std::vector<std::thread> slots_;
};

}  // namespace quern::serve
