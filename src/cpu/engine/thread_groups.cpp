// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/thread_groups.hpp"

namespace quern::cpu::engine {

void ThreadGroups::notify(GroupId id) {
  --(*this)[id].parked;
  ++(*this)[id].notified;
  ++progress_.deferred.notify[static_cast<std::size_t>(id)];
}

/// Makes a thread that has nothing to do look for the work of a group that lacks threads.
void ThreadGroups::call_others() {
  progress_.note();  // callers that wait may take the group's commands
  for (std::size_t other = 0; other < kGroupCount; ++other)
    if (groups_[other].parked > 0) return notify(static_cast<GroupId>(other));
}

void ThreadGroups::refuse_thread(GroupId id) {
  ThreadGroup& group = (*this)[id];
  --group.threads;
  group.refused = true;
  if (lacks_threads(id)) call_others();
}

void ThreadGroups::call_for_help(GroupId id, bool urgent) {
  ThreadGroup& group = (*this)[id];
  const auto index = static_cast<std::size_t>(id);
  if (group.polling && !urgent) return;
  if (group.parked > 0) {
    notify(id);
  } else if ((urgent || !group.polling) && group.threads < group.max_threads) {
    ++group.threads;
    group.refused = false;  // not yet
    ++progress_.deferred.start[index];
  } else if (lacks_threads(id)) {
    call_others();
  }
}

}  // namespace quern::cpu::engine
