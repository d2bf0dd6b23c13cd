// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/block_shares.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "cpu/engine/scheduler.hpp"
#include "engine.hpp"
#include "launches.hpp"

using namespace quern::cpu::engine;
using namespace quern::cpu::test;

TEST_CASE("every block is in one chunk, however many shares and workers there are") {
  for (const std::uint64_t blocks : {0u, 1u, 2u, 3u, 7u, 64u, 1000u, 123457u})
    for (const std::uint32_t count : {1u, 2u, 3u, 8u, 64u}) {
      CAPTURE(blocks);
      CAPTURE(count);
      BlockShares shares(blocks, count);
      std::vector<std::atomic<int>> taken(blocks);
      std::vector<std::thread> threads;
      for (std::uint32_t thread = 0; thread < 3; ++thread)
        threads.emplace_back([&, thread] {
          std::uint32_t share = shares.join(thread);
          for (Chunk chunk = shares.take(share); chunk.count > 0; chunk = shares.take(share))
            for (std::uint64_t block = chunk.first; block < chunk.first + chunk.count; ++block)
              ++taken.at(block);
        });
      for (std::thread& thread : threads) thread.join();
      CHECK(shares.exhausted());
      CHECK(std::ranges::all_of(taken, [](const std::atomic<int>& times) { return times.load() == 1; }));
    }
}

TEST_CASE("a worker begins with the blocks of its processor's share, in order") {
  BlockShares shares(4000, 4);
  std::uint32_t share = shares.join(6);  // 6 modulo 4
  CHECK(share == 2);
  std::uint64_t next = 2000;
  while (next < 3000) {
    const Chunk chunk = shares.take(share);
    REQUIRE(chunk.count > 0);
    CHECK(chunk.first == next);
    CHECK(chunk.count <= 1000 / 16);
    next += chunk.count;
  }
  CHECK(next == 3000);
  CHECK(share == 2);
  CHECK_FALSE(shares.exhausted());
  CHECK(shares.take(share).first == 3000);  // the next share's
  CHECK(share == 3);
}

TEST_CASE("workers on one processor begin with different shares, and more workers with any") {
  BlockShares shares(100, 3);
  std::set<std::uint32_t> begun;
  for (int worker = 0; worker < 3; ++worker) begun.insert(shares.join(1));
  CHECK(begun == std::set<std::uint32_t>{0, 1, 2});
  CHECK(shares.join(1) == 1);
}

TEST_CASE("no share is without blocks") {
  BlockShares shares(2, 64);
  CHECK(shares.join(5) == 1);
  std::uint32_t share = 1;
  CHECK(shares.take(share).first == 1);
  CHECK(shares.take(share).first == 0);
  CHECK(shares.exhausted());
  CHECK(shares.take(share).count == 0);
}

TEST_CASE("a launch for several workers is divided, one for a single thread is not") {
  Engine& engine = Engine::get();
  struct Seen {
    std::atomic<bool> crossed{false};
  };
  const auto note = [](const LaunchState* launch, WorkerState*, std::uint64_t first, std::uint64_t count) {
    if (first < 500 && first + count > 500) parameter_of<Seen>(launch).crossed = true;
  };
  const auto stream = engine.scheduler->make_stream(*engine.domain, true);
  for (const bool alone : {false, true}) {
    Seen seen;
    auto launch = launch_of(note, 1000, &seen);
    launch->alone = alone;
    engine.scheduler->submit(stream, std::move(launch));
    engine.scheduler->synchronize(stream);
    CHECK(seen.crossed.load() == alone);  // the engine has two workers
  }
}
