// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/exit.hpp"

#include <atomic>
#include <cstdlib>

#include "base/exit_handler.hpp"

namespace quern::runtime {
namespace {

// The process exits once, so these are the process's.
std::atomic<bool> exiting{false};
std::atomic<void (*)()> at_exit{nullptr};

std::atomic<bool> begun{false};
base::ExitHandler begins{[](int, void*) { begun.store(true, std::memory_order_relaxed); }};

}  // namespace

void watch_process_exit() noexcept {
  // Exit handlers run in reverse order: one registered now runs before the static destructors of libraries
  // that were loaded before now.
  static const int registered = ::on_exit(
      [](int, void*) {
        exiting.store(true, std::memory_order_relaxed);
        if (void (*const report)() = at_exit.load()) report();
      },
      nullptr);
  static_cast<void>(registered);
}

bool process_is_exiting() noexcept { return exiting.load(std::memory_order_relaxed); }

void call_at_process_exit(void (*report)()) noexcept { at_exit.store(report); }

void note_object() noexcept { begins.note_object(); }
void watch_exit_of_statics() noexcept { begins.arm(); }
bool exit_has_begun() noexcept { return begun.load(std::memory_order_relaxed); }

}  // namespace quern::runtime
