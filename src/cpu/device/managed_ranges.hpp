// SPDX-License-Identifier: Apache-2.0
// What programs advised about managed memory (cuMemAdvise) and where they last prefetched it. Host and device
// share their memory here, so advice changes nothing; it is kept to be told.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/thread_annotations.hpp"
#include "cpu/engine/memory.hpp"

namespace quern::cpu::device {

inline bool operator==(const CUmemLocation& a, const CUmemLocation& b) noexcept {
  return a.type == b.type && a.id == b.id;
}

/// What holds for every page of a range.
struct PageAdvice {
  bool read_mostly = false;
  CUmemLocation preferred{};       ///< CU_MEM_LOCATION_TYPE_INVALID: none
  CUmemLocation prefetched{};      ///< CU_MEM_LOCATION_TYPE_INVALID: never
  std::set<CUdevice> accessed_by;  ///< CU_DEVICE_CPU: the host
};

/// A part of one managed allocation.
struct ManagedRange {
  std::shared_ptr<engine::Allocation> allocation;
  CUdeviceptr begin = 0;
  std::uint64_t bytes = 0;
};

/// Thread-safe.
class ManagedRanges {
 public:
  /// Applies `change` to every page that the range touches.
  template <class Change>
  void update(const ManagedRange& range, Change&& change) QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    Pages& pages = pages_of(*range.allocation);
    const CUdeviceptr first = first_page(range), end = end_page(range);
    split(pages, first);
    split(pages, end);
    for (auto page = pages.find(first); page != pages.end() && page->first < end; ++page)
      change(page->second);
  }
  /// What all pages of the range agree on; the rest is as if nothing had been advised.
  PageAdvice common(const ManagedRange& range) QUERN_EXCLUDES(mutex_);

 private:
  /// By the first address of pages of equal advice; the next entry ends them.
  using Pages = std::map<CUdeviceptr, PageAdvice>;

  static CUdeviceptr first_page(const ManagedRange& range) noexcept;
  static CUdeviceptr end_page(const ManagedRange& range) noexcept;
  /// Lets an entry begin at that address.
  static void split(Pages& pages, CUdeviceptr at);
  Pages& pages_of(engine::Allocation& allocation) QUERN_REQUIRES(mutex_);

  base::Mutex mutex_;  ///< guards Allocation::advice and what it points to
};

}  // namespace quern::cpu::device
