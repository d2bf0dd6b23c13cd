// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "command.hpp"
#include "commands.hpp"
#include "server_child.hpp"
#include "watch.hpp"

namespace quern::cli {
namespace {

namespace fs = std::filesystem;

/// The server is a separate program, installed beside the library, or where the build tree has it.
fs::path server_program() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  fs::path built = folder / "src/serve/quern-serve";
  std::error_code ignored;
  return fs::exists(built, ignored) ? built : folder / QUERN_SERVE_PROGRAM;
}

bool names(const std::vector<std::string>& words, std::string_view option) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return word == option || word.starts_with(std::string(option) + "=");
  });
}

int serve_and_watch(const std::vector<std::string>& words) {
  ServerChild server(server_program(), words);
  const auto read = [&server](const std::function<bool()>& goes_on) { return server.stats(goes_on); };
  // If the server cannot start, report that before the screen is used.
  if (!server.stats({})) return server.end();
  WatchSettings settings;
  settings.goes_on = [&server] { return server.is_running(); };
  if (!names(words, "--log-file") && !names(words, "--config"))
    settings.note = fmt::format("log: {}   q or Ctrl-C ends the server", server.log());
  watch({{"this server", read}}, settings);
  return server.end();
}

}  // namespace

int serve_command(std::vector<std::string> words) {
  if (std::erase(words, "--top") != 0) return serve_and_watch(words);
  const fs::path program = server_program();
  words.insert(words.begin(), "quern-serve");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  throw Error(
      errno == ENOENT ? ErrorCode::not_found : ErrorCode::io,
      fmt::format("cannot start {}: {}\nhint: install quern as a whole; quern-serve is beside the library",
                  program.string(), std::strerror(errno)));
}

}  // namespace quern::cli
