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
#include "serve/fleet.hpp"
#include "serve/metrics.hpp"
#include "serve/nursery_process.hpp"
#include "serve/precompiled_queue.hpp"
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

enum class Tier : std::uint8_t { none, shared, memory, disk, store };
std::string_view name(Tier tier) noexcept;

/// The toolkit that results are made with, and what the sandbox of its workers is.
struct PoolFacts {
  remote::ToolkitIdentity toolkit;
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

  /// Results are shared with other servers; called before the first compile(). May be null.
  void share(std::unique_ptr<Fleet> fleet) { fleet_ = std::move(fleet); }
  /// Null: none.
  Fleet* fleet() const noexcept { return fleet_.get(); }

  /// Null until the first worker has reported.
  std::shared_ptr<const PoolFacts> facts() const QUERN_EXCLUDES(mutex_);

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
    std::string request_id;  // of the request that began it, as the next two
    std::string source_name;
    std::string_view language;
    std::size_t waiting = 0;  // guarded by the pool's mutex, as the rest is
    bool running = false;
    bool abandoned = false;
    ResultPointer result;
    Tier tier = Tier::none;       // that the result came from
    Fleet::TicketPointer ticket;  // null: no store
    base::ConditionVariable done;
  };
  using FlightPointer = std::shared_ptr<Flight>;

  /// Takes the result from the disk or the store, or has it made, here or by another server.
  void begin(const FlightPointer& flight, const Request& request) QUERN_EXCLUDES(mutex_);
  /// False: the bytes are no result.
  bool take(const FlightPointer& flight, std::string_view bytes, Tier tier) QUERN_EXCLUDES(mutex_);
  void take_from_store(const FlightPointer& flight, std::string_view bytes) QUERN_EXCLUDES(mutex_);
  void enqueue(const FlightPointer& flight) QUERN_EXCLUDES(mutex_);
  /// The end of a flight that was to be compiled: other servers may know.
  void conclude(const FlightPointer& flight, const ResultPointer& result, bool trusted)
      QUERN_EXCLUDES(mutex_);
  /// Clients may fetch the result's machine code from now on.
  void offer(const Result& result);
  Answer wait(const FlightPointer& flight, const Request& request, Tier tier) QUERN_EXCLUDES(mutex_);
  void leave(const FlightPointer& flight) QUERN_REQUIRES(mutex_);
  void run_slot() QUERN_EXCLUDES(mutex_);
  /// The flight to work on; null if the server stops, or if workers are to be renewed first.
  FlightPointer next(std::uint64_t generation) QUERN_EXCLUDES(mutex_);
  std::uint64_t current_generation() const QUERN_EXCLUDES(mutex_);
  bool is_stopping() const QUERN_EXCLUDES(mutex_);
  bool is_wanted(const Flight& flight) QUERN_EXCLUDES(mutex_);
  void publish(const FlightPointer& flight, ResultPointer result, bool keep) QUERN_EXCLUDES(mutex_);
  /// A worker, and the state of things in which it was forked.
  struct Slot {
    std::optional<WorkerProcess> worker;
    std::shared_ptr<NurseryProcess> nursery;
    std::uint64_t header_count = 0;
  };
  void end_worker(Slot& slot);
  /// The slot has a worker of the current nursery, with all its precompiled headers, for at least one more
  /// compile. False: none could be started; an older one may still be there.
  bool renew_worker(Slot& slot) QUERN_EXCLUDES(mutex_);
  /// The current nursery; a new one after reload(), or if the toolkit has changed. Null: it cannot be
  /// started.
  std::shared_ptr<NurseryProcess> nursery() QUERN_EXCLUDES(mutex_, nursing_);
  bool start_nursery(std::uint64_t generation) QUERN_REQUIRES(nursing_) QUERN_EXCLUDES(mutex_);
  /// Looks at the files of the toolkit every two seconds at most.
  bool has_toolkit_changed() QUERN_REQUIRES(nursing_);
  void drop_nursery(const std::shared_ptr<NurseryProcess>& nursery) QUERN_EXCLUDES(nursing_);
  /// The sandbox that the first worker of a nursery reports is that of all.
  void note_worker(const NurseryProcess& nursery, const WorkerHello& hello) QUERN_EXCLUDES(mutex_);
  void run_precompiling() QUERN_EXCLUDES(mutex_);
  void precompile(const abi::KernelRequest& lines) QUERN_EXCLUDES(mutex_);
  /// False: the worker must be replaced.
  bool work(Slot& slot, const FlightPointer& flight);
  void note_speed(const Frame& answer, const Flight& flight, double seconds);
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
  PrecompiledQueue precompiled_;
  base::ConditionVariable precompiled_there_;  // with mutex_
  base::Mutex nursing_;                        // before mutex_
  std::shared_ptr<NurseryProcess> nursery_ QUERN_GUARDED_BY(nursing_);
  std::uint64_t nursery_generation_ QUERN_GUARDED_BY(nursing_) = 0;
  std::int64_t looked_ns_ QUERN_GUARDED_BY(nursing_) = 0;
  std::thread precompiling_;
  std::unique_ptr<Fleet> fleet_;  // null: no store
  std::vector<std::thread> slots_;
};

/// A result that is an error of the protocol's.
ResultPointer error_result(int status, const std::string& code, const std::string& message,
                           const std::string& hint = {});

}  // namespace quern::serve
