// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/exit.hpp"

#include "base/exit_handler.hpp"
#include "cpu/device/driver.hpp"

namespace quern::cpu::device {
namespace {

void at_exit(int, void*) {
  if (forked()) return;
  entry([] { Driver::get().scheduler().end_at_exit(); });
}

base::ExitHandler handler{&at_exit};

}  // namespace

void note_object() noexcept { handler.note_object(); }
void end_launches_at_exit() noexcept { handler.arm(); }

}  // namespace quern::cpu::device
