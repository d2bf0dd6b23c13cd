// SPDX-License-Identifier: Apache-2.0
#include "cache/store_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace quern::cache {
namespace {

constexpr mode_t kOwnersAlone = 0700;

Diagnostic failure(const char* code, std::string message, const char* hint) {
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.message = std::move(message);
  diagnostic.hint = hint;
  return diagnostic;
}

Diagnostic unopened(const std::string& shown, int error) {
  if (error == ENOENT) return failure("cache-absent", fmt::format("there is no folder {}", shown), "");
  if (error == ELOOP || error == ENOTDIR)
    return failure("cache-unsafe",
                   fmt::format("cannot use {} as compile cache: it is a symbolic link or no folder", shown),
                   "set QUERN_CACHE_DIR to a folder itself, or QUERN_CACHE=0");
  return failure("cache-io", fmt::format("cannot use {} as compile cache: {}", shown, std::strerror(error)),
                 "set QUERN_CACHE_DIR to a folder that may be written, or QUERN_CACHE=0");
}

Expected<File> checked(File folder, const std::string& shown, FolderUse use) {
  struct stat info{};
  if (::fstat(folder.get(), &info) != 0) return unopened(shown, errno);
  if (!is_of_trusted_owner(info, use))
    return failure("cache-unsafe",
                   fmt::format("cannot use {} as compile cache: it belongs to user {}", shown, info.st_uid),
                   "set QUERN_CACHE_DIR to a folder of your own, or QUERN_CACHE=0");
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return failure(
        "cache-unsafe", fmt::format("cannot use {} as compile cache: other users may write to it", shown),
        "run `chmod 700` on it if you trust its content, or set QUERN_CACHE_DIR to another folder");
  return folder;
}

constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// Makes `directory` and those above it that are missing, for the owner alone.
bool make_folders(const std::string& directory) {
  if (::mkdir(directory.c_str(), kOwnersAlone) == 0 || errno == EEXIST) return true;
  const std::size_t slash = directory.find_last_of('/');
  if (errno != ENOENT || slash == std::string::npos || slash == 0) return false;
  if (!make_folders(directory.substr(0, slash))) return false;
  return ::mkdir(directory.c_str(), kOwnersAlone) == 0 || errno == EEXIST;
}

}  // namespace

bool is_of_trusted_owner(const struct stat& info, FolderUse use) noexcept {
  return info.st_uid == ::geteuid() || (use == FolderUse::read && info.st_uid == 0);
}

Expected<File> open_store_root(const std::string& directory, FolderUse use) {
  File folder(::open(directory.c_str(), kFlags));
  if (!folder && errno == ENOENT && use == FolderUse::make) {
    if (!make_folders(directory)) return unopened(directory, errno == ENOENT ? EACCES : errno);
    folder.reset(::open(directory.c_str(), kFlags));
  }
  if (!folder) return unopened(directory, errno);
  return checked(std::move(folder), directory, use);
}

Expected<File> open_store_folder(const File& parent, const std::string& directory, const std::string& name,
                                 FolderUse use) {
  File folder(::openat(parent.get(), name.c_str(), kFlags));
  if (!folder && errno == ENOENT && use == FolderUse::make) {
    if (::mkdirat(parent.get(), name.c_str(), kOwnersAlone) != 0 && errno != EEXIST)
      return unopened(directory + "/" + name, errno);
    folder.reset(::openat(parent.get(), name.c_str(), kFlags));
  }
  if (!folder) return unopened(directory + "/" + name, errno);
  return checked(std::move(folder), directory + "/" + name, use);
}

}  // namespace quern::cache
