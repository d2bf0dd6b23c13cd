// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace quern::cli {

/// From here on SIGINT and SIGTERM end the program by that signal, whatever handlers a library has: while
/// NVRTC reads a source it installs its own, which end the program with another status. Signals that were
/// ignored when the program started stay ignored. Call this before any thread is started.
void end_by_signals();

}  // namespace quern::cli
