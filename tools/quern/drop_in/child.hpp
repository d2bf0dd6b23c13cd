// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace quern::cli {

/// Runs a program, found in PATH if its name has no slash, with this process's environment, and waits for it.
/// Signals to this process reach it. Returns its exit status, or 128 and the number of the signal that ended
/// it. Throws Error: not_found if there is no such program, io if it cannot be executed.
int run_child(const std::vector<std::string>& command);

}  // namespace quern::cli
