// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/digest.hpp"
#include "base/thread_annotations.hpp"

namespace quern::serve {

/// Immutable values under a digest, the least recently used dropped beyond a bound in bytes. A value larger
/// than the bound is not kept. Thread-safe.
template <class T>
class BoundedStore {
 public:
  using Value = std::shared_ptr<const T>;

  explicit BoundedStore(std::uint64_t max_bytes) : max_bytes_(max_bytes) {}

  /// The value, or null.
  Value find(const base::Digest& key) QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second);
    return found->second->value;
  }

  /// Returns false if it is there already, or too large.
  bool put(const base::Digest& key, Value value, std::uint64_t size) QUERN_EXCLUDES(mutex_) {
    const std::uint64_t charged = size + kOverheadBytes;
    const base::LockGuard lock(mutex_);
    if (charged > max_bytes_ || index_.contains(key)) return false;
    order_.push_front({key, std::move(value), charged});
    index_.emplace(key, order_.begin());
    bytes_ += charged;
    while (bytes_ > max_bytes_) {
      bytes_ -= order_.back().bytes;
      index_.erase(order_.back().key);
      order_.pop_back();
    }
    return true;
  }

  std::uint64_t bytes() const QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    return bytes_;
  }

 private:
  static constexpr std::uint64_t kOverheadBytes = 256;  // of list, table and shared_ptr
  struct Entry {
    base::Digest key;
    Value value;
    std::uint64_t bytes = 0;
  };

  const std::uint64_t max_bytes_;
  mutable base::Mutex mutex_;
  std::list<Entry> order_ QUERN_GUARDED_BY(mutex_);  // the most recently used first
  std::unordered_map<base::Digest, typename std::list<Entry>::iterator> index_ QUERN_GUARDED_BY(mutex_);
  std::uint64_t bytes_ QUERN_GUARDED_BY(mutex_) = 0;
};

}  // namespace quern::serve
