// SPDX-License-Identifier: Apache-2.0
// One compile in a worker.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "serve/result.hpp"
#include "serve/worker_source.hpp"

namespace quern::serve {

/// A request for a worker. The last three members describe the client's request that began it, for the log
/// and the list of slow compiles.
struct CompileJob {
  base::Digest key;
  std::shared_ptr<const PoolFacts> facts;  ///< that `key` was made with
  std::string text;                        ///< the worker's request
  std::string request_id;
  std::string source_name;
  std::string_view language;
};

struct CompileOutcome {
  ResultPointer result;
  bool trusted = false;       ///< the result may be cached
  bool worker_usable = true;  ///< false if the worker must be replaced
  bool renew_all = false;     ///< all workers should be replaced
};

/// Compiles in a worker, and turns the worker's answer or its end into a result. Thread-safe.
class CompileRunner {
 public:
  CompileRunner(const Settings& settings, Metrics& metrics, ArtifactStore& artifacts, WorkerSource& workers)
      : settings_(settings), metrics_(metrics), artifacts_(artifacts), workers_(workers) {}

  /// Ends the compile if `is_wanted` returns false, or at the time limit. The slot has a worker.
  CompileOutcome run(WorkerSlot& slot, const CompileJob& job, const std::function<bool()>& is_wanted);

 private:
  void note_speed(const Frame& answer, const CompileJob& job, double seconds);
  CompileOutcome finished(const Frame& frame, const CompileJob& job);
  ResultPointer read_result(const Frame& frame, const CompileJob& job);
  CompileOutcome failed(WorkerProcess& worker, Receive got, const CompileJob& job, bool late);

  const Settings& settings_;
  Metrics& metrics_;
  ArtifactStore& artifacts_;
  WorkerSource& workers_;
};

}  // namespace quern::serve
