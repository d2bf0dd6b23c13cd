// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace quern::cli {

/// Runs the command that was chosen; gives its ExitStatus.
using Action = std::function<int()>;

/// Reads the words of a command line; --help and --version are printed here. Throws Error(usage) for words
/// that no command takes.
Action read_options(std::vector<std::string> words);

/// CLI11 takes "-2.5" for an option: such words are marked before it reads them, and unmarked afterwards.
std::string mark_negative(const std::string& word);
std::string unmark_negative(const std::string& word);

}  // namespace quern::cli
