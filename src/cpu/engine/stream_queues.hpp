// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/engine/fault.hpp"
#include "cpu/engine/progress.hpp"
#include "cpu/engine/runnable_commands.hpp"
#include "cpu/engine/stream.hpp"

namespace quern::cpu::engine {

/// The queues of all streams: decides which command may start, and what follows when one has finished.
/// Guarded by the scheduler's mutex.
class StreamQueues {
 public:
  StreamQueues(RunnableCommands& runnable, Progress& progress) : runnable_(runnable), progress_(progress) {}
  StreamQueues(const StreamQueues&) = delete;
  StreamQueues& operator=(const StreamQueues&) = delete;

  static std::shared_ptr<Domain> make_domain();
  void add(const std::shared_ptr<Stream>& stream);
  void retire(Stream& stream);
  /// Submits the only command of a stream, which leaves the domain when the command has run.
  void enqueue_alone(const std::shared_ptr<Stream>& stream, std::unique_ptr<Command> command);
  /// Commands submitted from now on to any stream of the domain, including streams created later, run after
  /// `before`.
  void wait(Domain& domain, const Dependency& before);
  /// See Scheduler::exclude().
  void exclude(Domain& domain, std::int64_t since_ns);
  void close(Domain& domain) { domain.closed_ = true; }
  static bool is_closed(const Domain& domain) noexcept { return domain.closed_; }

  void enqueue(const std::shared_ptr<Stream>& stream, std::unique_ptr<Command> command);
  /// The sequence number of the last command submitted to the stream.
  std::uint64_t issued(const Stream& stream) const noexcept { return stream.issued_; }
  bool is_idle(const Stream& stream) const noexcept { return stream.queue_.empty(); }
  /// True if a job submitted now would not have to wait.
  bool runs_at_once(const Stream& stream) const;
  static Domain& domain_of(const Stream& stream) noexcept { return *stream.domain_; }
  /// The legacy stream comes first.
  std::vector<std::shared_ptr<Stream>> streams_of(const Domain& domain) const;
  /// The last command of the stream, for which the caller is going to wait; if the stream is idle, the result
  /// has no stream.
  Dependency await_last(const std::shared_ptr<Stream>& stream);
  /// The same for all streams of the domain that are not idle, except the legacy stream.
  std::vector<Dependency> await_last_ones(const Domain& domain);
  /// The command that must run for `stream` to continue: its head, or the head of the stream that blocks it.
  /// Null if no thread can take it.
  Command* head_for(const Stream& stream) const;

  /// The launches that the thread which has taken `head` may run after it without the mutex: those that one
  /// thread runs, up to the first for which somebody waits. Their state remains queued.
  static void take_following(const Command& head, std::vector<Command*>& following);
  /// Called when the stream's first `passed` commands have run: a head, and launches following it.
  void complete_passed(Stream& stream, std::uint32_t passed);
  /// Called when the stream's head has run.
  void complete_head(Stream& stream);
  /// Called when a thread has left the stream's head before its end. It has to be taken again.
  void put_back_head(Stream& stream);
  /// Runs the stream's head again after `commands`.
  void put_before_head(Stream& stream, std::vector<std::unique_ptr<Command>> commands);
  /// Ends the domain because of a fault: all its launches stop.
  void end_domain(Domain& domain, FaultKind kind, FaultReport report);
  /// Stops the current launches of the stream; copies continue.
  void stop_launches(const std::shared_ptr<Stream>& stream);

 private:
  void advance(const std::shared_ptr<Stream>& stream);
  bool start_head(const std::shared_ptr<Stream>& stream, std::vector<std::shared_ptr<Stream>>& unblocked);
  void pop_head(Stream& stream, std::vector<std::shared_ptr<Stream>>& unblocked);
  void stop_head(const std::shared_ptr<Stream>& stream);
  void drop_from_domain(Stream& stream);

  RunnableCommands& runnable_;
  Progress& progress_;
};

/// True for launches that cancelling ends: all except copies made by a kernel.
bool is_cancellable(const Command& command) noexcept;

}  // namespace quern::cpu::engine
