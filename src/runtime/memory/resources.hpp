// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/memory/counters.hpp"
#include "runtime/memory/dealloc_queue.hpp"
#include "runtime/memory/release.hpp"
#include "runtime/work/driver_context.hpp"
#include "runtime/work/queued_work.hpp"

namespace quern::runtime {

/// The resources of one context: makes their owners, counts them and releases them. Thread-safe.
class Resources {
 public:
  Resources(DriverContext& context, QueuedWork& work);
  Resources(const Resources&) = delete;
  Resources& operator=(const Resources&) = delete;

  DeallocQueue& queue() noexcept { return queue_; }
  Counters& counters() noexcept { return counters_; }
  const Counters& counters() const noexcept { return counters_; }

  /// Makes the owner of a resource that the driver has just returned; if host memory does not suffice for the
  /// owner, the resource is released.
  std::shared_ptr<Resource> own(Release item);
  /// True while the process exits, when nothing is released any more, and after exit() was called if a
  /// release would wait for a callback: that callback may be the one that called exit().
  bool releases_nothing() const noexcept;

  /// Called by Resource.
  void made(const Resource& resource) noexcept;
  void dropped(const Resource& resource, const Release& item) noexcept;

 private:
  std::string release(const Release& item);
  std::string give_back(const Release& item);
  std::optional<std::string> give_back_alive(const Release& item);
  void give_back_lost(const Release& item) noexcept;
  void release_now(const Release& item) noexcept;

  DriverContext& context_;
  QueuedWork& work_;
  Counters counters_;
  DeallocQueue queue_;
};

}  // namespace quern::runtime
