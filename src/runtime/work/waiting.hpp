// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/work/cancellation.hpp"
#include "runtime/work/driver_context.hpp"
#include "runtime/work/queued_work.hpp"

namespace quern::runtime {

/// Waits for the work of a context, and cancels it. In a lost context the waits return, with DriverError,
/// when it is settled. They throw Error(cancelled) if work of the stream was cancelled during the call.
/// Thread-safe.
class Waiting {
 public:
  Waiting(const DriverContext& context, QueuedWork& work) : context_(context), work_(work) {}
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  /// Waits for all work of the context.
  void synchronize();
  void synchronize(CUstream stream);
  /// `stream`: the one on which the event was recorded last; null: the default stream.
  void wait_for(CUevent event, CUstream stream);

  /// Ends the launches of a stream, running or queued. Throws DriverError; Error(unsupported) on a GPU.
  void cancel(CUstream stream);
  /// The same for every stream of the context.
  void cancel();
  const std::shared_ptr<Cancellations>& cancellations() const noexcept { return cancellations_; }

 private:
  /// `stream` as for Cancellations::Check.
  template <class Wait>
  void wait_or_settle(CUstream stream, Wait&& wait);
  const QuernCpuPlugin& require_cancelling() const;

  const DriverContext& context_;
  QueuedWork& work_;
  const std::shared_ptr<Cancellations> cancellations_ = std::make_shared<Cancellations>();
};

}  // namespace quern::runtime
