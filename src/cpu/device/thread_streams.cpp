// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/thread_streams.hpp"

#include <utility>
#include <vector>

#include "base/thread_value.hpp"
#include "cpu/device/driver.hpp"

namespace quern::cpu::device {
namespace {

thread_local unsigned per_thread_calls = 0;

/// A thread's per-thread default streams, by context.
struct ThreadStreams {
  struct Entry {
    std::weak_ptr<ContextState> context;
    std::shared_ptr<engine::Stream> stream;
  };
  std::vector<Entry> entries;
  ~ThreadStreams() {
    const Driver* const driver = Driver::started();
    if (driver == nullptr || forked()) return;
    for (const Entry& entry : entries)
      if (const std::shared_ptr<ContextState> alive = entry.context.lock())
        Driver::get().scheduler().retire(*entry.stream);
  }
};

}  // namespace

std::shared_ptr<engine::Stream> thread_stream(engine::Scheduler& scheduler,
                                              const std::shared_ptr<ContextState>& context) {
  ThreadStreams& streams = base::thread_value<ThreadStreams>();
  std::erase_if(streams.entries, [](const ThreadStreams::Entry& entry) { return entry.context.expired(); });
  for (const ThreadStreams::Entry& entry : streams.entries)
    if (entry.context.lock() == context) return entry.stream;
  streams.entries.push_back({context, scheduler.make_stream(*context->domain, true)});
  return streams.entries.back().stream;
}

CUstream default_stream() noexcept { return per_thread_calls > 0 ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY; }

PerThreadCall::PerThreadCall() noexcept { ++per_thread_calls; }
PerThreadCall::~PerThreadCall() { --per_thread_calls; }

}  // namespace quern::cpu::device
