// SPDX-License-Identifier: Apache-2.0
// exit() does not wait for kernels that never end.
#pragma once

namespace quern::cpu::device {

/// The host has been given a module, stream, event or memory, which it may keep in a static object.
void note_object() noexcept;

/// From now on exit() ends running launches (Scheduler::end_at_exit) before it destroys static objects that
/// hold objects recorded so far: their release would wait for the launches. To be called before each launch;
/// cheap if nothing was recorded since.
void end_launches_at_exit() noexcept;

}  // namespace quern::cpu::device
