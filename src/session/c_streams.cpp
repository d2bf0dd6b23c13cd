// SPDX-License-Identifier: Apache-2.0
// The C ABI: streams, events, memory management.
#include <algorithm>
#include <cstring>

#include "session/c_handles.hpp"

namespace {

using namespace quern;
using namespace quern::session::c_abi;

EventObject event_of(QuernEvent handle) { return find<EventObject>(handle.id); }

/// A program's own allocator, given as C functions.
class CAllocator final : public DeviceAllocator {
 public:
  explicit CAllocator(const QuernAllocator& functions) : functions_(functions) {}
  ~CAllocator() override {
    if (functions_.release != nullptr) functions_.release(functions_.user);
  }
  CAllocator(const CAllocator&) = delete;
  CAllocator& operator=(const CAllocator&) = delete;

  /// Null is out of memory: the context flushes its queue, asks once more, then says so.
  void* allocate(std::size_t bytes, std::size_t alignment, StreamView stream) override {
    void* const memory = functions_.allocate(functions_.user, bytes, alignment, stream.handle());
    if (memory != nullptr) return memory;
    throw OutOfMemory(2, "CUDA_ERROR_OUT_OF_MEMORY", "allocate",
                      "cannot allocate " + std::to_string(bytes) +
                          " bytes of device memory: the session's allocator gave none; free arrays or give "
                          "the allocator more",
                      bytes);
  }
  void deallocate(void* address, std::size_t bytes, std::size_t alignment, StreamView stream) override {
    functions_.deallocate(functions_.user, address, bytes, alignment, stream.handle());
  }

 private:
  const QuernAllocator functions_;
};

}  // namespace

QuernStatus quern_stream_new(QuernSession session, QuernStream* stream) {
  return guarded([&] {
    require(stream != nullptr, "quern_stream_new needs a place for the stream");
    const Session in = session_of(session);
    auto owner = std::make_shared<Stream>(in.stream());
    const StreamView view = *owner;
    stream->id = insert(StreamObject{std::move(owner), view, in});
  });
}
QuernStatus quern_stream_external(QuernSession session, void* cu_stream, QuernStream* stream) {
  return guarded([&] {
    require(stream != nullptr, "quern_stream_external needs a place for the stream");
    const Session in = session_of(session);
    stream->id = insert(StreamObject{nullptr, in.external_stream(cu_stream), in});
  });
}
QuernStatus quern_stream_synchronize(QuernStream stream) {
  return guarded([&] { find<StreamObject>(stream.id).view.synchronize(); });
}

QuernStatus quern_event_new(QuernSession session, QuernEvent* event) {
  return guarded([&] {
    require(event != nullptr, "quern_event_new needs a place for the event");
    const Session in = session_of(session);
    event->id = insert(EventObject{std::make_shared<Event>(in.event()), in});
  });
}
QuernStatus quern_event_record(QuernEvent event, QuernStream stream) {
  return guarded([&] { event_of(event).event->record(stream_of(stream)); });
}
QuernStatus quern_event_wait(QuernEvent event, QuernStream stream) {
  return guarded([&] { event_of(event).event->wait(stream_of(stream)); });
}
QuernStatus quern_event_synchronize(QuernEvent event) {
  return guarded([&] { event_of(event).event->synchronize(); });
}
QuernStatus quern_event_query(QuernEvent event, int32_t* reached) {
  return guarded([&] {
    require(reached != nullptr, "quern_event_query needs a place for the answer");
    *reached = event_of(event).event->query() ? 1 : 0;
  });
}
QuernStatus quern_event_elapsed_ms(QuernEvent start, QuernEvent end, double* ms) {
  return guarded([&] {
    require(ms != nullptr, "quern_event_elapsed_ms needs a place for the time");
    *ms = event_of(end).event->elapsed_ms_since(*event_of(start).event);
  });
}

QuernStatus quern_pin(QuernSession session, void* memory, size_t bytes, QuernPin* pin) {
  return guarded([&] {
    require(memory != nullptr && pin != nullptr, "quern_pin needs memory and a place for the handle");
    const NDArray array =
        NDArray::view(static_cast<std::uint8_t*>(memory), {static_cast<std::int64_t>(bytes)});
    pin->id = insert(std::make_shared<const PinnedScope>(session_of(session).pinned({array})));
  });
}

QuernStatus quern_session_device_name(QuernSession session, char* buffer, size_t bytes, size_t* needed) {
  return guarded([&] {
    const std::string name = session_of(session).device().name();
    if (needed != nullptr) *needed = name.size() + 1;
    if (buffer == nullptr || bytes == 0) return;
    const std::size_t kept = std::min(name.size(), bytes - 1);
    std::memcpy(buffer, name.data(), kept);
    buffer[kept] = '\0';
  });
}
QuernStatus quern_session_memory(QuernSession session, size_t* free_bytes, size_t* total_bytes) {
  return guarded([&] {
    const Session in = session_of(session);
    const std::size_t free_now = in.free_memory_bytes();
    if (free_bytes != nullptr) *free_bytes = free_now;
    if (total_bytes != nullptr) *total_bytes = in.device().total_memory_bytes();
  });
}
QuernStatus quern_session_set_allocator(QuernSession session, const QuernAllocator* allocator) {
  return guarded([&] {
    const Session in = session_of(session);
    if (allocator == nullptr) return in.set_allocator(nullptr);
    require(allocator->struct_bytes >= sizeof(QuernAllocator) && allocator->allocate != nullptr &&
                allocator->deallocate != nullptr,
            "quern_session_set_allocator needs a whole QuernAllocator with both functions");
    in.set_allocator(std::make_shared<CAllocator>(*allocator));
  });
}
