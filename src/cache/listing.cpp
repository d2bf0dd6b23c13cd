// SPDX-License-Identifier: Apache-2.0
#include "cache/listing.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cache/entry_file.hpp"
#include "cache/folder_listing.hpp"
#include "cache/store_folder.hpp"
#include "cache/usage.hpp"

namespace quern::cache {
namespace {

constexpr std::uint64_t kMostComponentsBytes = 16 << 20;

FolderUse use_of(const DiskStoreOptions& options) {
  return options.read_only ? FolderUse::read : FolderUse::write;
}

/// Calls `each` with every folder of entries. A store that does not exist yet has none.
template <class Each>
Expected<void> for_each_folder(const DiskStoreOptions& options, const Each& each) {
  const FolderUse use = use_of(options);
  Expected<File> root = open_store_root(options.directory, use);
  Expected<File> layout = root ? open_store_folder(*root, options.directory, kLayout, use) : std::move(root);
  if (!layout && layout.errors().front().code == "cache-absent") return {};
  if (!layout) return std::move(layout).errors();
  for (unsigned index = 0; index < kFolderCount; ++index)
    if (const Expected<File> folder = open_store_folder(*layout, options.directory, folder_name(index), use))
      each(*folder, folder_name(index));
  return {};
}

Diagnostic not_removed(const std::string& directory, const std::string& reason) {
  Diagnostic diagnostic;
  diagnostic.code = "io";
  diagnostic.message = fmt::format("cannot remove the entries of {}: {}", directory, reason);
  return diagnostic;
}

bool read_part(const File& file, std::uint64_t at, std::string& bytes) {
  return ::pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(at)) ==
         static_cast<ssize_t>(bytes.size());
}

/// The entry in this file, if its header is sound and the name is that of its key.
std::optional<ListedEntry> read_listed(const File& folder, const std::string& folder_name,
                                       const std::string& name, const struct stat& info) {
  const File file(
      ::openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  std::string bytes(kEntryHeaderBytes, '\0');
  if (!file || !read_part(file, 0, bytes)) return std::nullopt;
  const Expected<EntryHeader> header = read_entry_header(bytes);
  if (!header || header->components_bytes > kMostComponentsBytes ||
      folder_name + name != header->key.hex() + entry_suffix(header->kind))
    return std::nullopt;
  ListedEntry entry{header->kind,
                    header->key,
                    static_cast<std::uint64_t>(info.st_size),
                    info.st_mtim.tv_sec,
                    std::max(info.st_atim.tv_sec, info.st_mtim.tv_sec),
                    {}};
  entry.components.resize(static_cast<std::size_t>(header->components_bytes));
  if (!read_part(file, kEntryHeaderBytes, entry.components)) return std::nullopt;
  return entry;
}

}  // namespace

Expected<std::vector<ListedEntry>> list_entries(const DiskStoreOptions& options) {
  std::vector<ListedEntry> entries;
  Expected<void> good = for_each_folder(options, [&](const File& folder, const std::string& folder_name) {
    for_each_file(folder, [&](const std::string& name, const struct stat& info) {
      if (!S_ISREG(info.st_mode) || !is_of_trusted_owner(info, use_of(options))) return;
      if (std::optional<ListedEntry> entry = read_listed(folder, folder_name, name, info))
        entries.push_back(*std::move(entry));
    });
  });
  if (!good) return std::move(good).errors();
  std::ranges::sort(entries, {}, &ListedEntry::key);
  return entries;
}

Expected<Verification> verify_entries(const DiskStoreOptions& options) {
  Verification result;
  DiskStore store(options);
  Expected<void> good = for_each_folder(options, [&](const File& folder, const std::string& folder_name) {
    std::vector<std::string> names;  // the folder changes while damaged entries are set aside
    for_each_file(folder, [&](const std::string& name, const struct stat&) {
      if (!name.starts_with(kTemporaryPrefix)) names.push_back(name);
    });
    for (const std::string& name : names) {
      ++result.checked_count;
      if (!store.is_sound(folder_name, name)) result.damaged.push_back(folder_name + "/" + name);
    }
  });
  if (!good) return std::move(good).errors();
  if (options.read_only) return result;
  const Expected<File> root = open_store_root(options.directory, FolderUse::write);
  if (!root) return result;
  if (const Expected<File> layout = open_store_folder(*root, options.directory, kLayout, FolderUse::write))
    trim(*layout, options.max_bytes);
  return result;
}

Expected<std::size_t> clear_entries(const DiskStoreOptions& options) {
  std::size_t count = 0;
  int failure = 0;
  const auto clear = [&](const File& folder) {
    std::vector<std::string> names;
    for_each_file(folder, [&](const std::string& name, const struct stat&) { names.push_back(name); });
    for (const std::string& name : names)
      if (::unlinkat(folder.get(), name.c_str(), 0) == 0)
        ++count;
      else if (errno != ENOENT)  // another process removed it
        failure = errno;
  };
  if (options.read_only) return not_removed(options.directory, "it is used read-only (QUERN_CACHE=ro)");
  Expected<void> good =
      for_each_folder(options, [&](const File& folder, const std::string&) { clear(folder); });
  if (!good) return std::move(good).errors();
  if (failure != 0) return not_removed(options.directory, std::strerror(failure));
  const Expected<File> root = open_store_root(options.directory, FolderUse::write);
  const Expected<File> layout = root ? open_store_folder(*root, options.directory, kLayout, FolderUse::write)
                                     : Expected<File>(root.errors());
  if (!layout) return count;
  const std::size_t entries = count;
  if (const Expected<File> folder =
          open_store_folder(*layout, options.directory, kQuarantine, FolderUse::write))
    clear(*folder);
  ::unlinkat(layout->get(), kCounts, 0);
  ::unlinkat(layout->get(), kUsage, 0);  // made anew, with the true numbers, by the next writer
  return entries;
}

std::size_t count_set_aside(const DiskStoreOptions& options) {
  const Expected<File> root = open_store_root(options.directory, use_of(options));
  if (!root) return 0;
  const Expected<File> layout = open_store_folder(*root, options.directory, kLayout, use_of(options));
  if (!layout) return 0;
  const Expected<File> folder = open_store_folder(*layout, options.directory, kQuarantine, use_of(options));
  std::size_t count = 0;
  if (folder) for_each_file(*folder, [&](const std::string&, const struct stat&) { ++count; });
  return count;
}

}  // namespace quern::cache
