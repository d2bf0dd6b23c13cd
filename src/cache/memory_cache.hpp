// SPDX-License-Identifier: Apache-2.0
// The top layer of the cache: immutable values in memory under a digest, each computed once. A lower layer
// (disk, a server) goes into `compute`: memory.get_or_compute(key, [&] { return disk.get_or_compute(key,
// compile); }).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "base/digest.hpp"
#include "quern/expected.hpp"

namespace quern::cache {

/// Counters of a cache; one consistent reading.
struct CacheStats {
  std::uint64_t hits = 0;       ///< answered from memory
  std::uint64_t waits = 0;      ///< answered by a computation that another thread had begun
  std::uint64_t misses = 0;     ///< computed here
  std::uint64_t failures = 0;   ///< computed here, and failed: not kept
  std::uint64_t evictions = 0;  ///< dropped to stay within the bound
  std::uint64_t entry_count = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t max_bytes = 0;  ///< the bound of size_bytes
};

/// The untyped part of MemoryCache. Thread-safe; holds no lock while it computes.
class MemoryCacheCore {
 public:
  using Value = std::shared_ptr<const void>;
  struct Computed {
    Value value;
    std::size_t size_bytes = 0;
  };
  using Compute = std::function<Expected<Computed>()>;

  explicit MemoryCacheCore(std::uint64_t max_bytes);
  ~MemoryCacheCore();
  MemoryCacheCore(const MemoryCacheCore&) = delete;
  MemoryCacheCore& operator=(const MemoryCacheCore&) = delete;

  Value find(const base::Digest& key);
  Expected<Value> get_or_compute(const base::Digest& key, const Compute& compute);
  void drop(const base::Digest& key);
  void clear();
  void set_max_bytes(std::uint64_t max_bytes);
  CacheStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Immutable values of one type under a digest of everything that determines them. If N threads request one
/// key at once, one computes and the others wait for its result. A failure is returned to all waiting threads
/// and is not kept. The least recently used values are removed first when the values' sizes exceed
/// `max_bytes`; a value larger than the bound is returned but not kept. Values live as long as they are
/// referenced. Thread-safe.
template <class T>
class MemoryCache {
 public:
  using Value = std::shared_ptr<const T>;

  /// `size_of(value)` gives the bytes that a value counts for.
  MemoryCache(std::uint64_t max_bytes, std::function<std::size_t(const T&)> size_of)
      : core_(max_bytes), size_of_(std::move(size_of)) {}

  /// The value, or null; never computes and never waits for a computation.
  Value find(const base::Digest& key) { return std::static_pointer_cast<const T>(core_.find(key)); }

  /// The value under `key`; calls `compute()` (returns an Expected<Value>) if there is none. Its exceptions
  /// are thrown in every waiting thread. Requesting a key within its own computation is rejected with a
  /// diagnostic.
  template <class F>
  Expected<Value> get_or_compute(const base::Digest& key, F&& compute) {
    Expected<MemoryCacheCore::Value> found =
        core_.get_or_compute(key, [&]() -> Expected<MemoryCacheCore::Computed> {
          Expected<Value> made = compute();
          if (!made) return std::move(made).errors();
          const std::size_t size_bytes = size_of_(**made);
          return MemoryCacheCore::Computed{*std::move(made), size_bytes};
        });
    if (!found) return std::move(found).errors();
    return std::static_pointer_cast<const T>(*std::move(found));
  }

  /// Removes the value under the key, if there is one. Its users keep it.
  void drop(const base::Digest& key) { core_.drop(key); }
  void clear() { core_.clear(); }
  /// Another bound; values beyond it are removed now.
  void set_max_bytes(std::uint64_t max_bytes) { core_.set_max_bytes(max_bytes); }
  CacheStats stats() const { return core_.stats(); }

 private:
  MemoryCacheCore core_;
  std::function<std::size_t(const T&)> size_of_;
};

}  // namespace quern::cache
