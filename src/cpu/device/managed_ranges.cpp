// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/managed_ranges.hpp"

#include <algorithm>
#include <iterator>

#include "cpu/engine/window.hpp"

namespace quern::cpu::device {

CUdeviceptr ManagedRanges::first_page(const ManagedRange& range) noexcept {
  return range.begin / engine::kPageBytes * engine::kPageBytes;
}
CUdeviceptr ManagedRanges::end_page(const ManagedRange& range) noexcept {
  return engine::round_up(range.begin + range.bytes, engine::kPageBytes);
}

void ManagedRanges::split(Pages& pages, CUdeviceptr at) {
  const auto after = pages.upper_bound(at);
  if (after == pages.begin()) return;
  const auto holds = std::prev(after);
  if (holds->first != at) pages.emplace(at, holds->second);
}

ManagedRanges::Pages& ManagedRanges::pages_of(engine::Allocation& allocation) {
  if (allocation.advice == nullptr) {
    auto pages = std::make_shared<Pages>();
    pages->emplace(reinterpret_cast<CUdeviceptr>(allocation.base) / engine::kPageBytes * engine::kPageBytes,
                   PageAdvice{});
    allocation.advice = std::move(pages);
  }
  return *static_cast<Pages*>(allocation.advice.get());
}

PageAdvice ManagedRanges::common(const ManagedRange& range) {
  const base::LockGuard lock(mutex_);
  const Pages& pages = pages_of(*range.allocation);
  auto page = std::prev(pages.upper_bound(first_page(range)));
  PageAdvice agreed = page->second;
  for (++page; page != pages.end() && page->first < end_page(range); ++page) {
    const PageAdvice& here = page->second;
    agreed.read_mostly = agreed.read_mostly && here.read_mostly;
    if (!(agreed.preferred == here.preferred)) agreed.preferred = {};
    if (!(agreed.prefetched == here.prefetched)) agreed.prefetched = {};
    std::erase_if(agreed.accessed_by, [&](CUdevice device) { return !here.accessed_by.contains(device); });
  }
  return agreed;
}

}  // namespace quern::cpu::device
