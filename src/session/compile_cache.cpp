// SPDX-License-Identifier: Apache-2.0
#include "quern/compile_cache.hpp"

#include "cache/disk_store.hpp"
#include "compile/shared_compiler.hpp"

namespace quern {
namespace {

std::optional<DiskCacheStats> disk_stats() {
  const cache::DiskStore* const store = cache::process_store();
  if (store == nullptr) return std::nullopt;
  const cache::DiskStoreOptions& options = store->options();
  const cache::DiskStoreStats stats = store->stats();
  return DiskCacheStats{options.directory,   options.read_only, options.max_bytes,
                        stats.hits,          stats.misses,      stats.writes,
                        stats.failed_writes, stats.damaged,     stats.evictions};
}

}  // namespace

CompileCacheStats compile_cache_stats() {
  const cache::CacheStats memory = compile::shared_cache_stats();
  return {compile::shared_compile_stats(),
          {memory.hits, memory.waits, memory.misses, memory.failures, memory.evictions, memory.entry_count,
           memory.size_bytes, memory.max_bytes},
          disk_stats()};
}
void set_compile_cache_bytes(std::uint64_t max_bytes) { compile::set_shared_cache_bytes(max_bytes); }
void clear_compile_cache() { compile::clear_shared_cache(); }

}  // namespace quern
