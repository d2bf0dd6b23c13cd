// SPDX-License-Identifier: Apache-2.0
// The identity of the toolkit's headers as a whole. A source that includes one of them may read any of them,
// by names that only a preprocessor knows; thousands of files are compared by their state, not read each
// time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/thread_annotations.hpp"
#include "cache/disk_store.hpp"

namespace quern::compile {

/// Thread-safe.
class HeaderTree {
 public:
  /// `store` may be null. It keeps the digest of the contents for each state of the files, so that the same
  /// headers have one identity wherever and whenever they were installed.
  HeaderTree(std::vector<std::string> directories, cache::DiskStore* store)
      : directories_(std::move(directories)), store_(store) {}

  /// Returns nothing if a file could not be read, or there are too many. Looks at the files at most every two
  /// seconds, unless `anew`.
  std::optional<base::Digest> digest(bool anew = false) QUERN_EXCLUDES(mutex_);

  /// The identity of the headers' contents, also without a store: reads all of them then.
  std::optional<base::Digest> contents_digest() { return store_ != nullptr ? digest() : contents(); }

 private:
  std::optional<base::Digest> compute() const;
  std::optional<base::Digest> contents() const;

  const std::vector<std::string> directories_;
  cache::DiskStore* const store_;
  base::Mutex mutex_;
  std::optional<base::Digest> last_ QUERN_GUARDED_BY(mutex_);
  std::int64_t looked_ns_ QUERN_GUARDED_BY(mutex_) = 0;
};

}  // namespace quern::compile
