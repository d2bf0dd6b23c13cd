// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

#include "command.hpp"
#include "options.hpp"
#include "terminal/interrupt.hpp"
#include "terminal/output.hpp"

namespace quern::cli {
namespace {

int run(const std::vector<std::string>& words, bool json) {
  try {
    const Action action = read_options(words);  // also prints the help, which is not a document
    if (json) keep_stdout_for_document();
    return action();
  } catch (const OutputError&) {
    throw;
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) throw OutputError(error.code().value());  // the error of fmt::print
    return report(error, json);
  } catch (const std::exception& error) {
    return report(error, json);
  }
}

}  // namespace

int program(int argc, char** argv) {
  end_by_signals();
  hold_standard_descriptors();
  watch_stdout();
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  // after it: the arguments of another program
  const auto own_end = std::find(words.begin(), words.end(), "--");
  const bool json = std::find(words.begin(), own_end, "--json") != own_end;
  int status = kFailed;
  try {
    status = run(words, json);
    flush_output();
    return status;
  } catch (const OutputError& error) {
    return error.reader_left() ? status : report(error, false);
  }
}

}  // namespace quern::cli
