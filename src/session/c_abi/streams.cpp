// SPDX-License-Identifier: Apache-2.0
// The C ABI: streams, events, page-locked host memory.
#include <fmt/format.h>

#include "session/c_abi/handles.hpp"

namespace {

using namespace quern;
using namespace quern::session::c_abi;

EventObject event_of(QuernEvent handle) { return find<EventObject>(handle.id); }

/// A stream that quern does not own.
template <class View>
QuernStatus borrow(QuernSession session, QuernStream* stream, const View& view) {
  return guarded([&] {
    require(stream != nullptr, "a stream needs a pointer for its handle");
    const Session in = session_of(session);
    stream->id = insert(StreamObject{nullptr, view(in), in});
  });
}

template <class Make>
QuernStatus make_event(QuernSession session, QuernEvent* event, const Make& make) {
  return guarded([&] {
    require(event != nullptr, "an event needs a pointer for its handle");
    const Session in = session_of(session);
    event->id = insert(EventObject{std::make_shared<Event>(make(in)), in});
  });
}

std::int64_t extent_of(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(INT64_MAX))
    throw Error(ErrorCode::usage, fmt::format("cannot page-lock {} bytes: that is more than an address space "
                                              "holds; give the size of the memory in bytes",
                                              bytes));
  return static_cast<std::int64_t>(bytes);
}

NDArray bytes_at(void* memory, std::size_t bytes) {
  return NDArray::view(static_cast<std::uint8_t*>(memory), {extent_of(bytes)});
}

}  // namespace

QuernStatus quern_stream_new(QuernSession session, QuernStream* stream) {
  return guarded([&] {
    require(stream != nullptr, "quern_stream_new needs a pointer for the stream");
    const Session in = session_of(session);
    auto owner = std::make_shared<Stream>(in.stream());
    const StreamView view = *owner;
    stream->id = insert(StreamObject{std::move(owner), view, in});
  });
}
QuernStatus quern_stream_make(QuernSession session, const QuernStreamOptions* options, QuernStream* stream) {
  return guarded([&] {
    require(options != nullptr && stream != nullptr,
            "quern_stream_make needs options and a pointer for the stream");
    const QuernStreamOptions given = read_struct(options);
    require(given.reserved == 0, "the reserved fields of a QuernStreamOptions must be 0");
    const Session in = session_of(session);
    auto owner = std::make_shared<Stream>(
        in.stream({.priority = given.priority, .non_blocking = given.non_blocking != 0}));
    const StreamView view = *owner;
    stream->id = insert(StreamObject{std::move(owner), view, in});
  });
}
QuernStatus quern_session_stream_priorities(QuernSession session, int32_t* least, int32_t* greatest) {
  return guarded([&] {
    const StreamPriorities range = session_of(session).stream_priorities();
    if (least != nullptr) *least = range.least;
    if (greatest != nullptr) *greatest = range.greatest;
  });
}
QuernStatus quern_stream_info(QuernStream stream, int32_t* priority, int32_t* non_blocking) {
  return guarded([&] {
    const StreamView view = find<StreamObject>(stream.id).view;
    const int its_priority = view.priority();
    const bool its_kind = view.is_non_blocking();
    if (priority != nullptr) *priority = its_priority;
    if (non_blocking != nullptr) *non_blocking = its_kind ? 1 : 0;
  });
}
QuernStatus quern_stream_external(QuernSession session, void* cu_stream, QuernStream* stream) {
  return borrow(session, stream, [&](const Session& in) { return in.external_stream(cu_stream); });
}
QuernStatus quern_stream_legacy_default(QuernSession session, QuernStream* stream) {
  return borrow(session, stream, [](const Session& in) { return in.legacy_default_stream(); });
}
QuernStatus quern_stream_per_thread_default(QuernSession session, QuernStream* stream) {
  return borrow(session, stream, [](const Session& in) { return in.per_thread_default_stream(); });
}
QuernStatus quern_stream_synchronize(QuernStream stream) {
  return guarded([&] { find<StreamObject>(stream.id).view.synchronize(); });
}
QuernStatus quern_stream_cancel(QuernStream stream) {
  return guarded([&] { find<StreamObject>(stream.id).view.cancel(); });
}
QuernStatus quern_stream_query(QuernStream stream, int32_t* finished) {
  return guarded([&] {
    require(finished != nullptr, "quern_stream_query needs a pointer for the answer");
    *finished = find<StreamObject>(stream.id).view.query() ? 1 : 0;
  });
}
QuernStatus quern_stream_add_callback(QuernStream stream, void (*callback)(void* user), void* user) {
  return guarded([&] {
    require(callback != nullptr, "quern_stream_add_callback needs a function");
    find<StreamObject>(stream.id).view.add_callback([callback, user] { callback(user); });
  });
}
QuernStatus quern_stream_native(QuernStream stream, void** cu_stream) {
  return guarded([&] {
    require(cu_stream != nullptr, "quern_stream_native needs a pointer for the CUstream");
    *cu_stream = find<StreamObject>(stream.id).view.handle();
  });
}

QuernStatus quern_event_new(QuernSession session, QuernEvent* event) {
  return make_event(session, event, [](const Session& in) { return in.event(); });
}
QuernStatus quern_event_new_untimed(QuernSession session, QuernEvent* event) {
  return make_event(session, event, [](const Session& in) { return in.event(false); });
}
QuernStatus quern_event_external(QuernSession session, void* cu_event, QuernEvent* event) {
  return make_event(session, event, [&](const Session& in) {
    require(cu_event != nullptr, "quern_event_external needs a CUevent");
    return in.external_event(cu_event);
  });
}
QuernStatus quern_event_record(QuernEvent event, QuernStream stream) {
  return guarded([&] { event_of(event).event->record(stream_of(stream).view); });
}
QuernStatus quern_event_wait(QuernEvent event, QuernStream stream) {
  return guarded([&] { event_of(event).event->wait(stream_of(stream).view); });
}
QuernStatus quern_event_synchronize(QuernEvent event) {
  return guarded([&] { event_of(event).event->synchronize(); });
}
QuernStatus quern_event_query(QuernEvent event, int32_t* reached) {
  return guarded([&] {
    require(reached != nullptr, "quern_event_query needs a pointer for the answer");
    *reached = event_of(event).event->query() ? 1 : 0;
  });
}
QuernStatus quern_event_elapsed_ms(QuernEvent start, QuernEvent end, double* ms) {
  return guarded([&] {
    require(ms != nullptr, "quern_event_elapsed_ms needs a pointer for the time");
    const EventObject from = event_of(start);
    *ms = event_of(end).event->elapsed_ms_since(*from.event);
  });
}
QuernStatus quern_event_native(QuernEvent event, void** cu_event) {
  return guarded([&] {
    require(cu_event != nullptr, "quern_event_native needs a pointer for the CUevent");
    *cu_event = event_of(event).event->handle();
  });
}

QuernStatus quern_pin(QuernSession session, void* memory, size_t bytes, QuernPin* pin) {
  return guarded([&] {
    require(memory != nullptr && pin != nullptr, "quern_pin needs memory and a pointer for the handle");
    const NDArray array = bytes_at(memory, bytes);
    auto lock = std::make_shared<const PinnedScope>(session_of(session).pinned({array}));
    pin->id = insert(PinObject{std::move(lock), array});
  });
}
QuernStatus quern_pinned_new(QuernSession session, size_t bytes, QuernPin* pin, void** memory) {
  return guarded([&] {
    require(pin != nullptr && memory != nullptr,
            "quern_pinned_new needs pointers for the handle and the memory");
    const NDArray array = session_of(session).pinned_array({extent_of(bytes)}, Dtype::uint8);
    void* const address = array.data();
    pin->id = insert(PinObject{nullptr, array});
    *memory = address;
  });
}
