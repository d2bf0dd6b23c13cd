// SPDX-License-Identifier: Apache-2.0
// Host memory that runs out at a chosen allocation of this thread, outside the driver's own calls.
#pragma once

#include <cstdint>

namespace quern::failure {

/// While an object of this class lives, allocations of this thread are counted, and from the `nth` on they
/// throw std::bad_alloc: only that one, or with `for_good` all later ones as well. 0: none does. One at a
/// time on a thread.
class ShortOfMemory {
 public:
  explicit ShortOfMemory(std::uint64_t nth, bool for_good = false) noexcept;
  ~ShortOfMemory();
  ShortOfMemory(const ShortOfMemory&) = delete;
  ShortOfMemory& operator=(const ShortOfMemory&) = delete;

  /// Allocations so far.
  static std::uint64_t count() noexcept;
  /// Ends it early.
  static void end() noexcept;
};

/// For FailingTable::observe(): the driver's own allocations are not counted.
void in_driver(bool begins) noexcept;

}  // namespace quern::failure
