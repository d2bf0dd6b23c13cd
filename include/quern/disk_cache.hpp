// SPDX-License-Identifier: Apache-2.0
// component: session
// The compile cache on disk: its entries, and the reasons why a source is or is not in it. docs/caching.md
// describes it for users. These functions look at the folder that QUERN_CACHE, QUERN_CACHE_DIR,
// XDG_CACHE_HOME and HOME name at the time of the call. They throw Error(io) if that folder cannot be used.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "quern/export.hpp"
#include "quern/stage.hpp"

namespace quern {

/// A part of a key: something that NVRTC sees, by name. The value is a text, or the SHA-256 of one.
struct CacheComponent {
  std::string name;
  std::string value;
};

/// One entry.
struct CacheEntry {
  std::string key;  ///< 64 hexadecimal digits
  std::string
      kind;  ///< "ptx_image", "failed_compile", "machine_code", ... as docs/cache-format.md lists them
  std::uint64_t size_bytes = 0;
  std::int64_t made_s = 0;                 ///< Unix time in seconds
  std::int64_t used_s = 0;                 ///< of the last use, to a minute
  std::vector<CacheComponent> components;  ///< of the key; empty for toolkit_facts
};

/// Sums over the processes that used the cache and called exit() or returned from main(), since the cache was
/// cleared.
struct DiskCacheUse {
  std::uint64_t process_count = 0;
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;  ///< lookups without an answer; a new entry is looked for more than once
  std::uint64_t writes = 0;  ///< entries that were made: of `hits + writes` needed ones, `hits` were there
};

struct DiskCacheInfo {
  bool is_on = false;
  std::string reason;  ///< why it is off
  std::string directory;
  bool read_only = false;
  std::uint64_t entry_count = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t max_bytes = 0;        ///< the bound of size_bytes
  std::uint64_t set_aside_count = 0;  ///< damaged entries in the folder's `quarantine`
  DiskCacheUse use;
};

QUERN_API DiskCacheInfo disk_cache_info();
/// Ordered by key. Empty if the cache is off.
QUERN_API std::vector<CacheEntry> disk_cache_entries();

struct DiskCacheVerification {
  std::size_t checked_count = 0;
  std::vector<std::string> damaged;  ///< names of files; they are set aside
};
/// Reads every entry.
QUERN_API DiskCacheVerification verify_disk_cache();
/// Removes all entries, and what was set aside. Returns how many entries it removed.
QUERN_API std::size_t clear_disk_cache();

/// The disk cache's state of a source.
struct CacheExplanation {
  std::string uncached_reason;  ///< not empty if the source is compiled each time; it has no key then
  std::string key;
  std::vector<CacheComponent> components;
};
/// Describes the kernel file, under these options, as stage_text() would compile it for its PTX. Throws
/// CompileError, Error(not_found) if there is neither NVRTC nor knowledge of one.
QUERN_API CacheExplanation explain_compile(const std::filesystem::path& file,
                                           const StageOptions& options = {});

}  // namespace quern
