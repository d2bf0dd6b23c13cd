// SPDX-License-Identifier: Apache-2.0
#include "arrays/files.hpp"

#include <fmt/format.h>
#include <quern/error.hpp>
#include <quern/file.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>

namespace quern::cli {
namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail_to_read(const std::string& path, const char* why) {
  throw Error(
      ErrorCode::io,
      fmt::format("cannot read {}: {}\nhint: check the file's name and that it can be read", path, why));
}

}  // namespace

std::string read_whole_file(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) fail_to_read(path, "it is a directory");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) fail_to_read(path, std::strerror(errno));
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) fail_to_read(path, std::strerror(errno));
  return std::move(text).str();
}

void write_whole_file(const std::string& path, std::string_view bytes) {
  const Expected<void> written = write_file_atomically(path, std::as_bytes(std::span(bytes)));
  if (!written) throw Error(ErrorCode::io, to_string(written.errors()), written.errors());
}

}  // namespace quern::cli
