// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace quern::base {

/// A handler that exit() runs before it destroys the static objects with the records made before.
/// exit() calls handlers in the reverse order of their registration, destructors of static objects among
/// them, so the handler is registered again behind objects that are new: it runs more than once. Of static
/// storage duration; never destroyed. Thread-safe.
class ExitHandler {
 public:
  using Function = void (*)(int status, void* unused);
  constexpr explicit ExitHandler(Function function) noexcept : function_(function) {}
  ExitHandler(const ExitHandler&) = delete;
  ExitHandler& operator=(const ExitHandler&) = delete;

  /// The host has been given an object, which it may keep in a static one.
  void note_object() noexcept { noted_.store(true, std::memory_order_relaxed); }

  /// To be called before the work that the handler is for; cheap if nothing was recorded since the last time.
  void arm() noexcept {
    if (!noted_.load(std::memory_order_relaxed) || !noted_.exchange(false)) return;
    // A program that makes an object before each piece of work does not fill the memory with handlers.
    const std::uint64_t count = ++wanted_;
    if (count <= kMostRegistrations || (count & (count - 1)) == 0) ::on_exit(function_, nullptr);
  }

 private:
  static constexpr std::uint64_t kMostRegistrations = 256;
  const Function function_;
  std::atomic<bool> noted_{true};
  std::atomic<std::uint64_t> wanted_{0};
};

}  // namespace quern::base
