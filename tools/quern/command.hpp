// SPDX-License-Identifier: Apache-2.0
// Output and error handling that the commands share.
#pragma once

#include <nlohmann/json.hpp>
#include <quern/quern.hpp>

#include <exception>
#include <string>

/// Instantiated once, in command.cpp, because that takes most of the time of compiling a command.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace quern::cli {

using Json = nlohmann::ordered_json;

enum ExitStatus : int { kDone = 0, kFailed = 1, kWrongUsage = 2 };

/// Prints the error to stderr, with --json also as a document on stdout, and returns the exit status.
int report(const std::exception& error, bool json);

/// Prints a document on stdout.
void print_json(const Json& document);
Json to_json(const Diagnostics& diagnostics);

/// Throws an error with the reason why there is no device.
[[noreturn]] void fail_without_device();

/// "error:" and "hint:" in colour if stderr is a terminal and NO_COLOR is not set.
std::string coloured(const std::string& message);

/// "kernel.cu::scale<float>" -> "kernel.cu" and "scale<float>" (empty if it names none).
std::pair<std::string, std::string> split_kernel(const std::string& text);

}  // namespace quern::cli
