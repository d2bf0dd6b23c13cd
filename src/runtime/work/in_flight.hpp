// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "base/thread_annotations.hpp"
#include "driver/driver_table.hpp"

namespace quern::runtime {

/// Work that is queued on streams and the objects it needs until it has run. When a stream reaches the point,
/// the driver's thread runs the work's function (host code only: a driver call there could wait for itself)
/// and marks it done; the kept objects are released later, by reap(), on a thread of the program, where a
/// release may call the driver. Thread-safe.
class InFlight {
 public:
  struct Work {
    std::function<void()> run;                      ///< may be empty
    std::vector<std::shared_ptr<const void>> keep;  ///< may be empty
  };

  InFlight() : state_(std::make_unique<State>()) {}
  /// Clears the lists; at process exit, when the driver's threads may still use the kept objects, it leaves
  /// them alone.
  ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  /// Queues the work on `stream`. If the driver rejects it, or std::bad_alloc is thrown, nothing was queued
  /// and `work` is unchanged: the caller decides what to do.
  CUresult add(const driver::DriverTable& api, CUstream stream, Work& work);
  /// Releases finished work, or all work if `all`: then the driver will not call for the rest any more. In
  /// that case it waits for work whose function is running.
  void reap(bool all) noexcept;
  /// True in a function of some work, on the driver's thread: waiting for the driver there would be a
  /// deadlock.
  static bool is_running_here() noexcept;
  /// The number of works not yet released.
  std::size_t count() const noexcept;

 private:
  struct State;
  struct Node {
    State* state = nullptr;
    Work work;
    std::list<Node>::iterator self;
    bool in_use = true;  ///< by add(), which may still take it back
  };
  struct State {
    base::Mutex mutex;
    base::ConditionVariable stopped;
    std::uint32_t running QUERN_GUARDED_BY(mutex) = 0;
    std::list<Node> queued QUERN_GUARDED_BY(mutex);
    std::list<Node> done QUERN_GUARDED_BY(mutex);
  };
  static void reached(void* node);

  std::unique_ptr<State> state_;
};

}  // namespace quern::runtime
