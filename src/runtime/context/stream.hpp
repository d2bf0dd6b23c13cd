// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "quern/stream.hpp"
#include "runtime/context/context.hpp"

namespace quern::runtime {

struct StreamState {
  std::shared_ptr<Context> context;
  CUstream handle = nullptr;
  std::shared_ptr<const Resource> owner;
};

struct EventState {
  EventState(std::shared_ptr<Context> in, CUevent event, std::shared_ptr<const Resource> owned_by)
      : context(std::move(in)), handle(event), owner(std::move(owned_by)) {}

  std::shared_ptr<Context> context;
  CUevent handle = nullptr;
  std::shared_ptr<const Resource> owner;       ///< null: the program's own event
  std::atomic<CUstream> recorded_on{nullptr};  ///< null: the default stream
};

Stream make_stream(std::shared_ptr<Context> context, const StreamOptions& options = {});
StreamPriorities stream_priorities(const Context& context);
Event make_event(std::shared_ptr<Context> context, bool timing = true);
/// An event that the program made; it stays the program's and must outlive the object.
Event adopt_event(std::shared_ptr<Context> context, void* handle);

/// Work queued on `consumer` from now on waits for all work now queued on `producer`; this call does not
/// wait.
void order_after(const std::shared_ptr<Context>& context, StreamView producer, StreamView consumer);

/// The CUstream of `stream` for work in `context`. Throws Error(usage) for a stream of another context and
/// for no_stream().
CUstream stream_handle(StreamView stream, const Context& context);

/// The view of a Stream or a Session that was moved from: work and waits on it throw Error(usage).
StreamView no_stream() noexcept;

}  // namespace quern::runtime
