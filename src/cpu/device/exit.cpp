// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/exit.hpp"

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>

#include "cpu/device/driver.hpp"

namespace quern::cpu::device {
namespace {

// exit() calls handlers in the reverse order of their registration, destructors of static objects among them:
// ours is registered again behind objects that are new.
constexpr std::uint64_t kMostRegistrations = 256;
std::atomic<bool> noted{true};
std::atomic<std::uint64_t> wanted{0};

void at_exit(int, void*) {
  if (forked()) return;
  entry([] { Driver::get().scheduler().end_at_exit(); });
}

}  // namespace

void note_object() noexcept { noted.store(true, std::memory_order_relaxed); }

void end_launches_at_exit() noexcept {
  if (!noted.load(std::memory_order_relaxed) || !noted.exchange(false)) return;
  // A program that allocates before each launch does not fill the memory with handlers.
  const std::uint64_t count = ++wanted;
  if (count <= kMostRegistrations || std::has_single_bit(count)) ::on_exit(&at_exit, nullptr);
}

}  // namespace quern::cpu::device
