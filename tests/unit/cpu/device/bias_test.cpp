// SPDX-License-Identifier: Apache-2.0
// The owners of biased regions. Threads of the test stand for the code of kernels.
#include "cpu/engine/bias.hpp"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <functional>
#include <thread>

namespace quern::cpu::test {
namespace {

using engine::Bias;
using engine::kBiasRegionBytes;
using engine::WorkerState;
using ir::AtomicUse;

constexpr std::uint64_t kRegions = 8192;  // entries of the table
constexpr std::uint64_t place(std::uint64_t region) { return region * kBiasRegionBytes; }

struct Workers {
  Bias bias;
  std::array<WorkerState, 3> states;

  Workers() {
    for (std::uint32_t i = 0; i < states.size(); ++i) {
      states[i].worker_index = i;
      bias.add(states[i]);
    }
  }
  bool own(std::size_t worker, std::uint64_t first, std::uint64_t last) {
    return bias.own(states[worker], place(first), place(last));
  }
  bool own(std::size_t worker, std::uint64_t region) { return own(worker, region, region); }
  void end_section(std::size_t worker) { ++states[worker].bias.section; }
  bool is_in_section(std::size_t worker) const { return states[worker].bias.section % 2 != 0; }
  void enter(std::initializer_list<std::size_t> workers) {
    for (const std::size_t worker : workers) bias.enter(states[worker], AtomicUse::biased);
  }
  void leave(std::initializer_list<std::size_t> workers) {
    for (const std::size_t worker : workers) bias.leave(states[worker], AtomicUse::biased);
  }
};

/// Returns false if the system has no fences for all threads of a process: then no region gets an owner.
bool has_fences() {
  static const bool found = [] {
    using Clock = std::chrono::steady_clock;
    for (const auto end = Clock::now() + std::chrono::seconds(5); Clock::now() < end;) {
      Workers workers;
      workers.enter({0});
      if (workers.own(0, 1)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }();
  if (!found) MESSAGE("skipped: there are no fences for all threads of a process");
  return found;
}

}  // namespace

TEST_CASE("a region has the first worker as its owner until another asks for it") {
  if (!has_fences()) return;
  Workers workers;
  workers.enter({0, 1});
  CHECK(workers.own(0, 5));
  CHECK(workers.is_in_section(0));
  workers.end_section(0);
  CHECK(workers.own(1, 6));
  workers.end_section(1);
  CHECK_FALSE(workers.own(1, 5));
  CHECK_FALSE(workers.is_in_section(1));
  CHECK_FALSE(workers.own(0, 5));
  CHECK(workers.own(1, 6));
  workers.end_section(1);
  // The table has one entry for these two.
  CHECK_FALSE(workers.own(0, 6 + kRegions));
}

TEST_CASE("both regions of an access belong to the worker, or none to any") {
  if (!has_fences()) return;
  Workers workers;
  workers.enter({0, 1});
  CHECK(workers.own(0, 5, 6));
  workers.end_section(0);
  CHECK(workers.own(1, 7, 8));
  workers.end_section(1);
  CHECK_FALSE(workers.own(1, 6, 7));
  for (const std::size_t worker : {std::size_t{0}, std::size_t{1}})
    for (const std::uint64_t region : {std::uint64_t{6}, std::uint64_t{7}})
      CHECK_FALSE(workers.own(worker, region));
  CHECK(workers.own(0, 5));
  workers.end_section(0);
  CHECK(workers.own(1, 8));
}

TEST_CASE("an access whose last byte is in another worker's region takes it away") {
  if (!has_fences()) return;
  Workers workers;
  workers.enter({0, 1});
  CHECK(workers.own(0, 6));
  workers.end_section(0);
  CHECK(workers.own(1, 7));
  workers.end_section(1);
  CHECK_FALSE(workers.own(0, 6, 7));
  CHECK_FALSE(workers.own(0, 6));
  CHECK_FALSE(workers.own(1, 7));
}

TEST_CASE("who takes a region away waits until its owner has ended the section") {
  if (!has_fences()) return;
  const std::function<void(Workers&)> takers[] = {
      [](Workers& workers) { CHECK_FALSE(workers.own(1, 5)); },
      [](Workers& workers) {
        const std::uint64_t addresses[] = {place(9), place(5)};
        workers.bias.unbias(workers.states[1], addresses, 0b10);
      },
      [](Workers& workers) { workers.bias.enter(workers.states[2], AtomicUse::other); },
      [](Workers& workers) { workers.bias.forbid(); },
  };
  for (const auto& take : takers) {
    Workers workers;
    workers.enter({0, 1});
    CHECK(workers.own(0, 5));
    std::atomic<bool> ended{false};
    std::thread other([&] {
      take(workers);
      CHECK(ended.load());
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ended = true;
    __atomic_fetch_add(&workers.states[0].bias.section, 1, __ATOMIC_RELEASE);
    other.join();
    CHECK_FALSE(workers.own(0, 5));
  }
}

TEST_CASE("lanes that take regions away leave those of the worker and of other lanes") {
  if (!has_fences()) return;
  Workers workers;
  workers.enter({0, 1});
  for (const std::uint64_t region : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}}) {
    CHECK(workers.own(region == 3 ? 1 : 0, region));
    workers.end_section(region == 3 ? 1 : 0);
  }
  const std::uint64_t addresses[] = {place(1), place(2), place(3), place(4)};
  workers.bias.unbias(workers.states[1], addresses, 0b1101);
  CHECK_FALSE(workers.own(0, 1));
  CHECK(workers.own(0, 2));
  workers.end_section(0);
  CHECK(workers.own(1, 3));
  workers.end_section(1);
  // Nobody owned it, and nobody may.
  CHECK_FALSE(workers.own(0, 4));
}

TEST_CASE("kernels with other atomic operations end all ownership, and new kernels begin it") {
  if (!has_fences()) return;
  Workers workers;
  workers.enter({0});
  CHECK(workers.own(0, 5));
  workers.end_section(0);
  workers.bias.enter(workers.states[1], AtomicUse::other);
  CHECK_FALSE(workers.own(0, 5));
  CHECK_FALSE(workers.own(0, 6));
  workers.bias.leave(workers.states[1], AtomicUse::other);
  CHECK_FALSE(workers.own(0, 5));
  CHECK_FALSE(workers.own(0, 7));
  workers.leave({0});
  workers.enter({1});
  CHECK(workers.own(1, 5));
  workers.end_section(1);
  CHECK(workers.own(1, 7));
  workers.end_section(1);
  workers.bias.forbid();
  workers.leave({1});
  workers.enter({1});
  CHECK_FALSE(workers.own(1, 5));
}

TEST_CASE("regions are not claimed while a kernel with other atomic operations runs") {
  if (!has_fences()) return;
  Workers workers;
  workers.bias.enter(workers.states[1], AtomicUse::other);
  workers.enter({0});
  CHECK_FALSE(workers.own(0, 5));
  workers.bias.leave(workers.states[1], AtomicUse::other);
  CHECK_FALSE(workers.own(0, 5));
  CHECK(workers.own(0, 6));
}

TEST_CASE("a worker that leaves in a section ends it") {
  if (!has_fences()) return;
  Workers workers;
  workers.enter({0, 1});
  CHECK(workers.own(0, 5));
  workers.leave({0});
  CHECK_FALSE(workers.is_in_section(0));
  CHECK_FALSE(workers.own(1, 5));
}

TEST_CASE("workers that take each other's regions all the time get no more") {
  if (!has_fences()) return;
  Workers workers;
  workers.enter({0, 1});
  std::uint64_t owned = 0;
  for (std::uint64_t region = 0; region < 1000; ++region)
    for (const std::size_t worker : {std::size_t{0}, std::size_t{1}})
      if (workers.own(worker, region)) {
        ++owned;
        workers.end_section(worker);
      }
  CHECK(owned > 10);
  CHECK(owned < 100);
}

TEST_CASE("one worker alone owns nothing") {
  Bias bias;
  WorkerState state;
  bias.add(state);
  bias.enter(state, AtomicUse::biased);
  CHECK_FALSE(bias.own(state, 0, 0));
  bias.leave(state, AtomicUse::biased);
}

// The counters are incremented by plain instructions where a thread owns the region, as emitted code does.
TEST_CASE("threads count in regions that they own and in others") {
  if (!has_fences()) return;
  constexpr std::uint64_t kPlaces = 64, kTurns = 200'000;
  Workers workers;
  std::array<std::uint64_t, kPlaces> counts{};
  const auto count = [&](std::size_t worker) {
    WorkerState& state = workers.states[worker];
    engine::BiasView& view = state.bias;
    for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
      if (turn % 2000 == 0) {
        if (turn != 0) workers.bias.leave(state, AtomicUse::biased);
        workers.bias.enter(state, AtomicUse::biased);
      }
      // Mostly places of its own.
      const std::uint64_t at = turn % 5 == 0 ? turn * 7 % kPlaces : (turn / 5 * 3 + worker) % kPlaces;
      std::uint64_t* const counter = &counts[at];
      const std::uint64_t address = place(at);
      __atomic_store_n(&view.section, view.section + 1, __ATOMIC_RELAXED);
      __atomic_signal_fence(__ATOMIC_SEQ_CST);
      const std::uint64_t entry =
          __atomic_load_n(&view.owners[address / kBiasRegionBytes & view.mask], __ATOMIC_RELAXED);
      if (entry != view.tag && !workers.bias.own(state, address, address)) {
        __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
        continue;
      }
      const std::uint64_t old = __atomic_load_n(counter, __ATOMIC_RELAXED);
      __atomic_store_n(counter, old + 1, __ATOMIC_RELAXED);
      __atomic_store_n(&view.section, view.section + 1, __ATOMIC_RELEASE);
    }
    workers.bias.leave(state, AtomicUse::biased);
  };
  std::thread one(count, 0), two(count, 1), three(count, 2);
  one.join();
  two.join();
  three.join();
  std::uint64_t all = 0;
  for (const std::uint64_t each : counts) all += each;
  CHECK(all == 3 * kTurns);
}

}  // namespace quern::cpu::test
