// SPDX-License-Identifier: Apache-2.0
#include "cache/disk_store.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>

#include "base/log.hpp"
#include "base/thread.hpp"
#include "cache/entry_file.hpp"
#include "cache/store_folder.hpp"

namespace quern::cache {
namespace {

/// Of the layout of the folder; another layout gets a folder of its own beside this one.
constexpr const char* kLayout = "v1";
constexpr const char* kQuarantine = "quarantine";
/// Entries beyond these are removed instead of set aside.
constexpr std::size_t kMostSetAside = 64;

void debug(std::string text) noexcept { base::log({LogLevel::debug, std::move(text), {}}); }

std::size_t count_files(const File& folder) noexcept {
  const int copy = ::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const listing = copy >= 0 ? ::fdopendir(copy) : nullptr;
  if (listing == nullptr) {
    if (copy >= 0) ::close(copy);
    return 0;
  }
  std::size_t count = 0;
  while (const dirent* each = ::readdir(listing))
    if (each->d_name[0] != '.') ++count;
  ::closedir(listing);
  return count;
}

/// The place of an entry: the first byte of its key names the folder.
struct Place {
  Place(EntryKind kind, const base::Digest& key) {
    const std::string hex = key.hex();
    folder = hex.substr(0, 2);
    file = hex.substr(2) + entry_suffix(kind);
  }
  std::string folder;
  std::string file;
};

}  // namespace

struct DiskStore::State {
  explicit State(DiskStoreOptions given) : options(std::move(given)) {}

  const DiskStoreOptions options;
  std::atomic<std::uint64_t> hits{0};
  std::atomic<std::uint64_t> misses{0};
  std::atomic<std::uint64_t> writes{0};
  std::atomic<std::uint64_t> failed_writes{0};
  std::atomic<std::uint64_t> damaged{0};
  std::atomic<bool> told_folder{false};
  std::atomic<bool> told_write{false};

  FolderUse reading() const noexcept { return options.read_only ? FolderUse::read : FolderUse::write; }

  void tell_once(std::atomic<bool>& told, const Diagnostic& diagnostic) const {
    if (told.exchange(true)) return;
    const bool is_grave = options.is_users_choice || diagnostic.code != "cache-io";
    std::string text = diagnostic.message + "; kernels are compiled again by each process";
    if (!diagnostic.hint.empty()) text += "; " + diagnostic.hint;
    base::log(
        {is_grave ? LogLevel::warning : LogLevel::debug, std::move(text), {{"cache", options.directory}}});
  }

  /// The folder `name` below this layout's.
  Expected<File> open(const std::string& name, FolderUse use) {
    Expected<File> folder = open_store_root(options.directory, use);
    for (const std::string& each : {std::string(kLayout), name})
      if (folder) folder = open_store_folder(*folder, options.directory, each, use);
    if (!folder && (use == FolderUse::make || folder.errors().front().code == "cache-unsafe"))
      tell_once(told_folder, folder.errors().front());
    return folder;
  }

  void put_aside(const File& folder, const Place& place, const EntryFile& file, const std::string& why) {
    ++damaged;
    if (!options.read_only) {
      const Expected<File> quarantine = open(kQuarantine, FolderUse::make);
      const bool has_room = quarantine && count_files(*quarantine) < kMostSetAside;
      set_aside(folder, place.file, file.info, has_room ? &*quarantine : nullptr);
    }
    base::log({LogLevel::warning,
               fmt::format("the cache entry {}/{}/{}/{} is damaged: {}; it is set aside and made again",
                           options.directory, kLayout, place.folder, place.file, why),
               {{"cache", options.directory}}});
  }

  std::optional<std::string> get(EntryKind kind, const base::Digest& key) {
    const Place place(kind, key);
    const Expected<File> folder = open(place.folder, reading());
    if (!folder) return std::nullopt;
    EntryFile file = read_entry_file(*folder, place.file, reading());
    switch (file.state) {
      case EntryFile::State::absent:
        return std::nullopt;
      case EntryFile::State::failed:
        debug(fmt::format("cannot read cache entry {}: {}", place.file, std::strerror(file.error)));
        return std::nullopt;
      case EntryFile::State::foreign:
        put_aside(*folder, place, file, "it is not a file of this user's");
        return std::nullopt;
      case EntryFile::State::read:
        break;
    }
    const Expected<EntryParts> parts = read_entry(file.bytes);
    if (!parts || parts->kind != kind || parts->key != key) {
      put_aside(*folder, place, file,
                parts ? "it is the entry of another key" : parts.errors().front().message);
      return std::nullopt;
    }
    file.bytes.erase(0, file.bytes.size() - parts->content.size());
    return std::move(file.bytes);
  }

  void put(EntryKind kind, const base::Digest& key, std::string_view bytes, std::string_view components) {
    if (options.read_only || components.size() > kMostEntryBytes || bytes.size() > kMostEntryBytes) return;
    if (kEntryHeaderBytes + components.size() + bytes.size() > options.max_bytes) return;
    const Place place(kind, key);
    const std::string header = entry_header(kind, key, components, bytes);
    int error = ENOENT;
    // Another process may remove the folder between opening it and writing to it (`quern cache clear`).
    for (int attempt = 0; attempt < 3 && error == ENOENT; ++attempt) {
      const Expected<File> folder = open(place.folder, FolderUse::make);
      if (!folder) {
        ++failed_writes;
        return;
      }
      error = publish_entry_file(*folder, place.file, header, components, bytes);
    }
    if (error == 0) {
      ++writes;
      return;
    }
    ++failed_writes;
    Diagnostic diagnostic;
    diagnostic.code = "cache-write";
    diagnostic.message =
        fmt::format("cannot write to the compile cache {}: {}", options.directory, std::strerror(error));
    tell_once(told_write, diagnostic);
  }
};

DiskStore::DiskStore(DiskStoreOptions options) : state_(std::make_unique<State>(std::move(options))) {}
DiskStore::~DiskStore() = default;

std::optional<std::string> DiskStore::get(EntryKind kind, const base::Digest& key) noexcept {
  const base::NoCancellation whole;
  std::optional<std::string> bytes;
  try {
    bytes = state_->get(kind, key);
  } catch (const std::exception& error) {  // no memory
    debug(error.what());
  }
  ++(bytes ? state_->hits : state_->misses);
  return bytes;
}

void DiskStore::put(EntryKind kind, const base::Digest& key, std::string_view bytes,
                    std::string_view components) noexcept {
  const base::NoCancellation whole;
  try {
    state_->put(kind, key, bytes, components);
  } catch (const std::exception& error) {
    debug(error.what());
  }
}

std::optional<std::string> DiskStore::get_or_compute(EntryKind kind, const base::Digest& key,
                                                     const Compute& compute) {
  if (std::optional<std::string> bytes = get(kind, key)) return bytes;
  std::optional<std::string> made = compute();
  if (made) put(kind, key, *made);
  return made;
}

const DiskStoreOptions& DiskStore::options() const noexcept { return state_->options; }

DiskStoreStats DiskStore::stats() const noexcept {
  return {state_->hits, state_->misses, state_->writes, state_->failed_writes, state_->damaged};
}

}  // namespace quern::cache
