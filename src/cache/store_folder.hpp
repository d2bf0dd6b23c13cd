// SPDX-License-Identifier: Apache-2.0
// The folders of a store, opened anew for each use: a program may close every file descriptor that it did not
// open itself, and a folder may be removed while programs run.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/unique_handle.hpp"
#include "quern/expected.hpp"

namespace quern::cache {

struct FileTraits {
  using type = int;
  static int null() noexcept { return -1; }
  static void release(int file) noexcept { ::close(file); }
};
using File = base::UniqueHandle<FileTraits>;

/// Names below a store's directory. The layout: another one gets a folder of its own beside it.
inline constexpr const char* kLayout = "v1";
inline constexpr const char* kQuarantine = "quarantine";
inline constexpr const char* kUsage = "usage";
inline constexpr const char* kLocks = "locks";
inline constexpr const char* kCounts = "counts";

enum class FolderUse : std::uint8_t {
  read,   ///< also a folder of root's
  write,  ///< must be the user's own
  make,   ///< as write; made with mode 0700 if it is not there
};

/// Opens `directory` itself. Rejects a symbolic link, a folder of another user and one that
/// others may write to (code "cache-unsafe"); "cache-absent": there is none; "cache-io": another reason.
Expected<File> open_store_root(const std::string& directory, FolderUse use);
/// Opens the folder `name` in `parent`, by the same rules. Messages show it below `directory`.
Expected<File> open_store_folder(const File& parent, const std::string& directory, const std::string& name,
                                 FolderUse use);

/// True if an entry with this owner may be read.
bool is_of_trusted_owner(const struct stat& info, FolderUse use) noexcept;

}  // namespace quern::cache
