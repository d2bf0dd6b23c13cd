// SPDX-License-Identifier: Apache-2.0
// Queues of jobs. The scheduler's mutex guards everything except the atomics; annotations cannot name it
// here.
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
    queued,   ///< after other commands, or its dependencies are not met
    ready,    ///< at the head of the queue; any thread may take it
    running,  ///< taken (a launch: by at least one)
  };
  Command() noexcept {}  // as that of LaunchJob
  Job job;
  Stream* stream = nullptr;
  std::uint64_t sequence = 0;
  std::vector<Dependency> dependencies;
  std::shared_ptr<const void> keep;  ///< released when the command is complete
  std::unique_ptr<Command> next;     ///< in CommandList
  State state = State::queued;
  std::uint32_t participants = 0;  ///< threads that run the launch

  LaunchJob* launch() const noexcept {
    const auto* launch_job = std::get_if<std::unique_ptr<LaunchJob>>(&job);
    return launch_job == nullptr ? nullptr : launch_job->get();
  }
};

/// Owns commands. Allocates no memory.
class CommandList {
 public:
  CommandList() = default;
  CommandList(CommandList&&) noexcept = default;
  CommandList& operator=(CommandList&&) noexcept = default;
  ~CommandList() {
    while (first_ != nullptr) first_ = std::move(first_->next);  // not recursively: the list may be long
  }
  bool empty() const noexcept { return first_ == nullptr; }
  void push(std::unique_ptr<Command> command) noexcept {
    if (first_ == nullptr) last_ = command.get();
    command->next = std::move(first_);
    first_ = std::move(command);
  }
  /// Puts all of `others` before these.
  void push(CommandList others) noexcept {
    if (others.empty()) return;
    if (first_ == nullptr) last_ = others.last_;
    others.last_->next = std::move(first_);
    first_ = std::move(others.first_);
  }
  /// The list must not be empty.
  std::unique_ptr<Command> pop() noexcept {
    std::unique_ptr<Command> command = std::move(first_);
    first_ = std::move(command->next);
    return command;
  }

 private:
  std::unique_ptr<Command> first_;
  Command* last_ = nullptr;  ///< valid if there is a first one
};

/// A queue of jobs that run one after another.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(Domain& domain, bool blocking, int priority = 0)
      : domain_(&domain), blocking_(blocking), priority_(priority) {}

  bool blocking() const noexcept { return blocking_; }
  int priority() const noexcept { return priority_.load(std::memory_order_relaxed); }
  /// Applies to commands that become ready from now on.
  void set_priority(int priority) noexcept { priority_.store(priority, std::memory_order_relaxed); }
  /// Unique in the process.
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
  std::atomic<int> priority_;  ///< of ready commands, those with a lower number are taken first
  bool retired_ = false;
  struct Queued {
    std::unique_ptr<Command> command;
    /// A launch without dependencies that one thread runs. Here, so that a thread which takes many finds it
    /// without reading commands that another thread's cache holds.
    bool in_a_row = false;
    /// Somebody waits for it in particular: it counts as complete before the next launch begins.
    bool is_awaited = false;
  };
  std::deque<Queued> queue_;
  std::uint64_t issued_ = 0;
  std::atomic<std::uint64_t> completed_{0};
  std::shared_ptr<Stream> blocked_on_;               ///< the stream for which the head waits
  std::vector<std::shared_ptr<Stream>> dependents_;  ///< streams whose head waits for this one
};

/// The streams of one context, ordered by CUDA's rules for the legacy default stream, and the fault that
/// ended the context.
class Domain {
 public:
  const std::shared_ptr<Stream>& legacy_stream() const noexcept { return legacy_; }
  FaultKind fault() const noexcept { return fault_.load(std::memory_order_acquire); }
  /// The report of the fault that ended the domain. It does not change.
  const FaultReport& fault_report() const noexcept { return fault_report_; }

 private:
  /// Records a fault. Only the first one is kept.
  void end(FaultKind kind, FaultReport report) {
    if (fault() != FaultKind::none) return;
    fault_report_ = std::move(report);
    fault_.store(kind, std::memory_order_release);
  }

  friend class StreamQueues;
  std::shared_ptr<Stream> legacy_;
  std::vector<std::shared_ptr<Stream>> streams_;
  std::int64_t excluded_ns_ = 0;   ///< Scheduler::exclude()
  std::int64_t last_end_ns_ = 0;   ///< the time at which the last busy stream of the domain became empty
  std::vector<Dependency> waits_;  ///< dependencies of the domain, for streams that are created later
  FaultReport fault_report_;
  std::atomic<FaultKind> fault_{FaultKind::none};
  bool closed_ = false;  ///< commands that are submitted from now on do not run
};

}  // namespace quern::cpu::engine
