// SPDX-License-Identifier: Apache-2.0
// The interface of the commands' library. main.cpp needs only this header, which compiles fast.
#pragma once

namespace quern::cli {

/// The whole program: parses the arguments, runs the subcommand, returns the exit status.
int program(int argc, char** argv);

}  // namespace quern::cli
