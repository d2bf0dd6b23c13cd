// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace quern::runtime {

class Context;

/// Arranges that process_is_exiting() turns true before libraries loaded so far are torn down. Called after a
/// driver is opened.
void watch_process_exit() noexcept;

/// True once the process runs its exit handlers: from then on nothing is released, since the driver may be
/// unloaded.
bool process_is_exiting() noexcept;

/// The host has been given an object of a context, which it may keep in a static one.
void note_object() noexcept;
/// From now on exit_has_begun() turns true before static objects are destroyed that hold what was recorded so
/// far. To be called before work is queued whose end may never come: a callback of the host's that calls
/// exit() or waits for ever. Cheap if nothing was recorded since.
void watch_exit_of_statics() noexcept;
/// True once exit() was called, as far as watched. Static objects that the host destroys then wait for
/// nothing.
bool exit_has_begun() noexcept;

/// With QUERN_LEAK_REPORT=1 what is still live in a context when the process exits is listed in the log.
void watch_for_leaks(const Context& context);
void forget_for_leaks(const Context& context) noexcept;

}  // namespace quern::runtime
