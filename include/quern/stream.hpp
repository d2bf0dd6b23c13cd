// SPDX-License-Identifier: Apache-2.0
// component: runtime
#pragma once

#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <utility>

#include "quern/export.hpp"

namespace quern {

namespace runtime {
class Context;
struct StreamState;
struct EventState;
}  // namespace runtime

class AutoSynchronize;

// Streams as parameters, everywhere in quern:
//  - `std::optional<StreamView> stream = {}`: an operation that can be waited for (a copy, a fill). Without a
//    stream it is done on return; with one it is queued there.
//  - `StreamView stream = {}`: an operation that is ordered by a stream and never waits (a launch, an
//    allocation, an event). Without one it is ordered by the context's default stream.
// Only DLPack has a third case, a consumer that requests no ordering (dlpack.hpp).

/// Options of a new stream.
struct StreamOptions {
  /// If work of several streams is ready to start, the lower number starts first (as in CUDA). A value
  /// outside Session::stream_priorities() is replaced by the nearest inside; running work is not interrupted.
  int priority = 0;
  /// Not ordered with the legacy default stream, and so not with copies and launches without a stream.
  bool non_blocking = false;
};
/// The range of priorities that a device supports: 0 and -5, for example; equal if it has no priorities.
struct StreamPriorities {
  int least = 0;
  int greatest = 0;
};

/// A view of a stream, the queue for work; passed by value. It does not keep the stream alive. A
/// default-constructed one is the default stream of the context that the work belongs to. Thread-safe, as
/// streams are.
class QUERN_API StreamView {
 public:
  StreamView() noexcept = default;
  StreamView(runtime::Context* context, void* handle) noexcept : context_(context), handle_(handle) {}

  /// Waits until all work that is queued now has run; host arrays that are targets of its copies then have
  /// their values. Throws DriverError, also for a fault of an earlier kernel; Error(cancelled) if work of the
  /// stream was cancelled during the call.
  void synchronize() const;
  /// Ends the launches that the stream has now, running or queued, and returns when none of them runs. The
  /// memory that they write to holds old, new or partly new values. Copies, fills, events and callbacks that
  /// are queued still run, in their order, and other streams that wait for them continue: cancel these as
  /// well. The context stays usable, and the stream takes new work. Threads that are waiting for the stream
  /// (for one of its events, for the default stream) get Error(cancelled), and so does the result of an
  /// earlier async_done(); calls that begin later do not report it. Throws Error(unsupported) on a GPU, where
  /// CUDA cannot end a launch.
  void cancel() const;
  /// True if all queued work has run.
  bool query() const;
  /// A scope whose end waits for the stream.
  [[nodiscard]] AutoSynchronize auto_synchronize() const;
  /// Calls `callback` when all work that is queued now has run, on a thread of the driver's: it must not call
  /// quern or the driver and should be short. The log (log.hpp) reports an exception that it throws. A
  /// context that a fault ended makes no calls any more. Throws DriverError if the callback cannot be queued.
  void add_callback(std::function<void()> callback) const;
  /// A future that is ready when all work that is queued now has run; it holds
  /// std::future_error(broken_promise) if a fault ended the context, Error(cancelled) if work of the stream
  /// was cancelled meanwhile.
  std::future<void> async_done() const;

  int priority() const;
  bool is_non_blocking() const;

  /// CUstream, as void*; null is the default stream.
  void* handle() const noexcept { return handle_; }
  runtime::Context* context() const noexcept { return context_; }

 private:
  runtime::Context* context_ = nullptr;
  void* handle_ = nullptr;
};

/// Waits for a stream at the end of a scope, also if an exception leaves it: an exception of the wait does
/// not replace that one. The stream outlives it.
class QUERN_API AutoSynchronize {
 public:
  explicit AutoSynchronize(StreamView stream) noexcept : stream_(stream) {}
  ~AutoSynchronize() noexcept(false);
  AutoSynchronize(const AutoSynchronize&) = delete;
  AutoSynchronize& operator=(const AutoSynchronize&) = delete;

  StreamView stream() const noexcept { return stream_; }

 private:
  StreamView stream_;
  int exceptions_ = std::uncaught_exceptions();
};

inline AutoSynchronize StreamView::auto_synchronize() const { return AutoSynchronize(*this); }

/// Owns a stream (Session::stream()). Work on one stream runs in order; work on two streams may overlap. Its
/// destructor schedules the release; queued work still runs. Move-only; launches on a stream that was moved
/// from, and its own functions, throw Error(usage).
class QUERN_API Stream {
 public:
  explicit Stream(std::shared_ptr<runtime::StreamState> state) : state_(std::move(state)) {}
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&&) noexcept = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  StreamView view() const noexcept;
  operator StreamView() const noexcept { return view(); }  // NOLINT(google-explicit-constructor)
  void synchronize() const { view().synchronize(); }
  void cancel() const { view().cancel(); }
  bool query() const { return view().query(); }
  [[nodiscard]] AutoSynchronize auto_synchronize() const { return view().auto_synchronize(); }
  void add_callback(std::function<void()> callback) const { view().add_callback(std::move(callback)); }
  std::future<void> async_done() const { return view().async_done(); }
  int priority() const { return view().priority(); }
  bool is_non_blocking() const { return view().is_non_blocking(); }
  void* handle() const noexcept { return view().handle(); }

 private:
  std::shared_ptr<runtime::StreamState> state_;
};

/// A point in a stream (Session::event()). Move-only; dropping it schedules its release. Functions of an
/// event that was moved from throw Error(usage); its handle is null.
class QUERN_API Event {
 public:
  explicit Event(std::shared_ptr<runtime::EventState> state) : state_(std::move(state)) {}
  Event(Event&&) noexcept = default;
  Event& operator=(Event&&) noexcept = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// Marks the work that is queued on `stream` now.
  void record(StreamView stream = {}) const;
  /// Makes later work of `stream` wait until this event has happened.
  void wait(StreamView stream = {}) const;
  bool query() const;
  void synchronize() const;
  /// Milliseconds from `start` to this event; both have been recorded and have happened.
  double elapsed_ms_since(const Event& start) const;
  /// CUevent, as void*.
  void* handle() const noexcept;

 private:
  std::shared_ptr<runtime::EventState> state_;
};

}  // namespace quern
