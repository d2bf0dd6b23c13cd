// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "serve/settings.hpp"

namespace quern::serve {

/// The outcome of reading the command line: settings, or what to print and the exit status.
struct CommandLine {
  std::optional<Settings> settings;
  std::string text;
  int status = 0;
};
CommandLine read_command_line(int argc, char** argv);

}  // namespace quern::serve
