// SPDX-License-Identifier: Apache-2.0
#include "cache/disk_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>

#include "base/log.hpp"
#include "base/thread.hpp"
#include "cache/entry_file.hpp"
#include "cache/folder_listing.hpp"
#include "cache/store_folder.hpp"
#include "cache/usage.hpp"

namespace quern::cache {
namespace {

/// Entries beyond these are removed instead of set aside.
constexpr std::size_t kMostSetAside = 64;
/// A holder that takes longer may be stopped forever.
constexpr std::chrono::seconds kLongestWait{60};

void debug(std::string text) noexcept { base::log({LogLevel::debug, std::move(text), {}}); }

std::size_t count_files(const File& folder) {
  std::size_t count = 0;
  for_each_file(folder, [&](const std::string&, const struct stat&) { ++count; });
  return count;
}

/// The location of an entry: the first byte of its key names the folder.
struct EntryLocation {
  EntryLocation(EntryKind kind, const base::Digest& key) {
    const std::string hex = key.hex();
    index = key.bytes[0];
    folder = folder_name(index);
    file = hex.substr(2) + entry_suffix(kind);
  }
  EntryLocation(std::string folder_name, std::string file_name)
      : folder(std::move(folder_name)), file(std::move(file_name)) {}

  bool is_of(const EntryParts& parts) const {
    return folder + file == parts.key.hex() + entry_suffix(parts.kind);
  }

  unsigned index = 0;
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
  std::atomic<std::uint64_t> evictions{0};
  std::atomic<bool> told_folder{false};
  std::atomic<bool> told_write{false};
  std::atomic<bool> has_cleaned{false};

  FolderUse reading() const noexcept { return options.read_only ? FolderUse::read : FolderUse::write; }

  void tell_once(std::atomic<bool>& told, const Diagnostic& diagnostic) const {
    if (told.exchange(true)) return;
    // libquern.so and the CPU device's plug-in have a store each, on one folder.
    const bool is_grave =
        (options.is_users_choice || diagnostic.code != "cache-io") && !base::is_log_forwarded();
    std::string text = diagnostic.message + "; kernels are compiled again by each process";
    if (!diagnostic.hint.empty()) text += "; " + diagnostic.hint;
    base::log(
        {is_grave ? LogLevel::warning : LogLevel::debug, std::move(text), {{"cache", options.directory}}});
  }

  Expected<File> open_layout(FolderUse use) {
    const Expected<File> root = open_store_root(options.directory, use);
    if (!root) return root.errors();
    return open_store_folder(*root, options.directory, kLayout, use);
  }

  /// The folder `name` below this layout's.
  Expected<File> open(const std::string& name, FolderUse use) {
    Expected<File> folder = open_layout(use);
    if (folder) folder = open_store_folder(*folder, options.directory + "/" + kLayout, name, use);
    if (!folder && (use == FolderUse::make || folder.errors().front().code == "cache-unsafe"))
      tell_once(told_folder, folder.errors().front());
    return folder;
  }

  void put_aside(const File& folder, const EntryLocation& location, const EntryFile& file,
                 const std::string& why) {
    ++damaged;
    if (!options.read_only) {
      const Expected<File> quarantine = open(kQuarantine, FolderUse::make);
      const bool has_room = quarantine && count_files(*quarantine) < kMostSetAside;
      set_aside(folder, location.file, file.info, has_room ? &*quarantine : nullptr);
    }
    base::log({LogLevel::warning,
               fmt::format("the cache entry {}/{}/{}/{} is damaged: {}; it is set aside and made again",
                           options.directory, kLayout, location.folder, location.file, why),
               {{"cache", options.directory}}});
  }

  std::optional<std::string> get(EntryKind kind, const base::Digest& key) {
    return get(EntryLocation(kind, key));
  }

  std::optional<std::string> get(const EntryLocation& location) {
    const Expected<File> folder = open(location.folder, reading());
    if (!folder) return std::nullopt;
    EntryFile file = read_entry_file(*folder, location.file, reading());
    switch (file.state) {
      case EntryFile::State::absent:
        return std::nullopt;
      case EntryFile::State::failed:
        debug(fmt::format("cannot read cache entry {}: {}", location.file, std::strerror(file.error)));
        return std::nullopt;
      case EntryFile::State::foreign:
        put_aside(*folder, location, file, "it is not a file of this user's");
        return std::nullopt;
      case EntryFile::State::read:
        break;
    }
    const Expected<EntryParts> parts = read_entry(file.bytes);
    if (!parts || !location.is_of(*parts)) {
      put_aside(*folder, location, file,
                parts ? "it is the entry of another key" : parts.errors().front().message);
      return std::nullopt;
    }
    file.bytes.erase(0, file.bytes.size() - parts->content.size());
    return std::move(file.bytes);
  }

  void put(EntryKind kind, const base::Digest& key, std::string_view bytes, std::string_view components) {
    if (options.read_only || components.size() > kMostEntryBytes || bytes.size() > kMostEntryBytes) return;
    if (kEntryHeaderBytes + components.size() + bytes.size() > options.max_bytes) return;
    const EntryLocation location(kind, key);
    const std::string header = entry_header(kind, key, components, bytes);
    int error = ENOENT;
    // Another process may remove the folder between opening it and writing to it (`quern cache clear`).
    for (int attempt = 0; attempt < 3 && error == ENOENT; ++attempt) {
      const Expected<File> folder = open(location.folder, FolderUse::make);
      if (!folder) {
        ++failed_writes;
        return;
      }
      // Keys are evenly spread: all writers together look through all folders.
      if (!has_cleaned.exchange(true)) remove_stale(*folder);
      error = publish_entry_file(*folder, location.file, header, components, bytes);
    }
    if (error == 0) {
      ++writes;
      if (const Expected<File> layout = open_layout(FolderUse::write))
        evictions += note_written(*layout, location.index, header.size() + components.size() + bytes.size(),
                                  options.max_bytes);
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

DiskStore::Claim DiskStore::claim(const base::Digest& key, const std::function<bool()>& goes_on) {
  if (state_->options.read_only) return {};
  const base::NoCancellation whole;
  const Expected<File> layout = state_->open_layout(FolderUse::make);
  if (!layout) return {};
  // One byte of the file for each key, far behind its end: the file stays empty.
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < 8; ++i) at = (at << 8) | key.bytes[i];
  return RangeLock::wait(open_lock_file(*layout, kLocks), at & (UINT64_MAX >> 2), 1, kLongestWait, goes_on);
}

std::optional<std::string> DiskStore::get_or_compute(EntryKind kind, const base::Digest& key,
                                                     const Compute& compute) {
  if (std::optional<std::string> bytes = get(kind, key)) return bytes;
  const Claim own = claim(key);
  if (std::optional<std::string> bytes = get(kind, key)) return bytes;  // another's, meanwhile
  std::optional<std::string> made = compute();
  if (made) put(kind, key, *made);
  return made;
}

bool DiskStore::is_sound(const std::string& folder, const std::string& file) {
  return state_->get(EntryLocation(folder, file)).has_value();
}

const DiskStoreOptions& DiskStore::options() const noexcept { return state_->options; }

DiskStoreStats DiskStore::stats() const noexcept {
  return {state_->hits,          state_->misses,  state_->writes,
          state_->failed_writes, state_->damaged, state_->evictions};
}

}  // namespace quern::cache
