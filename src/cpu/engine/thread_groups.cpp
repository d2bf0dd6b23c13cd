// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/thread_groups.hpp"

namespace quern::cpu::engine {

void ThreadGroups::notify(GroupId id) {
  --(*this)[id].parked;
  ++(*this)[id].notified;
  ++progress_.deferred.notify[static_cast<std::size_t>(id)];
}

void ThreadGroups::refuse_thread(GroupId id) {
  if (--(*this)[id].threads > 0) return;
  progress_.note();  // callers that wait may take the group's commands
  for (std::size_t other = 0; other < kGroupCount; ++other)
    if (groups_[other].parked > 0) return notify(static_cast<GroupId>(other));
}

void ThreadGroups::call_for_help(GroupId id, bool urgent) {
  ThreadGroup& group = (*this)[id];
  const auto index = static_cast<std::size_t>(id);
  if (group.polling && !urgent) return;
  if (group.parked > 0) {
    notify(id);
  } else if ((urgent || !group.polling) && group.threads < group.max_threads) {
    ++group.threads;
    ++progress_.deferred.start[index];
  }
}

}  // namespace quern::cpu::engine
