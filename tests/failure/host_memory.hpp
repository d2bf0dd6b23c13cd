// SPDX-License-Identifier: Apache-2.0
// Simulates exhausted host memory at a chosen allocation of this thread, outside the driver's own calls.
#pragma once

#include <cstdint>

namespace quern::failure {

/// During its lifetime, counts the allocations of this thread. The `nth` one throws std::bad_alloc, and with
/// `for_good` all later ones do, too. 0: none throws. A thread may have one such object at a time.
class ShortOfMemory {
 public:
  explicit ShortOfMemory(std::uint64_t nth, bool for_good = false) noexcept;
  ~ShortOfMemory();
  ShortOfMemory(const ShortOfMemory&) = delete;
  ShortOfMemory& operator=(const ShortOfMemory&) = delete;

  /// The number of allocations so far.
  static std::uint64_t count() noexcept;
  /// Ends counting and throwing early.
  static void end() noexcept;
};

/// For FailingTable::observe(): excludes the driver's own allocations.
void in_driver(bool begins) noexcept;

}  // namespace quern::failure
