// SPDX-License-Identifier: Apache-2.0
#include "compile/toolkit/header_tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "cache/folder_listing.hpp"
#include "compile/source/watched_file.hpp"

namespace quern::compile {
namespace {

constexpr std::int64_t kBetweenLooks_ns = 2'000'000'000;
constexpr std::size_t kMostFiles = 20'000;
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

/// Adds the files below `folder`, which is at `path`; links are followed. Returns false if it cannot be read
/// whole.
bool add_files(const cache::File& folder, const std::string& path, unsigned depth,
               std::vector<WatchedFile>& files) {
  constexpr unsigned kDeepest = 40;  // a link may lead upwards
  if (!folder || depth > kDeepest) return false;
  std::vector<std::string> folders;
  const bool is_read = cache::for_each_file(folder, [&](const std::string& name, struct stat info) {
    if (S_ISLNK(info.st_mode) && ::fstatat(folder.get(), name.c_str(), &info, 0) != 0) return;
    if (S_ISDIR(info.st_mode))
      folders.push_back(name);
    else
      files.push_back({path + "/" + name, state_of(info)});
  });
  if (!is_read || files.size() > kMostFiles) return false;
  return std::ranges::all_of(folders, [&](const std::string& name) {
    return add_files(cache::File(::openat(folder.get(), name.c_str(), kFolder)), path + "/" + name, depth + 1,
                     files);
  });
}

/// The files below the directories, each once, in an order that does not depend on the file system.
std::optional<std::vector<WatchedFile>> files_below(const std::vector<std::string>& directories) {
  std::vector<WatchedFile> files;
  for (const std::string& directory : directories) {
    const bool is_inside = std::ranges::any_of(
        directories, [&](const std::string& other) { return directory.starts_with(other + "/"); });
    if (!is_inside && !add_files(cache::File(::open(directory.c_str(), kFolder)), directory, 0, files))
      return std::nullopt;
  }
  std::ranges::sort(files, {}, &WatchedFile::path);
  return files;
}

base::Digest digest_of_states(const std::vector<WatchedFile>& files) {
  base::DigestBuilder digest;
  digest.add("states of header files, for contents by their place below");
  for (const WatchedFile& file : files)
    digest.add(file.path)
        .add(file.state.inode)
        .add(file.state.size_bytes)
        .add(static_cast<std::uint64_t>(file.state.modified_ns))
        .add(static_cast<std::uint64_t>(file.state.changed_ns));
  return digest.finish();
}

/// The same for the same headers, wherever they are installed.
std::optional<base::Digest> digest_of_contents(const std::vector<std::string>& directories,
                                               const std::vector<WatchedFile>& files) {
  base::DigestBuilder digest;
  digest.add("contents of header files");
  for (const WatchedFile& file : files) {
    const Expected<std::string> text = base::read_file(file.path);
    if (!text) return std::nullopt;
    std::string_view place = file.path;
    for (const std::string& directory : directories)
      if (place.starts_with(directory + "/")) place.remove_prefix(directory.size() + 1);
    digest.add(place).add(*text);
  }
  return digest.finish();
}

}  // namespace

std::optional<base::Digest> HeaderTree::contents() const {
  const std::optional<std::vector<WatchedFile>> files = files_below(directories_);
  return files ? digest_of_contents(directories_, *files) : std::nullopt;
}

std::optional<base::Digest> HeaderTree::compute() const {
  const std::optional<std::vector<WatchedFile>> files = files_below(directories_);
  if (!files) return std::nullopt;
  const base::Digest states = digest_of_states(*files);
  if (store_ == nullptr) return states;
  base::Digest contents;
  const std::string_view place(reinterpret_cast<const char*>(contents.bytes.data()), contents.bytes.size());
  if (const std::optional<std::string> known = store_->get(cache::EntryKind::toolkit_facts, states);
      known && known->size() == place.size()) {
    std::ranges::copy(*known, contents.bytes.begin());
    return contents;
  }
  const std::optional<base::Digest> made = digest_of_contents(directories_, *files);
  if (!made || !is_unchanged(*files)) return std::nullopt;
  contents = *made;
  if (std::ranges::all_of(*files, [](const WatchedFile& file) { return is_settled(file.state); }))
    store_->put(cache::EntryKind::toolkit_facts, states, place);
  return contents;
}

std::optional<base::Digest> HeaderTree::digest(bool anew) {
  const base::LockGuard lock(mutex_);
  const std::int64_t now_ns = base::now_ns();
  if (!anew && looked_ns_ != 0 && now_ns - looked_ns_ < kBetweenLooks_ns) return last_;
  last_ = compute();
  looked_ns_ = base::now_ns();
  return last_;
}

}  // namespace quern::compile
