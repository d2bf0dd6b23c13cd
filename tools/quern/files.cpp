// SPDX-License-Identifier: Apache-2.0
#include "files.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <quern/error.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace quern::cli {
namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail_to_read(const std::string& path, const char* why) {
  throw Error(
      ErrorCode::io,
      fmt::format("cannot read {}: {}\nhint: check the file's name and that it can be read", path, why));
}

/// What a symbolic link is of. Those in /proc, to which /dev/stdout leads, are of open files, whatever path
/// they show; they stay.
fs::path behind_links(fs::path path) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(fs::symlink_status(path, error)); ++i) {
    if (fs::weakly_canonical(path.parent_path(), error).string().starts_with("/proc/")) break;
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  return path;
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
  std::error_code ignored;
  const fs::path file = behind_links(path);
  const fs::file_status status = fs::status(file, ignored);
  const bool in_place = (fs::exists(status) && !fs::is_regular_file(status)) ||  // /dev/stdout and its like
                        fs::is_symlink(fs::symlink_status(file, ignored));
  // Not with the file's name, which may have the greatest length that there is.
  const fs::path target = in_place ? file : file.parent_path() / fmt::format(".quern.{}.tmp", ::getpid());
  errno = 0;
  std::ofstream out(target, std::ios::binary | (in_place ? std::ios::app : std::ios::trunc));
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (out && (in_place || std::rename(target.c_str(), file.c_str()) == 0)) return;
  const int error = errno;
  if (!in_place) std::remove(target.c_str());
  throw Error(ErrorCode::io,
              fmt::format("cannot write {}: {}\nhint: check that its folder is there and may be "
                          "written, and that there is space",
                          path, std::strerror(error)));
}

}  // namespace quern::cli
