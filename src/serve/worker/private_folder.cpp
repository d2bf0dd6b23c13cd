// SPDX-License-Identifier: Apache-2.0
#include "serve/worker/private_folder.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace quern::serve {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "quern-precompiled-";
constexpr const char* kInMemory = "/dev/shm";

/// Containers often have little space in memory.
std::string parent_folder(std::uint64_t bytes) {
  std::error_code error;
  if (::access(kInMemory, W_OK | X_OK) == 0 && fs::space(kInMemory, error).available >= bytes && !error)
    return kInMemory;
  return fs::temp_directory_path(error).string();
}

int locked(const std::string& folder) {
  const int lock = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (lock < 0) return -1;
  struct stat info{};
  if (::fstat(lock, &info) == 0 && info.st_uid == ::geteuid() && ::flock(lock, LOCK_EX | LOCK_NB) == 0)
    return lock;
  ::close(lock);
  return -1;
}

/// Folders whose locks nobody holds any more: their processes were killed.
void remove_left_ones(const std::string& parent) {
  std::error_code error;
  for (const fs::directory_entry& each : fs::directory_iterator(parent, error)) {
    if (!each.path().filename().string().starts_with(kPrefix)) continue;
    const int lock = locked(each.path().string());
    if (lock < 0) continue;
    std::error_code ignored;
    fs::remove_all(each.path(), ignored);
    ::close(lock);
  }
}

}  // namespace

PrivateFolder::PrivateFolder(std::uint64_t bytes) {
  const std::string parent = parent_folder(bytes);
  remove_left_ones(parent);
  std::string path = parent + "/" + kPrefix + "XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return;
  path_ = path;
  lock_ = locked(path_);
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace quern::serve
