// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/arena.hpp"

#include <doctest/doctest.h>

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
  // Lanes before an array are looked at while others are in it.
  CHECK(parts.front().base - (*window)->base() >= std::ptrdiff_t{1} << 32);
  for (std::size_t i = 1; i < parts.size(); ++i)
    CHECK(static_cast<std::uint64_t>(parts[i].base - (parts[i - 1].base + parts[i - 1].bytes)) >= kGapBytes);
  CHECK(parts.back().base + parts.back().bytes == (*window)->base() + (*window)->bytes());
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
