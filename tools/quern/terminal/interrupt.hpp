// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>

namespace quern::cli {

/// From now on, SIGINT and SIGTERM end the program by that signal, even if a library has handlers: NVRTC
/// installs its own while it compiles, and these end the program with another status. Signals that were
/// ignored when the program started stay ignored. Call this before any thread is started.
void end_by_signals();

/// From now on, the first of these signals does not end the program: interrupted() returns its number. The
/// second one ends it as before. Thread-safe, like interrupted().
void keep_interrupts() noexcept;
int interrupted() noexcept;

/// Starts a process with `start`, which returns its id or throws, and returns the id. From then on, signals
/// from other processes are forwarded to that process, and those from the terminal are ignored, since it
/// receives them as well. A signal that arrives while `start` runs waits for its end.
pid_t pass_signals_to(const std::function<pid_t()>& start);

/// From now on, signals end this process again. Call this before the id of the other process is released.
void stop_passing_signals() noexcept;

}  // namespace quern::cli
