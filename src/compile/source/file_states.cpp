// SPDX-License-Identifier: Apache-2.0
#include "compile/source/file_states.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace quern::compile {
namespace {

constexpr std::size_t kSpareDescriptors = 16;
constexpr std::size_t kMostDescriptors = 256;  // includes are not nested deeper in NVRTC

}  // namespace

FileStates::FileStates(const IncludeScan& includes) {
  for (const IncludedFile& file : includes.files) {
    const std::filesystem::path path = file.path;
    add(path.string(), true);
    add(path.has_parent_path() ? path.parent_path().string() : ".", true);
    std::filesystem::path part;
    for (const std::filesystem::path& name : path) add((part /= name).string(), false);
  }
}

void FileStates::add(const std::string& path, bool follow) {
  struct stat status{};
  const int failed = follow ? ::stat(path.c_str(), &status) : ::lstat(path.c_str(), &status);
  if (failed != 0) return states_.push_back({});
  State state{status.st_dev, status.st_ino, status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
  // Folders on the way change whenever a file is made in them: these count by identity alone.
  if (!follow && !S_ISLNK(status.st_mode)) state.changed_s = state.changed_ns = 0;
  states_.push_back(state);
}

bool has_spare_descriptors(const IncludeScan& includes) {
  const std::size_t wanted = std::min(kSpareDescriptors + includes.files.size(), kMostDescriptors);
  std::vector<int> opened;
  for (int last = ::open("/dev/null", O_RDONLY | O_CLOEXEC); last >= 0;
       last = ::fcntl(last, F_DUPFD_CLOEXEC, 0)) {
    opened.push_back(last);
    if (opened.size() == wanted) break;
  }
  for (const int each : opened) ::close(each);
  return opened.size() == wanted;
}

}  // namespace quern::compile
