// SPDX-License-Identifier: Apache-2.0
#include "serve/toolkit_identity.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/digest.hpp"
#include "base/file.hpp"

namespace quern::serve {
namespace {

namespace fs = std::filesystem;

void add_file(base::DigestBuilder& digest, const std::string& name, const fs::path& path) {
  const Expected<std::string> text = base::read_file(path);
  digest.add(name).add(text ? *text : std::string("unreadable"));
}

/// The regular files below `folder` by their names in it, in order.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto at = fs::recursive_directory_iterator(folder, options, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error))
    if (at->is_regular_file(error)) files.push_back(at->path().lexically_relative(folder));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

remote::ToolkitIdentity identify_toolkit(const WorkerHello& hello) {
  base::DigestBuilder digest;
  const fs::path libraries = fs::path(hello.nvrtc_path).parent_path();
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& each : fs::directory_iterator(libraries, error))
    if (each.path().filename().string().starts_with("libnvrtc") && each.is_regular_file(error))
      names.push_back(each.path().filename().string());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) add_file(digest, name, libraries / name);
  for (const std::string& folder : hello.include_directories)
    for (const fs::path& file : files_below(folder)) add_file(digest, file.string(), folder / file);
  return {hello.nvrtc_version, hello.headers_version, digest.finish().hex()};
}

std::string nvrtc_stamp(const std::string& nvrtc_path) {
  struct stat file{};
  if (::stat(nvrtc_path.c_str(), &file) != 0) return "none";
  return fmt::format("{} {} {} {}.{}", nvrtc_path, file.st_ino, file.st_size, file.st_mtim.tv_sec,
                     file.st_mtim.tv_nsec);
}

}  // namespace quern::serve
