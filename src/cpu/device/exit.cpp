// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/exit.hpp"

#include <chrono>

#include "base/exit_handler.hpp"
#include "cpu/device/background_code.hpp"
#include "cpu/device/driver.hpp"

namespace quern::cpu::device {
namespace {

/// Good code that is finished within this time is there for the next process.
constexpr std::chrono::seconds kForBackgroundCode{1};

void at_exit(int, void*) {
  if (forked()) return;
  entry([] { Driver::get().scheduler().end_at_exit(); });
  // The handler may run several times.
  static const auto end = std::chrono::steady_clock::now() + kForBackgroundCode;
  wait_for_background_code(end);
}

base::ExitHandler handler{&at_exit};

}  // namespace

void note_object() noexcept { handler.note_object(); }
void end_launches_at_exit() noexcept { handler.arm(); }

}  // namespace quern::cpu::device
