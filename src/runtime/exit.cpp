// SPDX-License-Identifier: Apache-2.0
#include "runtime/exit.hpp"

#include <atomic>
#include <cstdlib>

namespace quern::runtime {
namespace {
// Exit is a fact about the process, so this one flag is the process's.
std::atomic<bool> exiting{false};
}  // namespace

void watch_process_exit() noexcept {
  // Exit handlers run in reverse order: one registered now runs before the static destructors of libraries
  // that were loaded before now.
  static const int registered = std::atexit([] { exiting.store(true, std::memory_order_relaxed); });
  static_cast<void>(registered);
}

bool process_is_exiting() noexcept { return exiting.load(std::memory_order_relaxed); }

}  // namespace quern::runtime
