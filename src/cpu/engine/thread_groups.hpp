// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "base/thread_annotations.hpp"
#include "cpu/engine/progress.hpp"

namespace quern::cpu::engine {

/// The threads for one kind of work.
struct ThreadGroup {
  std::uint32_t max_threads = 1;
  std::uint32_t threads = 0;   ///< threads that were started
  std::uint32_t busy = 0;      ///< of these, threads that run a command
  std::uint32_t lent = 0;      ///< of these, threads that run a command of another group
  bool refused = false;        ///< the last thread could not be started
  std::uint32_t parked = 0;    ///< threads waiting in `wake`, except the notified ones
  std::uint32_t notified = 0;  ///< threads that must leave `wake`
  bool polling = false;
  std::uint64_t activity = 0;  ///< number of commands that became ready
  base::ConditionVariable wake;
};

/// Decides which threads must start or wake up when there is work. Guarded by the scheduler's mutex, except
/// `wake`, which needs no lock.
class ThreadGroups {
 public:
  ThreadGroups(std::uint32_t compute_threads, Progress& progress) : progress_(progress) {
    (*this)[GroupId::compute].max_threads = compute_threads;
  }
  ThreadGroup& operator[](GroupId id) noexcept { return groups_[static_cast<std::size_t>(id)]; }

  /// Called when a command became ready. Urgent: a thread must find it soon.
  void note_work(GroupId id, bool urgent) {
    ++(*this)[id].activity;
    call_for_help(id, urgent);
  }
  /// Ensures that a thread of the group will look for work. Urgent: soon. If the group has no thread because
  /// none could be started, tries that again.
  void call_for_help(GroupId id, bool urgent);
  /// Called when the group's thread could not be started. If the group lacks threads now, a parked one of
  /// another group does its work.
  void refuse_thread(GroupId id);
  /// True if no thread of the group can take a command soon: no further one could be started, or some run
  /// commands of other groups that lack threads. Threads of other groups, and callers, then do its work.
  bool lacks_threads(GroupId id) const noexcept {
    const ThreadGroup& group = groups_[static_cast<std::size_t>(id)];
    return group.threads == group.busy && (group.refused || group.lent > 0);
  }

 private:
  void notify(GroupId id);
  void call_others();

  std::array<ThreadGroup, kGroupCount> groups_;
  Progress& progress_;
};

}  // namespace quern::cpu::engine
