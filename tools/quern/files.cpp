// SPDX-License-Identifier: Apache-2.0
#include "files.hpp"

#include <fmt/format.h>
#include <quern/error.hpp>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace quern::cli {
namespace fs = std::filesystem;

std::string read_whole_file(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw Error(ErrorCode::io, fmt::format("cannot read {}: it is a directory", path));
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorCode::io, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) throw Error(ErrorCode::io, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  return std::move(text).str();
}

void write_whole_file(const std::string& path, std::string_view bytes) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  const bool in_place = fs::exists(status) && !fs::is_regular_file(status);  // /dev/stdout and its like
  const std::string target = in_place ? path : fmt::format("{}.{}.tmp", path, ::getpid());
  errno = 0;
  std::ofstream out(target, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (out && (in_place || std::rename(target.c_str(), path.c_str()) == 0)) return;
  const int error = errno;
  if (!in_place) std::remove(target.c_str());
  throw Error(ErrorCode::io, fmt::format("cannot write {}: {}", path, std::strerror(error)));
}

}  // namespace quern::cli
