// SPDX-License-Identifier: Apache-2.0
// Bundles: files of entries that were made in advance (`quern cache warm -o`) and are only read.
// docs/cache-format.md describes the file.
//
// The file is not trusted. With a key file, a bundle counts only if one of its keys sealed it; without
// one, only if the file is the user's or root's and no other user may write to it. An entry is read with
// pread(), never mapped, and is compared with its hash in the index before it is used.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/signing_keys.hpp"
#include "cache/bundle_format.hpp"
#include "cache/store_folder.hpp"

namespace quern::cache {

using BundleKeys = std::shared_ptr<const base::SigningKeys>;

/// A bundle's index and the open file that it was read from.
struct OpenBundle {
  File file;
  struct stat info{};
  BundleIndex index;

  /// The body of an entry, checked. Returns nothing if it is damaged or cannot be read.
  std::optional<std::string> body(const BundleRow& row) const;
};

/// Opens the file and reads its index. Errors: code "bundle" for files that are refused, "io" for those that
/// cannot be read. `keys` may be null.
Expected<OpenBundle> open_bundle(const std::string& path, const BundleKeys& keys);

/// A bundle for lookups. Its index is read at the first lookup, and again if another file has replaced it.
/// Thread-safe; holds no lock and keeps no file open, so that forked children may use it.
class Bundle {
 public:
  Bundle(std::string path, BundleKeys keys);
  ~Bundle();
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;

  /// The content under the key, checked. Returns nothing if it is not there, or the file is refused or
  /// damaged, which one warning in the log says.
  std::optional<std::string> get(EntryKind kind, const base::Digest& key) noexcept;

  const std::string& path() const noexcept { return path_; }
  std::uint64_t hits() const noexcept { return hits_; }
  std::uint64_t damaged() const noexcept { return damaged_; }

 private:
  struct Loaded;
  std::optional<std::string> read(EntryKind kind, const base::Digest& key);
  const Loaded* load(OpenBundle& open);
  void tell(const std::string& why);

  const std::string path_;
  const BundleKeys keys_;
  std::atomic<const Loaded*> loaded_{nullptr};
  std::atomic<std::uint64_t> hits_{0};
  std::atomic<std::uint64_t> damaged_{0};
  std::atomic<bool> told_{false};
};

/// The meaning of QUERN_CACHE_BUNDLES and QUERN_CACHE_BUNDLE_KEY now.
struct BundleSettings {
  std::vector<std::string> paths;  ///< absolute
  BundleKeys keys;                 ///< null if no keys are given
  std::string refusal;             ///< the reason why no bundle may be used; empty if they may
};
BundleSettings bundle_settings_of_environment();

/// The process's bundles in the order of QUERN_CACHE_BUNDLES, as the environment says at the first call.
/// Never destroyed.
std::span<Bundle* const> process_bundles() noexcept;

/// True if QUERN_CACHE_BUNDLE_TOOLKIT=any: bundles count also where NVRTC is another than theirs.
bool takes_any_bundle_toolkit();

/// The content under the key in the first bundle that has it.
std::optional<std::string> find_in_bundles(EntryKind kind, const base::Digest& key) noexcept;

}  // namespace quern::cache
