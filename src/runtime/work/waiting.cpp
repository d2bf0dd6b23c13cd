// SPDX-License-Identifier: Apache-2.0
#include "runtime/work/waiting.hpp"

#include <fmt/format.h>

#include "quern/error.hpp"

namespace quern::runtime {

/// After this call the caller reuses memory of queued work, also if the wait ends in an error.
template <class Wait>
void Waiting::wait_or_settle(CUstream stream, Wait&& wait) {
  const Cancellations::Check check(*cancellations_, stream);
  try {
    const CurrentContext current(context_);
    wait();
  } catch (...) {
    if (context_.lost()) context_.settle();
    work_.reap();
    throw;
  }
  work_.reap();
  check.require_none();
}

void Waiting::synchronize() {
  wait_or_settle(nullptr, [this] {
    context_.check(context_.api().cuCtxSynchronize(), "cuCtxSynchronize", "finish the work of the device");
  });
}

void Waiting::synchronize(CUstream stream) {
  wait_or_settle(named_stream(stream), [&] {
    context_.check(context_.api().cuStreamSynchronize(stream), "cuStreamSynchronize",
                   "finish the work of a stream");
  });
}

void Waiting::wait_for(CUevent event, CUstream stream) {
  wait_or_settle(named_stream(stream), [&] {
    context_.check(context_.api().cuEventSynchronize(event), "cuEventSynchronize", "wait for an event");
  });
}

const QuernCpuPlugin& Waiting::require_cancelling() const {
  if (context_.driver().plugin != nullptr) return *context_.driver().plugin;
  throw Error(
      ErrorCode::unsupported,
      fmt::format("cannot cancel work on {}: CUDA has no call that ends a launch on a GPU\nhint: split "
                  "the work into launches that are short, and stop making them",
                  context_.device().name));
}

// Neither of these releases pending resources: that waits for all work of the context, also for the work that
// the caller is about to cancel next.
void Waiting::cancel(CUstream stream) {
  const QuernCpuPlugin& plugin = require_cancelling();
  const CurrentContext current(context_);
  unsigned flags = 0;
  context_.check(context_.api().cuStreamGetFlags(stream, &flags), "cuStreamGetFlags",
                 "query a stream's flags");
  const Cancellations::Scope scope(*cancellations_, named_stream(stream),
                                   (flags & CU_STREAM_NON_BLOCKING) == 0);
  context_.check(static_cast<CUresult>(plugin.cancel_stream(stream)), "cancel",
                 "cancel the launches of a stream");
}

void Waiting::cancel() {
  const QuernCpuPlugin& plugin = require_cancelling();
  const CurrentContext current(context_);
  const Cancellations::Scope scope(*cancellations_, nullptr, true);
  context_.check(static_cast<CUresult>(plugin.cancel_context()), "cancel",
                 "cancel the launches of a context");
}

}  // namespace quern::runtime
