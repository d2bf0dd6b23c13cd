// SPDX-License-Identifier: Apache-2.0
#include "compile/source/watched_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>

namespace quern::compile {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
/// Twice the coarsest resolution of a file system's times.
constexpr std::int64_t kUnsettled = 4 * kSecond;

std::int64_t nanoseconds(const timespec& time) noexcept { return time.tv_sec * kSecond + time.tv_nsec; }

}  // namespace

FileState state_of(const std::string& path) noexcept {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? state_of(info) : FileState();
}

FileState state_of(const struct stat& info) noexcept {
  return {true, info.st_ino, static_cast<std::uint64_t>(info.st_size), nanoseconds(info.st_mtim),
          nanoseconds(info.st_ctim)};
}

WatchedFile watch(std::string path) {
  const FileState state = state_of(path);
  return {std::move(path), state};
}

bool is_unchanged(const std::vector<WatchedFile>& files) noexcept {
  return std::ranges::all_of(files,
                             [](const WatchedFile& file) { return state_of(file.path) == file.state; });
}

bool is_settled(const FileState& state) noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds(now) - std::max(state.modified_ns, state.changed_ns) > kUnsettled;
}

}  // namespace quern::compile
