// SPDX-License-Identifier: Apache-2.0
// Counts of a store's answers over all processes that have ended: the file `counts` beside the entries. Each
// process adds its numbers once, when it exits, so that a hit costs nothing more.
#pragma once

#include <cstdint>

#include "cache/disk_store.hpp"

namespace quern::cache {

/// Numbers of processes that called exit() or returned from main().
struct StoreCounts {
  std::uint64_t processes = 0;
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;  ///< lookups without an answer; a new entry is looked for more than once
  std::uint64_t writes = 0;  ///< entries that had to be made

  friend bool operator==(const StoreCounts&, const StoreCounts&) = default;
};

/// Zeros where there are none.
StoreCounts read_counts(const DiskStoreOptions& options);

/// Adds to the numbers; where others hold the file for longer than a few milliseconds, they are lost.
void add_counts(const DiskStoreOptions& options, const StoreCounts& more);

/// exit() in this process adds the store's numbers. The store is never destroyed.
void add_counts_at_exit(const DiskStore& store);

}  // namespace quern::cache
