// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/counters.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <new>

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
    sum.made_count += kind.made_count;
  }
  sum.peak_bytes = peak_bytes;
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
  for (const MemoryStats::Live& one : stats.live)
    text += fmt::format("  {} of {} bytes made at\n{}", name(one.kind), one.size_bytes, one.made_at);
  return text;
}

namespace runtime {
namespace {

constexpr int kFramesTaken = 48;
constexpr int kFramesShown = 8;

bool sites_wanted() {
#ifdef __OPTIMIZE__
  constexpr bool kOtherwise = false;
#else
  constexpr bool kOtherwise = true;
#endif
  return base::env_switch("QUERN_TRACK_ALLOCATIONS", &base::warn_of_env).value_or(kOtherwise);
}

std::vector<void*> frames_of_call() {
  void* frames[kFramesTaken];
  const int count = backtrace(frames, kFramesTaken);
  return std::vector<void*>(frames, frames + count);  // in braces these would be two elements
}

/// True for quern's own code, so that the caller outside is reported. Code of a static library is recognised
/// by its names only.
bool is_ours(const Dl_info& where) {
  static const void* const library = [] {
    Dl_info own{};
    dladdr(reinterpret_cast<void*>(&sites_wanted), &own);
    return static_cast<const void*>(own.dli_fbase);
  }();
  const std::string_view file = where.dli_fname != nullptr ? where.dli_fname : "";
  if (where.dli_fbase == library && file.find("libquern") != std::string_view::npos) return true;
  const std::string_view symbol = where.dli_sname != nullptr ? where.dli_sname : "";
  return symbol.find("5quern") != std::string_view::npos;
}

/// "main + 0x1f (program+0x2b1f)": the name if the program exports it (link it with -rdynamic), and the
/// argument for addr2line.
std::string frame_text(void* frame, const Dl_info& where) {
  const auto offset = [&](const void* from) {
    return static_cast<std::size_t>(static_cast<const char*>(frame) - static_cast<const char*>(from));
  };
  std::string name;
  if (where.dli_sname != nullptr) {
    int status = 0;
    char* const plain = abi::__cxa_demangle(where.dli_sname, nullptr, nullptr, &status);
    name = fmt::format("{} + {:#x} ", plain != nullptr ? plain : where.dli_sname, offset(where.dli_saddr));
    std::free(plain);
  }
  return fmt::format("{}({}+{:#x})", name, where.dli_fname != nullptr ? where.dli_fname : "?",
                     offset(where.dli_fbase));
}

std::string frames_text(const std::vector<void*>& frames) {
  std::string text;
  int shown = 0;
  for (void* const frame : frames) {
    if (shown == kFramesShown) break;
    Dl_info where{};
    if (dladdr(frame, &where) == 0 || (shown == 0 && is_ours(where))) continue;
    text += fmt::format("    {}\n", frame_text(frame, where));
    ++shown;
  }
  return text;
}

}  // namespace

Counters::Counters() : track_sites_(sites_wanted()) {}

void Counters::made(const Resource& resource) noexcept {
  if (resource.item().internal) return;
  Site site;
  if (track_sites_) try {
      site = frames_of_call();
    } catch (const std::bad_alloc&) {  // then the site is not known
    }
  const base::LockGuard lock(mutex_);
  MemoryStats::Kind& kind = stats_.kinds[static_cast<std::size_t>(resource.item().kind)];
  ++kind.live_count;
  ++kind.made_count;
  kind.live_bytes += resource.item().size_bytes;
  kind.peak_bytes = std::max(kind.peak_bytes, kind.live_bytes + kind.pending_bytes);
  const MemoryStats::Kind all = stats_.total();
  stats_.peak_bytes = std::max(stats_.peak_bytes, all.live_bytes + all.pending_bytes);
  if (track_sites_) try {
      sites_[&resource] = std::move(site);
    } catch (const std::bad_alloc&) {
    }
}

void Counters::dropped(const Resource& resource) noexcept {
  if (resource.item().internal) return;
  const base::LockGuard lock(mutex_);
  MemoryStats::Kind& kind = stats_.kinds[static_cast<std::size_t>(resource.item().kind)];
  --kind.live_count;
  kind.live_bytes -= resource.item().size_bytes;
  ++kind.pending_count;
  kind.pending_bytes += resource.item().size_bytes;
  if (track_sites_) sites_.erase(&resource);
}

void Counters::released(const Release& item) noexcept {
  if (item.internal) return;
  const base::LockGuard lock(mutex_);
  MemoryStats::Kind& kind = stats_.kinds[static_cast<std::size_t>(item.kind)];
  --kind.pending_count;
  kind.pending_bytes -= item.size_bytes;
}

MemoryStats Counters::stats() const {
  const base::LockGuard lock(mutex_);
  MemoryStats stats = stats_;
  for (const auto& [resource, site] : sites_)
    stats.live.push_back({resource->item().kind, resource->item().size_bytes, frames_text(site)});
  return stats;
}

std::string Counters::leak_report() const {
  const MemoryStats now = stats();
  return now.total().live_count == 0 ? std::string() : to_string(now);
}

}  // namespace runtime
}  // namespace quern
