// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace quern::runtime {

/// Arranges that process_is_exiting() turns true before libraries loaded so far are unloaded. Called after a
/// driver is opened.
void watch_process_exit() noexcept;

/// True once the process runs its exit handlers: from then on nothing is released, since the driver may be
/// unloaded.
bool process_is_exiting() noexcept;

/// `report` is called once, when process_is_exiting() turns true. There is one such function in the process.
void call_at_process_exit(void (*report)()) noexcept;

/// Records that the host got an object of a context, which it may keep in a static object.
void note_object() noexcept;
/// From now on exit_has_begun() turns true before static objects are destroyed that hold an object recorded
/// so far. To be called before work is queued that may never end: a callback of the host's that calls exit()
/// or waits for ever. Cheap if nothing was recorded since the last call.
void watch_exit_of_statics() noexcept;
/// True once exit() was called, as far as watched. Static objects that the host destroys then wait for
/// nothing.
bool exit_has_begun() noexcept;

}  // namespace quern::runtime
