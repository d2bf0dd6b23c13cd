// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "command.hpp"
#include "commands.hpp"
#include "drop_in/call_counts.hpp"
#include "drop_in/child.hpp"
#include "drop_in/libraries.hpp"
#include "terminal/output.hpp"

namespace quern::cli {
namespace {

// The exit statuses that shells use.
constexpr int kNotExecutable = 126;
constexpr int kNoSuchCommand = 127;

/// Quotes text as one word for a shell: 'it'\''s'.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return word + "'";
}

void print_variables() {
  std::string text;
  for (const auto& [name, value] : drop_in_variables(""))
    text += fmt::format("export {}={}\n", name, quoted(value));
  print_text(text);
}

int run_program(const std::vector<std::string>& command, const std::string& counts) {
  for (const auto& [name, value] : drop_in_variables(counts)) ::setenv(name.c_str(), value.c_str(), 1);
  try {
    return run_child(command);
  } catch (const Error& error) {
    report(error, false);
    return error.code() == ErrorCode::not_found ? kNoSuchCommand : kNotExecutable;
  }
}

}  // namespace

int exec_command(const ExecSettings& settings) {
  if (settings.print_env) {
    if (!settings.command.empty())
      throw Error(ErrorCode::usage, "--print-env runs nothing\nhint: leave out the command, or --print-env");
    print_variables();
    return kDone;
  }
  if (settings.command.empty())
    throw Error(ErrorCode::usage, "no command was given\nhint: quern exec [OPTIONS] -- COMMAND [ARG ...]");
  if (!settings.stats) return run_program(settings.command, "");
  const CallCounts counts;
  const int status = run_program(settings.command, counts.file());
  std::fputs(counts.text().c_str(), stderr);
  return status;
}

}  // namespace quern::cli
