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

/// With QUERN_LEAK_REPORT=1 what is still live in a context when the process exits is listed in the log.
void watch_for_leaks(const Context& context);
void forget_for_leaks(const Context& context) noexcept;

}  // namespace quern::runtime
