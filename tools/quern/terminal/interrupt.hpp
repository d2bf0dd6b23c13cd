// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace quern::cli {

/// From here on SIGINT and SIGTERM end the program by that signal, also if a library has handlers: while
/// NVRTC reads a source it installs its own, which end the program with another status. Signals that were
/// ignored when the program started stay ignored. Call this before any thread is started.
void end_by_signals();

/// From here on the first of these signals does not end the program: interrupted() returns its number. The
/// second one ends it as before. Thread-safe, as interrupted().
void keep_interrupts() noexcept;
int interrupted() noexcept;

/// From here on signals of other processes are sent on to `process`, and those of the terminal are ignored:
/// it gets them as well. 0: they end this process again.
void pass_signals_to(pid_t process) noexcept;

}  // namespace quern::cli
