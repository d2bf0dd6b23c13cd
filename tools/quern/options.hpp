// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace quern::cli {

/// Runs the command that was chosen. Returns its ExitStatus.
using Action = std::function<int()>;

/// Parses the arguments of the command line. Prints --help and --version. Throws Error(usage) for arguments
/// that no command accepts.
Action read_options(std::vector<std::string> words);

/// CLI11 treats "-2.5" as an option, so such arguments are marked before it parses them, and unmarked
/// afterwards.
std::string mark_negative(const std::string& word);
std::string unmark_negative(const std::string& word);

}  // namespace quern::cli
