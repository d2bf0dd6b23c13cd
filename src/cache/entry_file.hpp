// SPDX-License-Identifier: Apache-2.0
// One entry's file: read whole, written and published.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cache/store_folder.hpp"

namespace quern::cache {

/// The bytes of a file; its identity, by which it is recognised again.
struct EntryFile {
  enum class State : std::uint8_t {
    absent,
    read,
    foreign,  ///< no regular file of a trusted owner
    failed,   ///< the system could not read it: `error`
  };
  State state = State::absent;
  int error = 0;
  std::string bytes;
  struct stat info{};
};

/// Reads `name` in `folder`. Sets its time of access if that is more than a minute ago and `use` permits it:
/// the least recently used entry is found by it under all mount options.
EntryFile read_entry_file(const File& folder, const std::string& name, FolderUse use);

/// Writes `name` in `folder` through a temporary file beside it. Returns errno, 0 on success. No signal is
/// raised for a file that becomes too large.
int publish_entry_file(const File& folder, const std::string& name, std::string_view header,
                       std::string_view components, std::string_view content);

/// Begins the name of every temporary file.
inline constexpr std::string_view kTemporaryPrefix = ".tmp-";

/// Moves the file that `info` describes from `folder` to `quarantine`; a file that replaced it stays.
/// Removes it where it cannot be moved.
void set_aside(const File& folder, const std::string& name, const struct stat& info, const File* quarantine);

}  // namespace quern::cache
