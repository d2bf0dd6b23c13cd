// SPDX-License-Identifier: Apache-2.0
#include "runtime/context/stream.hpp"

#include <fmt/format.h>

#include "base/log.hpp"
#include "quern/error.hpp"

namespace quern {
namespace runtime {

Stream make_stream(std::shared_ptr<Context> context, const StreamOptions& options) {
  const CurrentContext current(*context);
  CUstream handle = nullptr;
  const unsigned flags = options.non_blocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
  if (options.priority == 0)
    context->check(context->api().cuStreamCreate(&handle, flags), "cuStreamCreate", "create a stream");
  else
    context->check(context->api().cuStreamCreateWithPriority(&handle, flags, options.priority),
                   "cuStreamCreateWithPriority", "create a stream with a priority");
  std::shared_ptr<const Resource> owner = context->resources().own(release_of(ResourceKind::stream, handle));
  context->own_streams().add(owner);
  return Stream(std::make_shared<StreamState>(StreamState{std::move(context), handle, std::move(owner)}));
}

StreamPriorities stream_priorities(const Context& context) {
  const CurrentContext current(context);
  StreamPriorities range;
  context.check(context.api().cuCtxGetStreamPriorityRange(&range.least, &range.greatest),
                "cuCtxGetStreamPriorityRange", "query the priorities of streams");
  return range;
}

Event make_event(std::shared_ptr<Context> context, bool timing) {
  const CurrentContext current(*context);
  CUevent handle = nullptr;
  const unsigned flags = timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  context->check(context->api().cuEventCreate(&handle, flags), "cuEventCreate", "create an event");
  std::shared_ptr<const Resource> owner = context->resources().own(release_of(ResourceKind::event, handle));
  return Event(std::make_shared<EventState>(std::move(context), handle, std::move(owner)));
}

Event adopt_event(std::shared_ptr<Context> context, void* handle) {
  return Event(std::make_shared<EventState>(std::move(context), static_cast<CUevent>(handle), nullptr));
}

void order_after(const std::shared_ptr<Context>& context, StreamView producer, StreamView consumer) {
  const auto named = [&](StreamView stream) { return named_stream(stream_handle(stream, *context)); };
  if (named(producer) == named(consumer)) return;
  const Event reached = make_event(context, false);
  reached.record(producer);
  reached.wait(consumer);
}

namespace {

/// Its address is the context of no_stream(), which has none.
char moved_from = 0;

[[noreturn]] void refuse_moved(std::string_view kind) {
  throw Error(ErrorCode::usage, fmt::format("the {} was moved from; use the one that it was moved to", kind));
}

void require_there(StreamView stream) {
  if (stream.context() == no_stream().context()) refuse_moved("stream");
}

}  // namespace

StreamView no_stream() noexcept { return {reinterpret_cast<Context*>(&moved_from), nullptr}; }

CUstream stream_handle(StreamView stream, const Context& context) {
  if (stream.context() != nullptr && stream.context() != &context) {
    require_there(stream);
    throw Error(ErrorCode::usage,
                "the stream belongs to another session than the work given to it; make it with the same "
                "session's stream()");
  }
  return static_cast<CUstream>(stream.handle());
}

}  // namespace runtime

namespace {

runtime::Context& context_of(StreamView stream) {
  if (stream.context() == nullptr)
    throw Error(
        ErrorCode::usage,
        "a default-constructed StreamView belongs to no session; wait on Session::default_stream() instead");
  runtime::require_there(stream);
  return *stream.context();
}

}  // namespace

void StreamView::synchronize() const {
  context_of(*this).waiting().synchronize(static_cast<CUstream>(handle_));
}

void StreamView::cancel() const { context_of(*this).waiting().cancel(static_cast<CUstream>(handle_)); }

bool StreamView::query() const {
  runtime::Context& context = context_of(*this);
  const runtime::CurrentContext current(context);
  const CUresult result = context.api().cuStreamQuery(static_cast<CUstream>(handle_));
  if (result == CUDA_ERROR_NOT_READY) return false;
  context.check(result, "cuStreamQuery", "query whether a stream has finished");
  context.work().reap();
  return true;
}

int StreamView::priority() const {
  const runtime::Context& context = context_of(*this);
  const runtime::CurrentContext current(context);
  int priority = 0;
  context.check(context.api().cuStreamGetPriority(static_cast<CUstream>(handle_), &priority),
                "cuStreamGetPriority", "query a stream's priority");
  return priority;
}

bool StreamView::is_non_blocking() const {
  const runtime::Context& context = context_of(*this);
  const runtime::CurrentContext current(context);
  unsigned flags = 0;
  context.check(context.api().cuStreamGetFlags(static_cast<CUstream>(handle_), &flags), "cuStreamGetFlags",
                "query a stream's flags");
  return (flags & CU_STREAM_NON_BLOCKING) != 0;
}

void StreamView::add_callback(std::function<void()> callback) const {
  runtime::Context& context = context_of(*this);
  // Keeps the context: the callback may call exit(), which destroys static sessions, before this call
  // returns.
  const std::shared_ptr<runtime::Context> alive = context.shared_from_this();
  const runtime::CurrentContext current(context);
  const auto warn = [device = context.device_state(), stream = handle_](std::string_view what) {
    base::log({LogLevel::warning,
               fmt::format("a stream's callback threw{}", what),
               {{"device", device->name}, {"stream", fmt::format("{}", stream)}}});
  };
  context.work().call_after(static_cast<CUstream>(handle_), [callback = std::move(callback), warn] {
    try {
      callback();
    } catch (const std::exception& error) {  // no exception may leave a function on the driver's thread
      warn(fmt::format(": {}", error.what()));
    } catch (...) {
      warn(": the exception is not derived from std::exception");
    }
  });
}

std::future<void> StreamView::async_done() const {
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> future = done->get_future();
  const runtime::Context& context = context_of(*this);
  const runtime::Cancellations::Check check(*context.waiting().cancellations(),
                                            runtime::named_stream(static_cast<CUstream>(handle_)));
  add_callback([done, check, all = context.waiting().cancellations()] {  // read by `check`
    try {
      check.require_none();
      done->set_value();
    } catch (const Error&) {
      done->set_exception(std::current_exception());
    }
  });
  return future;
}

AutoSynchronize::~AutoSynchronize() noexcept(false) {
  if (std::uncaught_exceptions() == exceptions_) {
    stream_.synchronize();
    return;
  }
  try {
    stream_.synchronize();
  } catch (
      const std::exception&) {  // the first exception is kept; a fault is reported by the next call again
  }
}

StreamView Stream::view() const noexcept {
  return state_ == nullptr ? runtime::no_stream() : StreamView(state_->context.get(), state_->handle);
}

namespace {

runtime::EventState& live(const std::shared_ptr<runtime::EventState>& state) {
  if (state == nullptr) [[unlikely]]
    runtime::refuse_moved("event");
  return *state;
}

}  // namespace

void Event::record(StreamView stream) const {
  const runtime::EventState& event = live(state_);
  const runtime::Context& context = *event.context;
  const runtime::CurrentContext current(context);
  const CUstream on = runtime::stream_handle(stream, context);
  context.check(context.api().cuEventRecord(event.handle, on), "cuEventRecord", "record an event");
  state_->recorded_on.store(on, std::memory_order_relaxed);
}

void Event::wait(StreamView stream) const {
  const runtime::EventState& event = live(state_);
  const runtime::Context& context = *event.context;
  const runtime::CurrentContext current(context);
  context.check(context.api().cuStreamWaitEvent(runtime::stream_handle(stream, context), event.handle, 0),
                "cuStreamWaitEvent", "make a stream wait for an event");
}

bool Event::query() const {
  const runtime::EventState& event = live(state_);
  const runtime::Context& context = *event.context;
  const runtime::CurrentContext current(context);
  const CUresult result = context.api().cuEventQuery(event.handle);
  if (result == CUDA_ERROR_NOT_READY) return false;
  context.check(result, "cuEventQuery", "query whether an event has happened");
  return true;
}

void* Event::handle() const noexcept { return state_ == nullptr ? nullptr : state_->handle; }

void Event::synchronize() const {
  const runtime::EventState& event = live(state_);
  event.context->waiting().wait_for(event.handle, event.recorded_on.load(std::memory_order_relaxed));
}

double Event::elapsed_ms_since(const Event& start) const {
  const runtime::EventState& event = live(state_);
  const runtime::Context& context = *event.context;
  const runtime::CurrentContext current(context);
  float ms = 0;
  CUresult result = context.api().cuEventElapsedTime_v2(&ms, live(start.state_).handle, event.handle);
  context.check(result, "cuEventElapsedTime_v2", "measure the time between two events");
  return static_cast<double>(ms);
}

}  // namespace quern
