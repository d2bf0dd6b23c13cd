// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/thread_groups.hpp"

namespace quern::cpu::engine {

void ThreadGroups::call_for_help(GroupId id, bool urgent) {
  ThreadGroup& group = (*this)[id];
  const auto index = static_cast<std::size_t>(id);
  if (group.polling && !urgent) return;
  if (group.parked > 0) {
    --group.parked;
    ++group.notified;
    ++progress_.deferred.notify[index];
  } else if ((urgent || !group.polling) && group.threads < group.max_threads) {
    ++group.threads;
    ++progress_.deferred.start[index];
  }
}

}  // namespace quern::cpu::engine
