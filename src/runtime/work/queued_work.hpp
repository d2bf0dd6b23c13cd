// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "runtime/work/driver_context.hpp"
#include "runtime/work/in_flight.hpp"

namespace quern::runtime {

/// Queues functions and kept objects behind the work of a context's streams. Thread-safe.
class QueuedWork {
 public:
  explicit QueuedWork(const DriverContext& context) : context_(context) {}
  QueuedWork(const QueuedWork&) = delete;
  QueuedWork& operator=(const QueuedWork&) = delete;

  /// Runs `work.run` and releases `work.keep` after all work that is now queued on `stream`; see InFlight. If
  /// the driver cannot queue that, the call waits for the stream, so that no memory is released while work
  /// uses it.
  void after(CUstream stream, InFlight::Work work);
  /// Calls `function` after that work, on the driver's thread. Throws DriverError if it cannot be queued.
  void call_after(CUstream stream, std::function<void()> function);
  /// Releases the objects that finished work kept. Called by every function of the layer that waits,
  /// allocates or releases.
  void reap() noexcept { in_flight_.reap(context_.fault()->settled()); }
  /// Releases all kept objects; the driver has finished all queued work.
  void reap_all() noexcept { in_flight_.reap(true); }
  /// The number of works whose objects are not released yet.
  std::size_t count() const noexcept { return in_flight_.count(); }

 private:
  const DriverContext& context_;
  InFlight in_flight_;
};

}  // namespace quern::runtime
