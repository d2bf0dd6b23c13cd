// SPDX-License-Identifier: Apache-2.0
// Locks on a range of a file, by which threads and processes agree on the one that computes an entry. The
// kernel releases a lock when its holder ends for any reason.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "cache/store_folder.hpp"

namespace quern::cache {

/// An exclusive lock on `bytes` bytes at `at` of an open file, held until it is destroyed. The file is opened
/// for the lock alone (open file description locks): so it excludes threads of one process too.
class RangeLock {
 public:
  RangeLock() = default;
  RangeLock(RangeLock&& other) noexcept
      : file_(std::move(other.file_)), at_(other.at_), bytes_(std::exchange(other.bytes_, 0)) {}
  RangeLock& operator=(RangeLock&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~RangeLock();
  RangeLock(const RangeLock&) = delete;
  RangeLock& operator=(const RangeLock&) = delete;

  bool is_held() const noexcept { return bytes_ != 0; }
  const File& file() const noexcept { return file_; }

  /// Tries until it has the lock, `longest` has passed or `goes_on` (may be empty) answers false. Not held:
  /// one of these, or there are no locks on this file system.
  static RangeLock wait(File file, std::uint64_t at, std::uint64_t bytes, std::chrono::nanoseconds longest,
                        const std::function<bool()>& goes_on);

 private:
  File file_;
  std::uint64_t at_ = 0;
  std::uint64_t bytes_ = 0;  ///< 0 if not held
};

/// Opens `name` in `folder` to lock it; made if it is not there. Not open: it is no file of this user's.
File open_lock_file(const File& folder, const char* name);

}  // namespace quern::cache
