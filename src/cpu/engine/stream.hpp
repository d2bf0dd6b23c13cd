// SPDX-License-Identifier: Apache-2.0
// Queues of jobs. The mutex of the scheduler guards all but the atomics; it cannot be named here.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "cpu/engine/fault.hpp"
#include "cpu/engine/fault_report.hpp"
#include "cpu/engine/jobs.hpp"

namespace quern::cpu::engine {

class Stream;
class Domain;

struct Dependency {
  std::shared_ptr<Stream> stream;
  std::uint64_t sequence = 0;
};

/// A job in its stream's queue.
struct Command {
  enum class State : std::uint8_t {
    queued,   ///< behind others, or its dependencies are not met
    ready,    ///< at the head; any thread may take it
    running,  ///< taken (a launch: by at least one)
  };
  Job job;
  Stream* stream = nullptr;
  std::uint64_t sequence = 0;
  std::vector<Dependency> dependencies;
  std::shared_ptr<const void> keep;  ///< let go of when the command is done
  State state = State::queued;
  std::uint32_t participants = 0;  ///< threads inside a launch

  LaunchJob* launch() const noexcept {
    const auto* launch_job = std::get_if<std::unique_ptr<LaunchJob>>(&job);
    return launch_job == nullptr ? nullptr : launch_job->get();
  }
};

/// Jobs that run one after another.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(Domain& domain, bool blocking, int priority = 0)
      : domain_(&domain), blocking_(blocking), priority_(priority) {}

  bool blocking() const noexcept { return blocking_; }
  int priority() const noexcept { return priority_.load(std::memory_order_relaxed); }
  /// For commands that become ready from now on.
  void set_priority(int priority) noexcept { priority_.store(priority, std::memory_order_relaxed); }
  /// Never reused in a process.
  std::uint64_t id() const noexcept { return id_; }

  /// Sequence numbers count from 1.
  std::uint64_t completed() const noexcept { return completed_.load(std::memory_order_acquire); }

 private:
  static std::uint64_t next_id() noexcept {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
  }

  friend class StreamQueues;
  Domain* domain_;  ///< valid while a command is queued or the stream is not retired
  const std::uint64_t id_ = next_id();
  const bool blocking_;        ///< ordered against the domain's legacy stream
  std::atomic<int> priority_;  ///< ready commands of a lower number are taken first
  bool retired_ = false;
  std::deque<std::unique_ptr<Command>> queue_;
  std::uint64_t issued_ = 0;
  std::atomic<std::uint64_t> completed_{0};
  std::shared_ptr<Stream> blocked_on_;               ///< the head waits for this stream
  std::vector<std::shared_ptr<Stream>> dependents_;  ///< streams whose head waits for this one
};

/// The streams of one context, ordered by CUDA's rules for the legacy default stream, and the fault that
/// ended it.
class Domain {
 public:
  const std::shared_ptr<Stream>& legacy_stream() const noexcept { return legacy_; }
  FaultKind fault() const noexcept { return fault_.load(std::memory_order_acquire); }
  /// After a fault: its report; does not change any more.
  const FaultReport& fault_report() const noexcept { return fault_report_; }

 private:
  /// The first fault counts.
  void end(FaultKind kind, FaultReport report) {
    if (fault() != FaultKind::none) return;
    fault_report_ = std::move(report);
    fault_.store(kind, std::memory_order_release);
  }

  friend class StreamQueues;
  std::shared_ptr<Stream> legacy_;
  std::vector<std::shared_ptr<Stream>> streams_;
  std::int64_t excluded_ns_ = 0;   ///< Scheduler::exclude()
  std::int64_t last_end_ns_ = 0;   ///< when a stream of it last became empty
  std::vector<Dependency> waits_;  ///< for streams that are made later: what the domain waits for
  FaultReport fault_report_;
  std::atomic<FaultKind> fault_{FaultKind::none};
  bool closed_ = false;  ///< nothing that is submitted from now on runs
};

}  // namespace quern::cpu::engine
