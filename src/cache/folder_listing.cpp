// SPDX-License-Identifier: Apache-2.0
#include "cache/folder_listing.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <memory>
#include <string_view>

namespace quern::cache {

bool for_each_file(const File& folder,
                   const std::function<void(const std::string&, const struct stat&)>& each) {
  File copy(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));  // reading moves its position
  if (!copy) return false;
  const auto close = [](DIR* listing) { ::closedir(listing); };
  const std::unique_ptr<DIR, decltype(close)> listing(::fdopendir(copy.get()), close);
  if (listing == nullptr) return false;
  static_cast<void>(copy.release());  // closed with the listing
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string name = static_cast<const char*>(entry->d_name);
    struct stat info{};
    if (name == "." || name == ".." || ::fstatat(folder.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    each(name, info);
  }
  return true;
}

}  // namespace quern::cache
