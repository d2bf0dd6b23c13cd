// SPDX-License-Identifier: Apache-2.0
// The contents of a store, for `quern cache`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/disk_store.hpp"

namespace quern::cache {

struct ListedEntry {
  EntryKind kind = EntryKind::ptx_image;
  base::Digest key;
  std::uint64_t size_bytes = 0;
  std::int64_t made_s = 0;  ///< Unix time
  std::int64_t used_s = 0;
  std::string components;
};

/// Entries whose header is sound; their contents are not read. Ordered by key.
Expected<std::vector<ListedEntry>> list_entries(const DiskStoreOptions& options);

/// Reads every entry; damaged ones are set aside. Then holds the store to its bound, and removes what killed
/// writers left. Returns how many were read, and the names of the damaged.
struct Verification {
  std::size_t checked_count = 0;
  std::vector<std::string> damaged;
};
Expected<Verification> verify_entries(const DiskStoreOptions& options);

/// Removes all entries and what was set aside; returns how many. Entries of which another process has begun
/// reading stay whole for it.
Expected<std::size_t> clear_entries(const DiskStoreOptions& options);

/// The entries that were set aside.
std::size_t count_set_aside(const DiskStoreOptions& options);

}  // namespace quern::cache
