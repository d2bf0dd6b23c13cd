// SPDX-License-Identifier: Apache-2.0
// Streams, the threads that serve them, and the threads that wait for them and lend a hand.
//
// Three groups of threads, each started when first needed: compute threads run launches, one copies and
// fills, one runs host functions; so neither a long kernel nor a slow host function holds up a copy on
// another stream. A thread that waits for a stream runs what that stream has ready itself: a small launch
// followed by a synchronisation needs no other thread.
//
// A submitted job must start without anyone waiting for it, but waking a thread costs more than a small
// launch. So of the idle threads of a group one *polls* for a while (sleeps briefly and looks) and only the
// others are *parked*; a small job wakes nobody while one polls.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/engine/fault.hpp"
#include "cpu/engine/jobs.hpp"
#include "cpu/engine/stream.hpp"
#include "cpu/engine/watchdog.hpp"
#include "cpu/engine/worker.hpp"

namespace quern::cpu::engine {

/// Lives until the process ends: its threads are never joined. Thread-safe. Takes no other lock while it
/// holds its own.
class Scheduler {
 public:
  /// No launch runs for longer than its own limit or, without one, `limit`; 0: for as long as it likes.
  explicit Scheduler(std::vector<std::unique_ptr<Worker>> workers, std::chrono::milliseconds limit = {});
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  std::uint32_t worker_count() const noexcept { return static_cast<std::uint32_t>(workers_.size()); }

  /// To be synchronized with before it is let go: who finished a stream's last command may still look at the
  /// stream when those who waited for that stream or for an event alone go on.
  std::shared_ptr<Domain> make_domain();
  std::shared_ptr<Stream> make_stream(Domain& domain, bool blocking, int priority = 0) QUERN_EXCLUDES(mutex_);
  /// The stream is no longer used from outside; its queued work still runs.
  void retire(Stream& stream) QUERN_EXCLUDES(mutex_);

  /// Drops everything that is submitted to the domain's streams from now on, as after a fault.
  void close(Domain& domain) QUERN_EXCLUDES(mutex_);

  void submit(const std::shared_ptr<Stream>& stream, Job job) QUERN_EXCLUDES(mutex_);
  std::shared_ptr<EventPoint> record(const std::shared_ptr<Stream>& stream) QUERN_EXCLUDES(mutex_);
  /// Commands submitted to `stream` from now on run after `point`.
  void wait_event(const std::shared_ptr<Stream>& stream, const EventPoint& point) QUERN_EXCLUDES(mutex_);

  /// The host made machine code since `since_ns` and submits what needs it next. If the domain has nothing to
  /// do, the time for which it had nothing to do since then does not count between its events
  /// (docs/decisions/0036-event-times-without-compilation.md).
  void exclude(Domain& domain, std::int64_t since_ns) QUERN_EXCLUDES(mutex_);

  /// A point after all that the domain's streams have now.
  std::shared_ptr<EventPoint> record(Domain& domain) QUERN_EXCLUDES(mutex_);
  /// Commands submitted to any stream of the domain from now on run after `point`.
  void wait_event(Domain& domain, const EventPoint& point) QUERN_EXCLUDES(mutex_);

  /// True if all that was submitted has run.
  bool idle(const Stream& stream) QUERN_EXCLUDES(mutex_);
  /// True if a job submitted now would have nothing to wait for.
  bool runs_at_once(const Stream& stream) QUERN_EXCLUDES(mutex_);
  /// Returns when all that was submitted before the call has run or was dropped after a fault. A fault of one
  /// launch ends all launches of its domain, wherever they are.
  void synchronize(const std::shared_ptr<Stream>& stream) QUERN_EXCLUDES(mutex_);
  void synchronize(const Domain& domain) QUERN_EXCLUDES(mutex_);
  void synchronize(const EventPoint& point) QUERN_EXCLUDES(mutex_);

  /// Ends the launches that the stream has now, running or queued, and returns when none of them runs. All
  /// else that it has queued still runs, in its order. The context lives on.
  void cancel(const std::shared_ptr<Stream>& stream) QUERN_EXCLUDES(mutex_);
  /// The same for all streams of the domain.
  void cancel(const Domain& domain) QUERN_EXCLUDES(mutex_);

  /// For exit(): launches have half a second to end, then they and all that is queued behind them end as
  /// after a fault. Other threads that wait for them hear of it a second later, when the process has ended as
  /// a rule.
  void end_at_exit() QUERN_EXCLUDES(mutex_);

 private:
  enum class GroupId : std::uint8_t { compute, copy, host };
  static constexpr std::size_t kGroupCount = 3;
  /// The threads for one kind of work.
  struct Group {
    std::vector<Command*> ready;  ///< by priority, those of one by their age
    std::uint32_t max_threads = 1;
    std::uint32_t threads = 0;   ///< started
    std::uint32_t parked = 0;    ///< waiting in `wake`, less those notified
    std::uint32_t notified = 0;  ///< that shall leave `wake`
    bool polling = false;
    std::uint64_t activity = 0;  ///< counts jobs that became ready
    base::ConditionVariable wake;
  };
  /// A piece of work that a thread has taken.
  struct Task {
    Command* command = nullptr;
    Worker* worker = nullptr;  ///< for a launch
    Fault fault;
  };
  /// Work to be done after the mutex is released.
  struct DeferredActions {
    std::array<std::uint32_t, kGroupCount> notify{};
    std::array<std::uint32_t, kGroupCount> start{};
    bool progress = false;
    std::vector<std::unique_ptr<Command>> finished;
    std::vector<std::shared_ptr<Stream>> dropped;

    bool empty() const noexcept {
      constexpr std::array<std::uint32_t, kGroupCount> none{};
      return !progress && notify == none && start == none && finished.empty() && dropped.empty();
    }
  };
  /// Holds the mutex; carries out the deferred actions whenever it releases it.
  class QUERN_SCOPED_CAPABILITY Section;

  static GroupId group_of(const Command& command) noexcept;
  /// A launch for which waking a thread pays at once.
  static bool is_big(const LaunchJob& launch) noexcept;
  Group& group(GroupId id) QUERN_REQUIRES(mutex_) { return groups_[static_cast<std::size_t>(id)]; }

  // Queues (scheduler.cpp)
  void enqueue(const std::shared_ptr<Stream>& stream, std::unique_ptr<Command> command)
      QUERN_REQUIRES(mutex_);
  void advance(const std::shared_ptr<Stream>& stream) QUERN_REQUIRES(mutex_);
  bool start_head(const std::shared_ptr<Stream>& stream, std::vector<std::shared_ptr<Stream>>& unblocked)
      QUERN_REQUIRES(mutex_);
  void pop_head(Stream& stream, std::vector<std::shared_ptr<Stream>>& unblocked) QUERN_REQUIRES(mutex_);
  void drop_from_domain(Stream& stream) QUERN_REQUIRES(mutex_);
  void make_ready(Command& command) QUERN_REQUIRES(mutex_);
  void wait_until(const std::shared_ptr<Stream>& stream, std::uint64_t sequence) QUERN_EXCLUDES(mutex_);

  // Taking and doing work (pool.cpp)
  void end_domain(Domain& domain, FaultKind kind, FaultReport report) QUERN_REQUIRES(mutex_);
  void stop_head(const std::shared_ptr<Stream>& stream) QUERN_REQUIRES(mutex_);
  void ask_to_leave(const Domain& domain) QUERN_REQUIRES(mutex_);
  bool any_launch_runs() const QUERN_REQUIRES(mutex_);
  std::optional<Task> try_take(Command& command) QUERN_REQUIRES(mutex_);
  std::optional<Task> take_from(GroupId id) QUERN_REQUIRES(mutex_);
  std::optional<Task> take_for(const Stream& stream) QUERN_REQUIRES(mutex_);
  void execute(Task& task) QUERN_EXCLUDES(mutex_);
  void finish(Task& task) QUERN_REQUIRES(mutex_);
  bool can_take(const Command& command) const QUERN_REQUIRES(mutex_);
  bool has_work(GroupId id) QUERN_REQUIRES(mutex_);
  void call_for_help(GroupId id, bool urgent) QUERN_REQUIRES(mutex_);
  void thread_main(GroupId id);
  Task wait_for_task(GroupId id);
  void poll(GroupId id, Section& section) QUERN_REQUIRES(mutex_);
  void park(GroupId id, Section& section) QUERN_REQUIRES(mutex_);
  void start_thread(GroupId id) QUERN_EXCLUDES(mutex_);
  void carry_out(DeferredActions deferred) QUERN_EXCLUDES(mutex_);

  const std::vector<std::unique_ptr<Worker>> workers_;
  const std::chrono::milliseconds limit_;  ///< of launches without one of their own; 0: none
  Watchdog watchdog_;
  base::Mutex mutex_;
  std::array<Group, kGroupCount> groups_ QUERN_GUARDED_BY(mutex_);
  std::vector<Worker*> free_workers_ QUERN_GUARDED_BY(mutex_);
  const Command* cooperative_ QUERN_GUARDED_BY(mutex_) = nullptr;  ///< the one cooperative launch that runs
  std::uint64_t progress_count_ QUERN_GUARDED_BY(mutex_) = 0;
  std::uint32_t waiting_callers_ QUERN_GUARDED_BY(mutex_) = 0;
  base::ConditionVariable progress_;
  DeferredActions deferred_ QUERN_GUARDED_BY(mutex_);
  std::atomic<pthread_t> exiting_thread_{};  ///< 0: the process is not exiting
};

/// Runs the launch's next chunks on `worker` until none is left or a fault ends it.
Fault run_launch(LaunchJob& job, Worker& worker, std::uint32_t worker_count, Watchdog& watchdog);

}  // namespace quern::cpu::engine
