// SPDX-License-Identifier: Apache-2.0
// component: session
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "quern/compile_stats.hpp"
#include "quern/export.hpp"

namespace quern {

/// One tier of the compile cache.
struct CacheTierStats {
  std::uint64_t hits = 0;       ///< requests that this tier answered
  std::uint64_t waits = 0;      ///< requests that waited for an equal one, which another thread had begun
  std::uint64_t misses = 0;     ///< requests that were passed on, and succeeded
  std::uint64_t failures = 0;   ///< requests that were passed on, and failed
  std::uint64_t evictions = 0;  ///< entries dropped to stay within the bound
  std::uint64_t entry_count = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t max_bytes = 0;  ///< the bound of `size_bytes`
};

/// The compiler's part of the cache on disk: compiled sources, and facts about NVRTC. The CPU device's
/// machine code is not counted here.
struct DiskCacheStats {
  std::string directory;
  bool read_only = false;
  std::uint64_t max_bytes = 0;  ///< the bound of the size of all entries
  std::uint64_t hits = 0;       ///< look-ups that found an entry
  std::uint64_t misses = 0;     ///< look-ups that found none; compiling a new source makes up to four
  std::uint64_t writes = 0;
  std::uint64_t failed_writes = 0;
  std::uint64_t damaged = 0;    ///< entries that were found damaged, and set aside
  std::uint64_t evictions = 0;  ///< entries that this process removed to stay within the bound
};

/// Counts of the whole process since its start.
struct CompileCacheStats {
  CompileStats compiles;
  CacheTierStats memory;  ///< PTX of sources, in this process
  /// Nothing without that cache: QUERN_CACHE=0, or no folder for it.
  std::optional<DiskCacheStats> disk;
};

/// Compiled sources are kept in memory for all sessions of the process, also for those that are opened later;
/// the least recently used are dropped first. Zeros in a child that was forked while another thread compiled.
/// These functions are thread-safe.
QUERN_API CompileCacheStats compile_cache_stats();
/// Sets the bound of the memory tier for all sessions: 256 MiB at first; 0 keeps nothing.
/// SessionOptions::compile_cache_bytes does the same.
QUERN_API void set_compile_cache_bytes(std::uint64_t max_bytes);
/// Drops all entries of the memory tier. Loaded modules stay as they are.
QUERN_API void clear_compile_cache();

}  // namespace quern
