// SPDX-License-Identifier: Apache-2.0
// room: runtime
#pragma once

#include <memory>

#include "quern/export.hpp"

namespace quern {

namespace runtime {
class Context;
struct StreamState;
struct EventState;
}  // namespace runtime

/// A stream by value: where to queue work. It does not keep the stream alive. A default-constructed one is
/// the default stream of whatever context the work belongs to. Thread-safe, as streams are.
class QUERN_API StreamView {
 public:
  StreamView() noexcept = default;
  StreamView(const runtime::Context* context, void* handle) noexcept : context_(context), handle_(handle) {}

  /// Waits until everything queued so far has run. Throws DriverError, also for a fault of an earlier kernel.
  void synchronize() const;
  /// True if nothing is left to run.
  bool query() const;

  /// CUstream, as void*; null is the default stream.
  void* handle() const noexcept { return handle_; }
  const runtime::Context* context() const noexcept { return context_; }

 private:
  const runtime::Context* context_ = nullptr;
  void* handle_ = nullptr;
};

/// Owns a stream (Session::stream()). Work on one stream runs in order; work on two streams may overlap.
/// Dropping it schedules its release; what was queued still runs. Move-only.
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
  bool query() const { return view().query(); }

 private:
  std::shared_ptr<runtime::StreamState> state_;
};

/// A point in a stream (Session::event()). Move-only; dropping it schedules its release.
class QUERN_API Event {
 public:
  explicit Event(std::shared_ptr<runtime::EventState> state) : state_(std::move(state)) {}
  Event(Event&&) noexcept = default;
  Event& operator=(Event&&) noexcept = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// Marks what `stream` holds now.
  void record(StreamView stream = {}) const;
  /// Makes later work of `stream` wait until this event has happened.
  void wait(StreamView stream) const;
  bool query() const;
  void synchronize() const;
  /// Milliseconds from `start` to this event; both recorded and reached.
  double elapsed_ms_since(const Event& start) const;

 private:
  std::shared_ptr<runtime::EventState> state_;
};

}  // namespace quern
