// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "command.hpp"

namespace {

using quern::cli::Action;

void add_commands(CLI::App& app, Action& action) {
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Print the help of all commands");
  app.set_version_flag("--version", "quern " + std::string(quern::version()));
  quern::cli::add_run(app, action);
  quern::cli::add_compile(app, action);
  quern::cli::add_test(app, action);
  quern::cli::add_devices(app, action);
  quern::cli::add_doctor(app, action);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) words.push_back(quern::cli::mark_negative(argv[i]));
  const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
  try {
    CLI::App app("Compiles GPU kernels at run time and runs them on a GPU or on the CPU.", "quern");
    Action action;
    add_commands(app, action);
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    try {
      app.parse(words);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return app.exit(error), quern::cli::kDone;  // --help, --version
      throw quern::Error(quern::ErrorCode::usage,
                         std::string(error.what()) +
                             "\nhint: quern --help shows the commands, quern COMMAND --help "
                             "its options and arguments");
    }
    return action();
  } catch (const std::exception& error) {
    return quern::cli::report(error, json);
  }
}
