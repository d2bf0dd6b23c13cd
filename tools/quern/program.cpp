// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "command.hpp"
#include "options.hpp"

namespace quern::cli {

int program(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
  try {
    return read_options(words)();
  } catch (const std::exception& error) {
    return report(error, json);
  }
}

}  // namespace quern::cli
