// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/thread_annotations.hpp"
#include "runtime/memory/release.hpp"

namespace quern::runtime {

/// The counters behind MemoryStats, and the place of each allocation if sites are tracked (a build without
/// optimisation, or QUERN_TRACK_ALLOCATIONS=1). Thread-safe.
class Counters {
 public:
  Counters();

  void made(const Resource& resource) noexcept QUERN_EXCLUDES(mutex_);
  void dropped(const Resource& resource) noexcept QUERN_EXCLUDES(mutex_);
  void released(const Release& item) noexcept QUERN_EXCLUDES(mutex_);
  MemoryStats stats() const QUERN_EXCLUDES(mutex_);
  /// to_string(stats()). Empty: nothing is live.
  std::string leak_report() const QUERN_EXCLUDES(mutex_);

 private:
  using Site = std::vector<void*>;  ///< return addresses, the innermost first

  const bool track_sites_;
  mutable base::Mutex mutex_;
  MemoryStats stats_ QUERN_GUARDED_BY(mutex_);
  std::map<const Resource*, Site> sites_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::runtime
