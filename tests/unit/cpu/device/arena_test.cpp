// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/arena.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <vector>

#include "cpu/engine/memory.hpp"

using namespace quern::cpu::engine;

namespace {
std::unique_ptr<Window> small_window() {
  WindowLayout layout;
  layout.arena_bytes = std::uint64_t{64} << 30;
  layout.host_bytes = std::uint64_t{1} << 30;
  layout.worker_count = 1;
  auto window = Window::reserve(layout);
  REQUIRE(window);
  return std::move(*window);
}
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

WindowLayout compact_layout(std::uint64_t arena_bytes) {
  WindowLayout layout;
  layout.arena_bytes = arena_bytes;
  layout.host_bytes = kMiB;
  layout.compact = true;
  layout.local_bytes = 4 * kMiB;
  return layout;
}
}  // namespace

TEST_CASE("the parts of the window lie apart by at least the gap and inside it") {
  WindowLayout layout;
  layout.device_count = 2;
  layout.arena_bytes = kMiB;
  layout.host_bytes = kMiB;
  layout.worker_count = 2;
  const auto window = Window::reserve(layout);
  REQUIRE(window);
  std::vector<Range> parts{(*window)->arena(0), (*window)->arena(1), (*window)->host()};
  for (std::uint32_t worker = 0; worker < 2; ++worker) {
    parts.push_back((*window)->shared(worker));
    parts.push_back((*window)->local(worker));
  }
  // Lanes before an array may be accessed while other lanes are in it.
  CHECK(parts.front().base - (*window)->base() >= std::ptrdiff_t{1} << 32);
  for (std::size_t i = 1; i < parts.size(); ++i)
    CHECK(static_cast<std::uint64_t>(parts[i].base - (parts[i - 1].base + parts[i - 1].bytes)) >= kGapBytes);
  CHECK(parts.back().base + parts.back().bytes == (*window)->base() + (*window)->bytes());
}

TEST_CASE("a compact window has small gaps, and all parts inside it") {
  WindowLayout layout = compact_layout(kMiB);
  layout.device_count = 2;
  layout.worker_count = 3;
  const auto window = Window::reserve(layout);
  REQUIRE(window);
  std::vector<Range> parts{(*window)->arena(0), (*window)->arena(1), (*window)->host(), (*window)->locals()};
  for (std::uint32_t worker = 0; worker < 3; ++worker) parts.push_back((*window)->shared(worker));
  // Misaligned accesses land at the window's start and up to a gap after it. Lanes before an array come after
  // that.
  CHECK(parts.front().base - (*window)->base() >=
        static_cast<std::ptrdiff_t>(2 * kCompactGapBytes + kCompactReachBytes));
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto apart = static_cast<std::uint64_t>(parts[i].base - (parts[i - 1].base + parts[i - 1].bytes));
    CHECK(apart >= 3 * kCompactReachBytes);
    CHECK(apart <= 4 * kMiB);
  }
  CHECK(parts.back().base + parts.back().bytes <= (*window)->base() + (*window)->bytes());
  CHECK((*window)->reserved_bytes() < 128 * kMiB);
  CHECK((*window)->reserved_bytes() <= reservation_bytes(layout));
  CHECK((*window)->reaches((*window)->base() - kCompactGapBytes));
  CHECK_FALSE((*window)->reaches((*window)->base() - kCompactGapBytes - 1));
  CHECK((*window)->reaches((*window)->base() + (*window)->bytes() + kCompactGapBytes - 1));
  CHECK_FALSE((*window)->reaches((*window)->base() + (*window)->bytes() + kCompactGapBytes));
}

/// ThreadSanitizer leaves few addresses for programs, and none after a window.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define QUERN_TEST_NO_ROOM
#endif
#endif
#ifndef QUERN_TEST_NO_ROOM
TEST_CASE("a window grows at its end, and gives all back") {
  for (const bool compact : {false, true}) {
    CAPTURE(compact);
    WindowLayout layout = compact_layout(kMiB);
    layout.compact = compact;
    auto window = Window::reserve(layout);
    REQUIRE(window);
    const std::uint64_t before = (*window)->bytes();
    std::byte* const old_end = (*window)->base() + before;
    const Range more = (*window)->grow(3 * kMiB);
    REQUIRE(more.bytes >= 3 * kMiB);
    CHECK(static_cast<std::uint64_t>(more.base - old_end) >= (compact ? kCompactPartGapBytes : kGapBytes));
    CHECK(more.base + more.bytes == (*window)->base() + (*window)->bytes());
    CHECK(commit(more.base, more.bytes));
    std::memset(more.base, 1, more.bytes);
    std::byte* const end = more.base + more.bytes;
    CHECK((*window)->reaches(end));
    window->reset();
    CHECK_FALSE(commit(more.base, kPageBytes));  // nothing is mapped there
    CHECK_FALSE(commit(end, kPageBytes));
  }
}

TEST_CASE("an arena whose free addresses are in pieces gets more") {
  const auto window = Window::reserve(compact_layout(8 * kMiB));
  REQUIRE(window);
  const auto grow = [&](std::uint64_t bytes) { return (*window)->grow(bytes); };
  const ArenaSpacing spacing{.guard_bytes = 64 << 10, .small_blocks = 8};
  for (const bool grows : {false, true}) {
    CAPTURE(grows);
    Arena arena((*window)->arena(0), 8 * kMiB, spacing, grows ? Arena::Grow(grow) : Arena::Grow());
    std::vector<std::byte*> blocks;
    for (int i = 0; i < 7; ++i) blocks.push_back(arena.allocate(kMiB));
    REQUIRE(blocks.back() != nullptr);
    for (std::size_t i = 0; i < 6; i += 2) arena.release(blocks[i]);
    CHECK(arena.free_bytes() == 4 * kMiB);
    CHECK(arena.allocate(2 * kMiB, MayGrow::no) == nullptr);
    std::byte* const large = arena.allocate(2 * kMiB);
    REQUIRE((large != nullptr) == grows);
    if (!grows) {
      for (std::size_t i = 1; i < 7; i += i == 5 ? 1 : 2) arena.release(blocks[i]);
      continue;
    }
    CHECK_FALSE((*window)->arena(0).contains(large));
    CHECK((*window)->contains(large));
    std::memset(large, 1, 2 * kMiB);
    arena.release(large);
    CHECK(arena.free_bytes() == 4 * kMiB);
    CHECK(arena.allocate(3 * kMiB) == large);  // the arena has its addresses now
  }
}
#endif

TEST_CASE("a narrow arena keeps most of its addresses for large allocations") {
  const std::uint64_t bytes = 64 * kMiB;
  const auto window = Window::reserve(compact_layout(bytes));
  REQUIRE(window);
  Arena arena((*window)->arena(0), bytes, narrow_spacing(bytes));
  std::set<std::byte*> small;
  for (int i = 0; i < 5000; ++i) CHECK(small.insert(arena.allocate(64)).second);
  CHECK(small.count(nullptr) == 0);
  CHECK(arena.allocate(40 * kMiB) != nullptr);
}

TEST_CASE("allocations are aligned, writable, zeroed and apart from each other") {
  const auto window = small_window();
  Arena arena(window->arena(0), 64 * kMiB);
  std::byte* previous_end = window->base();
  for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{255}, std::uint64_t{4096}, 3 * kMiB}) {
    std::byte* base = arena.allocate(bytes);
    REQUIRE(base != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(base) % 256 == 0);
    CHECK(base[bytes - 1] == std::byte{0});
    std::memset(base, 0x5a, bytes);
    CHECK(base - previous_end >= 65536);
    previous_end = base + bytes;
  }
}

TEST_CASE("the declared total is the limit and released memory counts as free again") {
  const auto window = small_window();
  Arena arena(window->arena(0), 8 * kMiB);
  CHECK(arena.free_bytes() == 8 * kMiB);
  std::byte* first = arena.allocate(6 * kMiB);
  REQUIRE(first != nullptr);
  CHECK(arena.allocate(3 * kMiB) == nullptr);
  CHECK(arena.free_bytes() == 2 * kMiB);
  arena.release(first);
  CHECK(arena.free_bytes() == 8 * kMiB);
  CHECK(arena.allocate(8 * kMiB) != nullptr);
}

TEST_CASE("addresses are reused after a release and neighbours merge") {
  const auto window = small_window();
  Arena arena(window->arena(0), 512 * kMiB);
  std::byte* a = arena.allocate(kMiB);
  std::byte* b = arena.allocate(kMiB);
  std::byte* c = arena.allocate(kMiB);
  REQUIRE(c != nullptr);
  arena.release(a);
  arena.release(b);
  CHECK(arena.allocate(2 * kMiB) == a);
}

TEST_CASE("many small allocations share slabs and all stay distinct") {
  const auto window = small_window();
  Arena arena(window->arena(0), 512 * kMiB);
  std::set<std::byte*> all;
  for (int i = 0; i < 20000; ++i) {
    std::byte* base = arena.allocate(100);
    REQUIRE(base != nullptr);
    CHECK(all.insert(base).second);
    base[99] = std::byte{1};
  }
  for (std::byte* base : all) arena.release(base);
  CHECK(arena.free_bytes() == 512 * kMiB);
}

TEST_CASE("memory finds the allocation an address lies in, and nothing beyond its end") {
  const auto window = small_window();
  Memory memory(*window, 1, 64 * kMiB, 64 * kMiB);
  const auto allocation = memory.allocate({1000, AllocationKind::device, 0, 5, 0});
  REQUIRE(allocation != nullptr);
  CHECK(memory.find(allocation->base + 999) == allocation);
  CHECK(memory.find(allocation->base + 1000) == nullptr);
  CHECK(memory.find_range(allocation->base + 10, 990) == allocation);
  CHECK(memory.find_range(allocation->base + 10, 991) == nullptr);
  CHECK(memory.remove(allocation->base + 1, AllocationKind::device) == nullptr);
  CHECK(memory.remove(allocation->base, AllocationKind::host) == nullptr);
  CHECK(memory.remove_all(5).size() == 1);
  CHECK(memory.find(allocation->base) == nullptr);
}

TEST_CASE("a removed allocation lives on while something uses it") {
  const auto window = small_window();
  Memory memory(*window, 1, 64 * kMiB, 64 * kMiB);
  auto allocation = memory.allocate({kMiB, AllocationKind::device, 0, 1, 0});
  memory.remove(allocation->base, AllocationKind::device);
  std::memset(allocation->base, 1, allocation->bytes);
  CHECK(memory.free_bytes(0) == 63 * kMiB);
  allocation.reset();
  CHECK(memory.free_bytes(0) == 64 * kMiB);
}

TEST_CASE("reserved addresses cost no memory and are used again") {
  const auto window = small_window();
  Arena arena(window->arena(0), 64 * kMiB);
  std::byte* const first = arena.reserve(std::uint64_t{1} << 30, 8 * kMiB);
  REQUIRE(first != nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(first) % (8 * kMiB) == 0);
  CHECK(arena.free_bytes() == 64 * kMiB);
  CHECK(arena.reserve(std::uint64_t{1} << 50, 0) == nullptr);
  CHECK(arena.reserve(UINT64_MAX - 100, 0) == nullptr);
  arena.release(first);
  CHECK(arena.reserve(std::uint64_t{1} << 30, 8 * kMiB) == first);
}

TEST_CASE("memory that lies elsewhere counts against the total") {
  const auto window = small_window();
  Arena arena(window->arena(0), 4 * kMiB);
  std::shared_ptr<Backing> backing = Backing::make(arena, 3, 3 * kMiB);
  REQUIRE(backing != nullptr);
  CHECK(arena.free_bytes() == kMiB);
  CHECK(Backing::make(arena, 3, 2 * kMiB) == nullptr);
  CHECK(arena.allocate(2 * kMiB) == nullptr);
  const int other = ::dup(backing->descriptor());
  backing.reset();
  CHECK(arena.free_bytes() == 4 * kMiB);
  const std::shared_ptr<Backing> adopted = Backing::adopt(other);
  REQUIRE(adopted != nullptr);
  CHECK(adopted->bytes() == 3 * kMiB);
  CHECK(adopted->device() == 3);
  CHECK(arena.free_bytes() == 4 * kMiB);
  CHECK(::ftruncate(adopted->descriptor(), 0) == -1);
}

TEST_CASE("an allocation that moves into a file keeps its address and contents") {
  const auto window = small_window();
  for (const std::uint32_t small_blocks : {8192u, 0u}) {  // 0: it shares a slab
    Arena arena(window->arena(0), 64 * kMiB, {.small_blocks = small_blocks});
    std::byte* const before = arena.allocate(1000);
    std::byte* const base = arena.allocate(1000);
    REQUIRE(base != nullptr);
    std::memset(base, 42, 1000);
    const Arena::FilePlace place = arena.share(base, 0);
    REQUIRE(place.descriptor >= 0);
    CHECK(arena.share(base, 0).descriptor == place.descriptor);
    CHECK(base[999] == std::byte{42});
    base[7] = std::byte{43};
    std::byte seen{};
    CHECK(::pread(place.descriptor, &seen, 1, static_cast<off_t>(place.offset + 7)) == 1);
    CHECK(seen == std::byte{43});
    arena.release(base);
    arena.release(before);
    CHECK(arena.free_bytes() == 64 * kMiB);
    CHECK(::fcntl(place.descriptor, F_GETFD) == -1);
  }
}
