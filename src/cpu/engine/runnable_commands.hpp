// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "cpu/engine/fault.hpp"
#include "cpu/engine/progress.hpp"
#include "cpu/engine/stream.hpp"
#include "cpu/engine/thread_groups.hpp"
#include "cpu/engine/worker.hpp"

namespace quern::cpu::engine {

/// A command, or a part of a launch, taken by a thread.
struct Task {
  Command* command = nullptr;
  Worker* worker = nullptr;      ///< for a launch
  std::unique_ptr<Fault> fault;  ///< null: none. A task is moved at every launch, and a fault is large
  bool again = false;  ///< the memory does not have the expected value yet, or the point is not reached
  bool lent = false;   ///< taken by a thread of another group
  /// Launches of Worker::following, and the one before these, that are complete; `command` is the one after
  std::uint32_t passed = 0;
  /// for a SourceJob: commands to run before the source is called again; for a chain: those in its place
  std::vector<std::unique_ptr<Command>> commands;
};

/// Kinds of commands, in the order in which a thread takes those whose own threads are missing. Commands of
/// the first two end by themselves. A thread leaves a value that is not there yet to look at it again later;
/// host functions and launches may keep it while they wait.
enum class WorkKind : std::uint8_t { transfer, launch, value, host_function, waiting_launch };
inline constexpr std::array kWorkKinds{WorkKind::transfer, WorkKind::launch, WorkKind::value,
                                       WorkKind::host_function, WorkKind::waiting_launch};

/// The commands that threads may take, and the workers that run launches. Several threads, each with a
/// worker, may take the same launch. Guarded by the scheduler's mutex.
class RunnableCommands {
 public:
  RunnableCommands(const std::vector<std::unique_ptr<Worker>>& workers, ThreadGroups& groups,
                   Progress& progress);
  RunnableCommands(const RunnableCommands&) = delete;
  RunnableCommands& operator=(const RunnableCommands&) = delete;

  /// Adds a command that is at the head of its stream and whose dependencies are met.
  void add(Command& command);
  /// Adds the wait for a value again, after the other commands.
  void add_again(Command& command);
  /// Removes a launch that ended before any thread took it.
  void remove(const Command& launch);

  bool has_work(GroupId id) const;
  /// True if a command can be taken whose group lacks threads (ThreadGroups). Threads of other groups, and
  /// callers, run it instead.
  bool has_stranded_work() const;
  /// Tries to start threads for such commands.
  void call_for_help();
  /// The number of commands of the kind's group.
  std::size_t ready_count(WorkKind kind) const noexcept;
  /// For a thread of the group: returns the first command that can be taken. Requests another thread if more
  /// work is left, so a launch that ends soon wakes few threads.
  std::optional<Task> take(GroupId id);
  /// For any thread: returns a command of the kind, if its group lacks threads.
  std::optional<Task> take_stranded(WorkKind kind);
  /// For a thread that waits for `head`, or for a command after it.
  std::optional<Task> take(Command& head);

  /// Called when the thread leaves the launch that it took: its worker is free again.
  void give_back(Worker& worker);
  /// Must be called after give_back(). True if no thread runs the launch, and none will.
  bool is_over(const Command& launch);

  /// True if a worker runs a launch for which `matches(command)` is true.
  template <class Matches>
  bool any_runs(Matches matches) const {
    return std::any_of(workers_.begin(), workers_.end(), [&](const std::unique_ptr<Worker>& worker) {
      return worker->command != nullptr && matches(*worker->command);
    });
  }
  /// Requests that the threads in such launches leave them.
  template <class Matches>
  void ask_to_leave(Matches matches) const {
    for (const std::unique_ptr<Worker>& worker : workers_)
      if (worker->command != nullptr && matches(*worker->command)) worker->ask_to_leave();
  }

 private:
  bool can_take(const Command& command) const;
  bool has_stranded_work(GroupId id) const;
  std::optional<Task> try_take(Command& command);
  template <class Accepts>
  std::optional<Task> take_first(GroupId id, const Accepts& accepts);

  const std::vector<std::unique_ptr<Worker>>& workers_;
  ThreadGroups& groups_;
  Progress& progress_;
  std::array<std::vector<Command*>, kGroupCount> ready_;  ///< by priority, and by age within a priority
  std::vector<Worker*> free_workers_;
  /// the cooperative launch that is running, of which there is at most one
  const Command* cooperative_ = nullptr;
};

}  // namespace quern::cpu::engine
