// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>

#include "base/thread_annotations.hpp"
#include "driver/driver_table.hpp"

namespace quern::runtime {

/// The name of a stream for Cancellations: null, as the driver takes it, is the default stream.
inline CUstream named_stream(CUstream stream) noexcept {
  return stream == nullptr ? CU_STREAM_LEGACY : stream;
}

/// Counts the cancellations of a context's streams, so that threads that wait for cancelled work get an
/// error: the driver answers success. Thread-safe.
class Cancellations {
 public:
  /// A cancellation in progress. `stream` null: of every stream of the context; the default stream's handle
  /// is CU_STREAM_LEGACY. `ordered`: the default stream waits for that stream.
  class Scope {
   public:
    Scope(Cancellations& all, CUstream stream, bool ordered) : all_(all), stream_(stream), ordered_(ordered) {
      all_.count(stream_, ordered_, &Count::begun);
    }
    ~Scope() {  // cannot fail: the stream has a row by now
      all_.count(stream_, ordered_, &Count::ended);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Cancellations& all_;
    CUstream stream_;
    bool ordered_;
  };

  /// Made before the driver is asked to wait. `stream` null: for all work of the context; CU_STREAM_LEGACY:
  /// for the default stream, and so for all streams that it waits for.
  class Check {
   public:
    Check(const Cancellations& all, CUstream stream) noexcept
        : all_(all), stream_(stream), ended_(all.ended(stream)) {}
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
  void count(CUstream stream, bool ordered, std::uint64_t Count::* which) QUERN_EXCLUDES(mutex_);
  Count counted(CUstream stream) const noexcept QUERN_EXCLUDES(mutex_);
  std::uint64_t begun(CUstream stream) const noexcept { return any_.load() ? counted(stream).begun : 0; }
  std::uint64_t ended(CUstream stream) const noexcept { return any_.load() ? counted(stream).ended : 0; }

  std::atomic<bool> any_{false};  ///< while false, no counts need to be read
  mutable base::Mutex mutex_;
  std::map<CUstream, Count> streams_ QUERN_GUARDED_BY(mutex_);
  Count whole_ QUERN_GUARDED_BY(mutex_);    ///< of every stream at once
  Count ordered_ QUERN_GUARDED_BY(mutex_);  ///< of streams that the default stream waits for
  Count all_ QUERN_GUARDED_BY(mutex_);      ///< of any kind
};

}  // namespace quern::runtime
