// SPDX-License-Identifier: Apache-2.0
// The door of the commands' library: main.cpp needs nothing else of it, and no header that takes long to
// read.
#pragma once

namespace quern::cli {

/// The whole of the program: reads the words, runs the subcommand they name, returns the exit status.
int program(int argc, char** argv);

}  // namespace quern::cli
