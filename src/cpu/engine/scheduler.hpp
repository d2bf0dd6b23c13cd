// SPDX-License-Identifier: Apache-2.0
// Streams, the threads that serve them, and the callers that wait for them.
//
// There are four groups of threads; each group is started when first needed. The compute threads run
// launches, one thread copies and fills, one runs host functions, and one checks the values and the points of
// other processes that streams wait for. So neither a long kernel nor a slow host function delays a copy on
// another stream. A thread that waits for a stream runs the stream's ready command itself: a small launch
// followed by a synchronisation needs no other thread.
//
// If a thread of a group cannot be started (RLIMIT_NPROC, a limit of the control group) and the others are
// busy, the threads of other groups do its work, and so do callers that wait, or that ask whether work is
// done: host functions, too, then run on such a thread. A caller prefers the work of its own stream, but
// while that waits for a value, which any other stream may write, the caller does the work of the others, and
// so does a kernel that waits. Each command that becomes ready, and each such question, tries again to start
// a thread.
//
// A submitted job must start even if no caller waits for it, but waking a thread costs more than a small
// launch. So one idle thread of a group *polls* for a while (it sleeps briefly and checks), and the other
// idle threads are *parked*. A small job wakes no thread while one polls.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/engine/disposal.hpp"
#include "cpu/engine/fault.hpp"
#include "cpu/engine/jobs.hpp"
#include "cpu/engine/progress.hpp"
#include "cpu/engine/runnable_commands.hpp"
#include "cpu/engine/spare_launches.hpp"
#include "cpu/engine/stream.hpp"
#include "cpu/engine/stream_queues.hpp"
#include "cpu/engine/thread_groups.hpp"
#include "cpu/engine/watchdog.hpp"
#include "cpu/engine/worker.hpp"

namespace quern::cpu::engine {

/// Lives until the process ends: its threads are never joined. Thread-safe. It takes no other lock while it
/// holds its own. That lock guards the state of its parts: the queues of the streams, the commands that
/// threads may take, and the groups of threads.
class Scheduler {
 public:
  /// `limit` is the time limit for launches without a limit of their own; 0: no limit.
  explicit Scheduler(std::vector<std::unique_ptr<Worker>> workers, std::chrono::milliseconds limit = {});
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  std::uint32_t worker_count() const noexcept { return static_cast<std::uint32_t>(workers_.size()); }

  /// The caller must synchronise with the domain before the last owner releases it: the thread that finished
  /// the last command of a stream may still read the stream when callers that waited for it or for an event
  /// continue.
  static std::shared_ptr<Domain> make_domain() { return StreamQueues::make_domain(); }
  std::shared_ptr<Stream> make_stream(Domain& domain, bool blocking, int priority = 0) QUERN_EXCLUDES(mutex_);
  /// Called when the stream is not used from outside any more. Its queued work still runs.
  void retire(Stream& stream) QUERN_EXCLUDES(mutex_);

  /// Drops all commands that are submitted to the domain's streams from now on, as after a fault.
  void close(Domain& domain) QUERN_EXCLUDES(mutex_);

  /// Ends the domain: a copy that its caller ran found registered memory missing.
  void lose_memory(Domain& domain) QUERN_EXCLUDES(mutex_);

  void submit(const std::shared_ptr<Stream>& stream, Job job) QUERN_EXCLUDES(mutex_);
  void submit(const std::shared_ptr<Stream>& stream, std::unique_ptr<Command> command) QUERN_EXCLUDES(mutex_);
  /// A command with a new launch, to be filled in and submitted.
  std::unique_ptr<Command> make_launch() { return spare_.take(); }
  /// Submits commands one after another, without commands of other threads between them. Returns the point
  /// after the last one, at which `keep` is released.
  std::shared_ptr<EventPoint> submit_all(const std::shared_ptr<Stream>& stream,
                                         std::vector<std::unique_ptr<Command>> commands,
                                         std::shared_ptr<const void> keep) QUERN_EXCLUDES(mutex_);
  std::shared_ptr<EventPoint> record(const std::shared_ptr<Stream>& stream,
                                     std::shared_ptr<PointObserver> observer = {}) QUERN_EXCLUDES(mutex_);
  /// Commands submitted to `stream` from now on run after `point`.
  void wait_event(const std::shared_ptr<Stream>& stream, const EventPoint& point) QUERN_EXCLUDES(mutex_);

  /// Called when the host has generated machine code since `since_ns` and is about to submit work that needs
  /// it. If the domain has been idle meanwhile, the idle time since `since_ns` is not counted between its
  /// events (docs/decisions/0036-event-times-without-compilation.md).
  void exclude(Domain& domain, std::int64_t since_ns) QUERN_EXCLUDES(mutex_);

  /// Records a point after all current commands of the domain's streams.
  std::shared_ptr<EventPoint> record(Domain& domain, std::shared_ptr<PointObserver> observer = {})
      QUERN_EXCLUDES(mutex_);
  /// Commands submitted to any stream of the domain from now on run after `point`.
  void wait_event(Domain& domain, const EventPoint& point) QUERN_EXCLUDES(mutex_);

  /// True if all submitted commands have run, for a legacy stream also those of the blocking streams, which
  /// it would wait for. If the thread for the next one cannot be started, this and is_passed() run it, or
  /// another one for which it may wait.
  bool idle(const Stream& stream) QUERN_EXCLUDES(mutex_);
  /// True if the stream has come to the point.
  bool is_passed(const EventPoint& point) QUERN_EXCLUDES(mutex_);
  /// True if a job submitted now would not have to wait.
  bool runs_at_once(const Stream& stream) QUERN_EXCLUDES(mutex_);
  /// Returns when all commands submitted before the call have run or were dropped after a fault, for a legacy
  /// stream also those of the blocking streams. A fault of one launch ends all launches of its domain.
  void synchronize(const std::shared_ptr<Stream>& stream) QUERN_EXCLUDES(mutex_);
  void synchronize(const Domain& domain) QUERN_EXCLUDES(mutex_);
  void synchronize(const EventPoint& point) QUERN_EXCLUDES(mutex_);
  /// Returns when the commands that had ended before the call are destroyed, and no longer own memory.
  void wait_for_disposal() QUERN_EXCLUDES(mutex_);
  /// For a caller that waits for something else: runs a command if its thread cannot be started.
  void help() QUERN_EXCLUDES(mutex_);

  /// Ends the current launches of the stream, running or queued, and returns when none of them runs. Its
  /// other commands still run, in order. The context stays usable.
  void cancel(const std::shared_ptr<Stream>& stream) QUERN_EXCLUDES(mutex_);
  /// The same for all streams of the domain.
  void cancel(const Domain& domain) QUERN_EXCLUDES(mutex_);

  /// For exit(): launches have half a second to end. After that, they and the commands queued after them end
  /// as after a fault. Other threads that wait for them return a second later; usually the process has ended
  /// by then.
  void end_at_exit() QUERN_EXCLUDES(mutex_);

 private:
  /// Holds the mutex. Whenever it releases the mutex, it carries out the deferred actions.
  class QUERN_SCOPED_CAPABILITY Section;

  // Waiting callers (scheduler.cpp).
  void wait_until(const std::shared_ptr<Stream>& stream, std::uint64_t sequence) QUERN_EXCLUDES(mutex_);
  void run_stranded_for(const Stream& stream, Section& section) QUERN_REQUIRES(mutex_);
  /// Runs a command so that `stream` continues: the one at its head, or, while that may wait for other
  /// streams, one of those whose threads are missing. Returns false if nothing was done.
  bool run_for(const Stream& stream, Section& section, std::optional<FaultSignals>& signals)
      QUERN_REQUIRES(mutex_);
  /// Runs a command whose thread is missing, of one of the kinds up to `last`. Returns false if nothing was
  /// done.
  bool run_stranded(WorkKind last, Section& section, std::optional<FaultSignals>& signals)
      QUERN_REQUIRES(mutex_);
  /// Runs the task on a thread of the host. Returns false if it has to run again: a value is not there yet.
  bool run_here(Task& task, Section& section, std::optional<FaultSignals>& signals) QUERN_REQUIRES(mutex_);

  // The threads (pool.cpp).
  void take_following(const Task& task) QUERN_REQUIRES(mutex_);
  void execute(Task& task) QUERN_EXCLUDES(mutex_);
  void run_launches(Task& task) QUERN_EXCLUDES(mutex_);
  void help_in_kernel() QUERN_EXCLUDES(mutex_);
  void finish(Task& task) QUERN_REQUIRES(mutex_);
  void finish_launches(Task& task) QUERN_REQUIRES(mutex_);
  void thread_main(GroupId id);
  std::optional<Task> take_stranded() QUERN_REQUIRES(mutex_);
  Task wait_for_task(GroupId id);
  void poll(GroupId id, Section& section) QUERN_REQUIRES(mutex_);
  void park(GroupId id, Section& section) QUERN_REQUIRES(mutex_);
  void start_thread(GroupId id) QUERN_EXCLUDES(mutex_);
  void carry_out(DeferredActions deferred) QUERN_EXCLUDES(mutex_);

  const std::vector<std::unique_ptr<Worker>> workers_;
  const std::chrono::milliseconds limit_;  ///< of launches without a limit of their own; 0: none
  const std::function<void()> help_in_kernel_ = [this] { help_in_kernel(); };
  Watchdog watchdog_;
  SpareLaunches spare_;
  Disposal disposal_;
  base::Mutex mutex_;
  Progress progress_ QUERN_GUARDED_BY(mutex_);
  ThreadGroups groups_ QUERN_GUARDED_BY(mutex_);
  RunnableCommands runnable_ QUERN_GUARDED_BY(mutex_);
  StreamQueues queues_ QUERN_GUARDED_BY(mutex_);
  base::ConditionVariable progressed_;        ///< for waiting callers
  std::atomic<pthread_t> exiting_thread_{};   ///< 0: the process is not exiting
  std::atomic<bool> told_of_refusal_{false};  ///< in the log; since then no thread could be started
  std::atomic<bool> was_refused_{false};      ///< a thread could not be started, at some time
};

/// The time for which a thread runs launches one after another without asking the scheduler what is next:
/// about 20 us, which other streams and their callers may have to wait.
class Turn {
 public:
  Turn() noexcept;
  bool is_over() const noexcept;

 private:
  std::uint64_t begin_;  ///< of the processor's time-stamp counter
};

/// Runs the launch's next chunks on `worker` until none is left or a fault ends it, of a chain, and of blocks
/// that others could run, also until the turn is over. Null: no fault. While all its blocks wait, `meanwhile`
/// is called from time to time.
std::unique_ptr<Fault> run_launch(LaunchJob& job, Worker& worker, const Turn& turn,
                                  std::uint32_t worker_count, Watchdog& watchdog,
                                  const std::function<void()>& meanwhile);

/// For a chain that a thread has left in the middle of a grid, which takes longer than was expected: the rest
/// as launches that threads share. Otherwise empty.
std::vector<std::unique_ptr<Command>> split_chain(const LaunchJob& job);

}  // namespace quern::cpu::engine
