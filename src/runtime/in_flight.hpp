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

/// Work that is queued on streams and what it needs until it has run. When a stream reaches the point, the
/// driver's thread runs the work's function (host code only: a driver call there could wait for itself) and
/// marks it done; what it kept is let go of later, by reap(), on a thread of the program's, where letting go
/// may lead to driver calls. Thread-safe.
class InFlight {
 public:
  struct Work {
    std::function<void()> run;                      ///< may be empty
    std::vector<std::shared_ptr<const void>> keep;  ///< may be empty
  };

  InFlight() : state_(std::make_unique<State>()) {}
  /// Empties the lists; at process exit, when the driver's threads may still use what is kept, it is left
  /// alone.
  ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  /// Queues the work on `stream`. Where the driver does not take it, or std::bad_alloc is thrown, nothing was
  /// queued and `work` is as it was: the caller decides.
  CUresult add(const driver::DriverTable& api, CUstream stream, Work& work);
  /// Lets go of finished work, or of all where `all`: then the driver does not call for the rest any more.
  /// Work whose function is running is waited for then.
  void reap(bool all) noexcept;
  /// True in a function of some work, on the driver's thread: what waits for the driver there waits for
  /// itself.
  static bool is_running_here() noexcept;
  /// Not yet let go of.
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
