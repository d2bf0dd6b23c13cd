// SPDX-License-Identifier: Apache-2.0
// What the subcommands share: how they are registered, how they speak, how they fail.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <quern/quern.hpp>

#include <exception>
#include <functional>
#include <string>

/// Instantiated once, in command.cpp: it is most of what the compiler has to do for a command.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace quern::cli {

using Json = nlohmann::ordered_json;

enum ExitStatus : int { kDone = 0, kFailed = 1, kWrongUsage = 2 };

/// Set by the subcommand that was chosen; program() runs it.
using Action = std::function<int()>;

void add_run(CLI::App& app, Action& action);
void add_compile(CLI::App& app, Action& action);
void add_test(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_devices(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);

/// Prints what went wrong to stderr, with --json also as a document on stdout, and says how to exit.
int report(const std::exception& error, bool json);

/// CLI11 takes "-2.5" for options; program() marks such words, and whoever reads positional words unmarks
/// them.
std::string mark_negative(const std::string& word);
std::string unmark_negative(const std::string& word);

/// Prints a document on stdout.
void print_json(const Json& document);
Json to_json(const Diagnostics& diagnostics);

/// "error:" and "hint:" in colour where stderr is a terminal and NO_COLOR is not set.
std::string coloured(const std::string& message);

/// "kernel.cu::scale<float>" -> "kernel.cu" and "scale<float>" (empty where it names none).
std::pair<std::string, std::string> split_kernel(const std::string& text);

/// --bind NAME=ARG, repeatable.
void add_constant_option(CLI::App& app, std::vector<std::string>& bindings);

/// The options that say how source is compiled, on `app`.
void add_load_options(CLI::App& app, LoadOptions& options);

}  // namespace quern::cli
