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

/// A command, or a part of a launch, that a thread has taken.
struct Task {
  Command* command = nullptr;
  Worker* worker = nullptr;  ///< for a launch
  Fault fault;
  bool again = false;                              ///< a value or a point that is not there yet
  std::vector<std::unique_ptr<Command>> commands;  ///< of a SourceJob: to run before it is asked again
};

/// The commands that threads may take, and the workers that run launches. A launch is taken by several
/// threads, each with a worker. Guarded by the scheduler's mutex.
class RunnableCommands {
 public:
  RunnableCommands(const std::vector<std::unique_ptr<Worker>>& workers, ThreadGroups& groups,
                   Progress& progress);
  RunnableCommands(const RunnableCommands&) = delete;
  RunnableCommands& operator=(const RunnableCommands&) = delete;

  /// The command is at the head of its stream, and its dependencies are met.
  void add(Command& command);
  /// A value is to be looked at again, after the others.
  void add_again(Command& command);
  /// The launch is over before any thread took it.
  void remove(const Command& launch);

  bool has_work(GroupId id) const;
  /// For a thread of the group: the first command that can be taken. Calls for another thread if more work is
  /// left, so a launch that ends soon wakes few threads.
  std::optional<Task> take(GroupId id);
  /// For a thread that waits for `head`, or for a command behind it.
  std::optional<Task> take(Command& head);

  /// The thread leaves the launch: its worker is free again.
  void give_back(const Task& task);
  /// To be called after give_back(): true if no thread is in the launch, and none will be.
  bool is_over(const Command& launch);

  /// True if a worker runs a launch for which `matches(command)` is true.
  template <class Matches>
  bool any_runs(Matches matches) const {
    return std::any_of(workers_.begin(), workers_.end(), [&](const std::unique_ptr<Worker>& worker) {
      return worker->command != nullptr && matches(*worker->command);
    });
  }
  /// Requests the threads in such launches to leave them.
  template <class Matches>
  void ask_to_leave(Matches matches) const {
    for (const std::unique_ptr<Worker>& worker : workers_)
      if (worker->command != nullptr && matches(*worker->command)) worker->ask_to_leave();
  }

 private:
  bool can_take(const Command& command) const;
  std::optional<Task> try_take(Command& command);

  const std::vector<std::unique_ptr<Worker>>& workers_;
  ThreadGroups& groups_;
  Progress& progress_;
  std::array<std::vector<Command*>, kGroupCount> ready_;  ///< by priority, those of one by their age
  std::vector<Worker*> free_workers_;
  const Command* cooperative_ = nullptr;  ///< the one cooperative launch that runs
};

}  // namespace quern::cpu::engine
