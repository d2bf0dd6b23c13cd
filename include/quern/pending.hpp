// SPDX-License-Identifier: Apache-2.0
// component: base
// Work that quern does on threads of its own.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "quern/export.hpp"

namespace quern {

namespace base {
class Task;
}

/// A handle of work in the background. At most four threads of the process do such work, in the order of its
/// submission; they end when there is none. A handle that is destroyed cancels its work, unless detach() was
/// called. A child of fork() that inherits a handle of work in progress gets Error(ErrorCode::driver) from
/// it; work that the child submits runs in the child. At exit() work in progress is abandoned, after waiting
/// for NVRTC. Move-only; a handle that was moved from throws Error(usage). The functions that are const are
/// thread-safe.
class QUERN_API Pending {
 public:
  Pending(Pending&&) noexcept = default;
  Pending& operator=(Pending&& other) noexcept;
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  ~Pending();

  /// True if the work has ended: it succeeded, failed or was cancelled. Never waits.
  bool ready() const;
  /// Returns when it has ended; does not throw the work's exception.
  void wait() const;
  /// Returns false if it has not ended in that time.
  bool wait_for(std::chrono::nanoseconds time) const;
  /// Work that has not begun ends at once. Work in progress ends where a handler of progress could cancel it
  /// (ProgressHandler), or is completed. Its get() then throws Error(cancelled), or gives the result.
  void cancel() const;
  /// The work continues without the handle.
  void detach() && noexcept { task_.reset(); }

 protected:
  explicit Pending(std::shared_ptr<base::Task> task) : task_(std::move(task)) {}
  /// Waits; throws the exception of the work, if there is one.
  void rethrow() const;

 private:
  std::shared_ptr<base::Task> task_;
};

/// Kernel::prepare_async().
class QUERN_API Preparation : public Pending {
 public:
  explicit Preparation(std::shared_ptr<base::Task> task) : Pending(std::move(task)) {}
  /// Waits. Throws what Kernel::prepare() throws; Error(cancelled).
  void get() const { rethrow(); }
};

}  // namespace quern
