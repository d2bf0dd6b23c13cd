// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace quern::cli {

/// From here on SIGINT and SIGTERM end the program by that signal, whatever a library does about them: while
/// NVRTC reads a source it has handlers of its own, which end the program with a status of theirs. Signals
/// that whoever started the program has it ignore stay ignored. To be called before there are threads.
void end_by_signals();

}  // namespace quern::cli
