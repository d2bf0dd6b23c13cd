// SPDX-License-Identifier: Apache-2.0
#include "runtime/work/cancellation.hpp"

#include "quern/error.hpp"

namespace quern::runtime {

void Cancellations::Check::require_none() const {
  if (!happened()) return;
  throw Error(ErrorCode::cancelled,
              "the work that was waited for was cancelled: its launches ended early or did not run, and what "
              "they were to write holds old, new or partly new values; launch them again");
}

void Cancellations::count(CUstream stream, bool ordered, std::uint64_t Count::* which) {
  const base::LockGuard lock(mutex_);
  Count& row = stream == nullptr ? whole_ : streams_[stream];  // gcc 12 adds to a copy of it without the name
  row.*which += 1;
  if (ordered) ordered_.*which += 1;
  all_.*which += 1;
  any_.store(true);
}

Cancellations::Count Cancellations::counted(CUstream stream) const noexcept {
  const base::LockGuard lock(mutex_);
  if (stream == nullptr) return all_;
  if (stream == CU_STREAM_LEGACY) return ordered_;
  Count count = whole_;
  if (const auto row = streams_.find(stream); row != streams_.end()) {
    count.begun += row->second.begun;
    count.ended += row->second.ended;
  }
  return count;
}

}  // namespace quern::runtime
