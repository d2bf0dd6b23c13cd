// SPDX-License-Identifier: Apache-2.0
#include "runtime/counters.hpp"

#include <execinfo.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/env.hpp"

namespace quern {
namespace {

constexpr std::string_view kNames[] = {"device",     "pooled", "managed", "pinned", "mapped",
                                       "registered", "stream", "event",   "module"};
static_assert(std::size(kNames) == kResourceKindCount);

}  // namespace

std::string_view name(ResourceKind kind) noexcept { return kNames[static_cast<std::size_t>(kind)]; }

MemoryStats::Kind MemoryStats::total() const noexcept {
  Kind sum;
  for (const Kind& kind : kinds) {
    sum.live_count += kind.live_count;
    sum.live_bytes += kind.live_bytes;
    sum.pending_count += kind.pending_count;
    sum.pending_bytes += kind.pending_bytes;
    sum.peak_bytes += kind.peak_bytes;
    sum.made_count += kind.made_count;
  }
  return sum;
}

std::string to_string(const MemoryStats& stats) {
  std::string text;
  for (std::size_t i = 0; i < kResourceKindCount; ++i) {
    const MemoryStats::Kind& kind = stats.kinds[i];
    if (kind.live_count + kind.pending_count == 0) continue;
    text += fmt::format("{:<10} live {} ({} bytes), pending {} ({} bytes), peak {} bytes\n", kNames[i],
                        kind.live_count, kind.live_bytes, kind.pending_count, kind.pending_bytes,
                        kind.peak_bytes);
  }
  return text;
}

namespace runtime {
namespace {

constexpr int kFramesSkipped = 4;  // those of this room
constexpr int kFramesKept = 8;

bool sites_wanted() {
#ifdef __OPTIMIZE__
  constexpr std::uint64_t kOtherwise = 0;
#else
  constexpr std::uint64_t kOtherwise = 1;
#endif
  return base::env_number("QUERN_TRACK_ALLOCATIONS").value_or(kOtherwise) != 0;
}

std::string frames_text(const std::vector<void*>& frames) {
  std::string text;
  char** names = backtrace_symbols(frames.data(), static_cast<int>(frames.size()));
  if (names == nullptr) return text;
  for (std::size_t i = 0; i < frames.size(); ++i) text += fmt::format("    {}\n", names[i]);
  std::free(names);
  return text;
}

}  // namespace

Counters::Counters() : track_sites_(sites_wanted()) {}

void Counters::made(const Resource& resource) noexcept {
  Site site;
  if (track_sites_) {
    void* frames[kFramesSkipped + kFramesKept];
    const int count = backtrace(frames, kFramesSkipped + kFramesKept);
    if (count > kFramesSkipped) site.assign(frames + kFramesSkipped, frames + count);
  }
  const base::LockGuard lock(mutex_);
  MemoryStats::Kind& kind = stats_.kinds[static_cast<std::size_t>(resource.item().kind)];
  ++kind.live_count;
  ++kind.made_count;
  kind.live_bytes += resource.item().size_bytes;
  kind.peak_bytes = std::max(kind.peak_bytes, kind.live_bytes + kind.pending_bytes);
  if (track_sites_) sites_[&resource] = std::move(site);
}

void Counters::dropped(const Resource& resource) noexcept {
  const base::LockGuard lock(mutex_);
  MemoryStats::Kind& kind = stats_.kinds[static_cast<std::size_t>(resource.item().kind)];
  --kind.live_count;
  kind.live_bytes -= resource.item().size_bytes;
  ++kind.pending_count;
  kind.pending_bytes += resource.item().size_bytes;
  if (track_sites_) sites_.erase(&resource);
}

void Counters::released(const Release& item) noexcept {
  const base::LockGuard lock(mutex_);
  MemoryStats::Kind& kind = stats_.kinds[static_cast<std::size_t>(item.kind)];
  --kind.pending_count;
  kind.pending_bytes -= item.size_bytes;
}

MemoryStats Counters::stats() const noexcept {
  const base::LockGuard lock(mutex_);
  return stats_;
}

std::string Counters::leak_report() const {
  const base::LockGuard lock(mutex_);
  if (stats_.total().live_count == 0) return {};
  std::string text = to_string(stats_);
  for (const auto& [resource, site] : sites_)
    text += fmt::format("  {} of {} bytes made at\n{}", name(resource->item().kind),
                        resource->item().size_bytes, frames_text(site));
  return text;
}

}  // namespace runtime
}  // namespace quern
