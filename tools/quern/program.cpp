// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "command.hpp"

namespace quern::cli {
namespace {

void add_commands(CLI::App& app, Action& action) {
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Print the help of all commands");
  app.set_version_flag("--version", "quern " + std::string(version()));
  add_run(app, action);
  add_compile(app, action);
  add_test(app, action);
  add_bench(app, action);
  add_devices(app, action);
  add_doctor(app, action);
}

}  // namespace

int program(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) words.push_back(mark_negative(argv[i]));
  const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
  try {
    CLI::App app("Compiles GPU kernels at run time and runs them on a GPU or on the CPU.", "quern");
    Action action;
    add_commands(app, action);
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    try {
      app.parse(words);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return app.exit(error), kDone;  // --help, --version
      throw Error(ErrorCode::usage, std::string(error.what()) +
                                        "\nhint: quern --help shows the commands, quern COMMAND --help "
                                        "its options and arguments");
    }
    return action();
  } catch (const std::exception& error) {
    return report(error, json);
  }
}

}  // namespace quern::cli
