// SPDX-License-Identifier: Apache-2.0
#include "quern/compile_cache.hpp"

#include "compile/shared_compiler.hpp"

namespace quern {

CompileCacheStats compile_cache_stats() {
  const cache::CacheStats memory = compile::shared_cache_stats();
  return {compile::shared_compile_stats(),
          {memory.hits, memory.waits, memory.misses, memory.failures, memory.evictions, memory.entry_count,
           memory.size_bytes, memory.max_bytes}};
}
void set_compile_cache_bytes(std::uint64_t max_bytes) { compile::set_shared_cache_bytes(max_bytes); }
void clear_compile_cache() { compile::clear_shared_cache(); }

}  // namespace quern
