// SPDX-License-Identifier: Apache-2.0
// The state of files by which a later process knows that nothing has changed, without reading them.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

namespace quern::compile {

/// The answer of stat(); links are followed. The time of change cannot be set by programs, so that a file
/// with the same state has the same content, unless it was changed within the resolution of the clock.
struct FileState {
  bool exists = false;
  std::uint64_t inode = 0;
  std::uint64_t size_bytes = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  friend bool operator==(const FileState&, const FileState&) = default;
};

FileState state_of(const std::string& path) noexcept;
FileState state_of(const struct stat& info) noexcept;

struct WatchedFile {
  std::string path;
  FileState state;
};

WatchedFile watch(std::string path);
bool is_unchanged(const std::vector<WatchedFile>& files) noexcept;
/// False if one was changed so recently that a further change could leave the same state.
bool is_settled(const FileState& state) noexcept;

}  // namespace quern::compile
