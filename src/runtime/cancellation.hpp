// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>

#include "base/thread_annotations.hpp"

namespace quern::runtime {

/// Counts the cancellations of a context's streams, so that whoever waits for cancelled work learns of it:
/// the driver answers success. Thread-safe.
class Cancellations {
 public:
  /// A cancellation in progress. `stream` null: of every stream of the context; the default stream's handle
  /// is CU_STREAM_LEGACY.
  class Scope {
   public:
    Scope(Cancellations& all, CUstream stream) : all_(all), stream_(stream) {
      all_.count(stream_, &Count::begun);
    }
    ~Scope() {  // cannot fail: the stream has a row by now
      all_.count(stream_, &Count::ended);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Cancellations& all_;
    CUstream stream_;
  };

  /// Made before the driver is asked to wait. `stream` null or CU_STREAM_LEGACY: the wait is for work of any
  /// stream, as one for the default stream or the whole context is.
  class Check {
   public:
    Check(const Cancellations& all, CUstream stream) noexcept
        : all_(all), stream_(stream == CU_STREAM_LEGACY ? nullptr : stream), ended_(all.ended(stream_)) {}
    /// True if a cancellation of the stream has overlapped the wait so far.
    bool happened() const noexcept { return all_.begun(stream_) != ended_; }
    /// Throws Error(cancelled) then.
    void require_none() const;

   private:
    const Cancellations& all_;
    CUstream stream_;
    std::uint64_t ended_;
  };

 private:
  struct Count {
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
  };
  void count(CUstream stream, std::uint64_t Count::* which) QUERN_EXCLUDES(mutex_);
  Count counted(CUstream stream) const noexcept QUERN_EXCLUDES(mutex_);
  std::uint64_t begun(CUstream stream) const noexcept { return any_.load() ? counted(stream).begun : 0; }
  std::uint64_t ended(CUstream stream) const noexcept { return any_.load() ? counted(stream).ended : 0; }

  std::atomic<bool> any_{false};  ///< while false, nothing else needs to be looked at
  mutable base::Mutex mutex_;
  std::map<CUstream, Count> streams_ QUERN_GUARDED_BY(mutex_);
  Count whole_ QUERN_GUARDED_BY(mutex_);  ///< of every stream at once
  Count all_ QUERN_GUARDED_BY(mutex_);    ///< of any kind
};

}  // namespace quern::runtime
