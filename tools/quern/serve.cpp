// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "command.hpp"
#include "commands.hpp"

namespace quern::cli {
namespace {

namespace fs = std::filesystem;

/// The server is a program of its own, beside the library; in a build tree where it was built.
fs::path server_program() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  fs::path built = folder / "src/serve/quern-serve";
  std::error_code ignored;
  return fs::exists(built, ignored) ? built : folder / QUERN_SERVE_PROGRAM;
}

}  // namespace

int serve_command(const std::vector<std::string>& words) {
  const fs::path program = server_program();
  std::vector<std::string> all = {"quern-serve"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : all) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  throw Error(
      errno == ENOENT ? ErrorCode::not_found : ErrorCode::io,
      fmt::format("cannot start {}: {}\nhint: install quern as a whole; quern-serve is beside the library",
                  program.string(), std::strerror(errno)));
}

}  // namespace quern::cli
