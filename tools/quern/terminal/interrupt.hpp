// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace quern::cli {

/// From now on, SIGINT and SIGTERM end the program by that signal, even if a library has handlers: NVRTC
/// installs its own while it compiles, and these end the program with another status. Signals that were
/// ignored when the program started stay ignored. Call this before any thread is started.
void end_by_signals();

/// From now on, the first of these signals does not end the program: interrupted() returns its number. The
/// second one ends it as before. Thread-safe, like interrupted().
void keep_interrupts() noexcept;
int interrupted() noexcept;

/// From now on, signals from other processes are forwarded to `process`, and those from the terminal are
/// ignored, since `process` receives them as well. 0: they end this process again.
void pass_signals_to(pid_t process) noexcept;

}  // namespace quern::cli
