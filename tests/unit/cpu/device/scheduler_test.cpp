// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/scheduler.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "cpu/abi/warps.hpp"
#include "engine.hpp"
#include "launches.hpp"

using namespace quern::cpu::engine;
using namespace quern::cpu::test;

TEST_CASE("jobs of one stream run in order") {
  Engine& engine = Engine::get();
  const auto stream = engine.scheduler->make_stream(*engine.domain, true);
  Log log;
  for (int i = 0; i < 100; ++i) engine.scheduler->submit(stream, log.job(i));
  engine.scheduler->synchronize(stream);
  REQUIRE(log.entries.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(log.entries[static_cast<std::size_t>(i)] == i);
  CHECK(engine.scheduler->idle(*stream));
}

TEST_CASE("what commands own is released when wait_for_disposal() returns") {
  Engine& engine = Engine::get();
  const auto stream = engine.scheduler->make_stream(*engine.domain, true);
  std::atomic<int> released{0};
  for (int i = 1; i <= 5; ++i) {
    HostJob job{.function = [](void*) {}};
    job.keep = std::shared_ptr<const int>(new int(i), [&released](const int* value) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      delete value;
      ++released;
    });
    engine.scheduler->submit(stream, std::move(job));
    engine.scheduler->synchronize(stream);
    engine.scheduler->wait_for_disposal();
    CHECK(released.load() == i);
  }
}

TEST_CASE("of the work that is ready that of a higher priority goes first, that of one by its age") {
  Engine& engine = Engine::get();
  const auto make = [&](int priority) {
    return engine.scheduler->make_stream(*engine.domain, true, priority);
  };
  const auto busy = make(0), low = make(0), middle = make(-2), high = make(-5), also_low = make(0);
  Gate gate;
  Log log;
  engine.scheduler->submit(busy, gate.job());  // occupies the only thread for host functions
  gate.wait_until_reached();
  const std::shared_ptr<Stream> streams[] = {low, middle, also_low, high, middle};
  for (int i = 0; i < 5; ++i) engine.scheduler->submit(streams[i], log.job(i));
  gate.open = true;
  engine.scheduler->synchronize(*engine.domain);
  CHECK(log.entries == std::vector<int>{3, 1, 4, 0, 2});
  CHECK(high->priority() == -5);
}

TEST_CASE("every block of a grid runs exactly once, whatever its size") {
  Engine& engine = Engine::get();
  const auto stream = engine.scheduler->make_stream(*engine.domain, true);
  for (const std::size_t blocks : {1u, 2u, 3u, 31u, 1000u, 100000u}) {
    Counts counts(blocks);
    engine.scheduler->submit(stream, launch_of(&Counts::run, blocks, &counts));
    engine.scheduler->synchronize(stream);
    std::size_t wrong = 0;
    for (const auto& runs : counts.runs) wrong += runs.load() != 1;
    CHECK(wrong == 0);
  }
}

TEST_CASE("a launch starts without anyone waiting for it") {
  Engine& engine = Engine::get();
  const auto stream = engine.scheduler->make_stream(*engine.domain, true);
  for (int round = 0; round < 3; ++round) {
    Counts counts(1);
    engine.scheduler->submit(stream, launch_of(&Counts::run, 1, &counts));
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (counts.runs[0].load() == 0 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    CHECK(counts.runs[0].load() == 1);
    engine.scheduler->synchronize(stream);
    if (round == 1) std::this_thread::sleep_for(std::chrono::milliseconds(10));  // until the pool sleeps
  }
}

TEST_CASE("an event orders another stream after it") {
  Engine& engine = Engine::get();
  const auto first = engine.scheduler->make_stream(*engine.domain, false);
  const auto second = engine.scheduler->make_stream(*engine.domain, false);
  Gate gate;
  std::uint32_t value = 0;
  // The fill on `second` waits for the host function on `first`, though it could run at once.
  engine.scheduler->submit(first, gate.job());
  const auto point = engine.scheduler->record(first);
  engine.scheduler->wait_event(second, *point);
  TransferJob fill;
  fill.destination = reinterpret_cast<std::byte*>(&value);
  fill.bytes = 4;
  fill.pattern = 7;
  fill.pattern_bytes = 4;
  engine.scheduler->submit(second, std::move(fill));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK_FALSE(point->done());
  CHECK_FALSE(engine.scheduler->idle(*second));
  gate.open = true;
  engine.scheduler->synchronize(second);
  CHECK(point->done());
  CHECK(value == 7);
}

TEST_CASE("a fill on one stream is not held up by a host function or a launch on another") {
  Engine& engine = Engine::get();
  const auto slow = engine.scheduler->make_stream(*engine.domain, false);
  const auto busy = engine.scheduler->make_stream(*engine.domain, false);
  const auto fast = engine.scheduler->make_stream(*engine.domain, false);
  Gate gate;
  engine.scheduler->submit(slow, gate.job());
  engine.scheduler->submit(busy,
                           launch_of(
                               [](const LaunchState* launch, WorkerState*, std::uint64_t, std::uint64_t) {
                                 const auto* go = reinterpret_cast<const std::atomic<bool>*>(launch->params);
                                 while (!go->load()) std::this_thread::yield();
                               },
                               2, &gate.open));
  std::uint32_t value = 0;
  TransferJob fill;
  fill.destination = reinterpret_cast<std::byte*>(&value);
  fill.bytes = 4;
  fill.pattern = 9;
  fill.pattern_bytes = 4;
  engine.scheduler->submit(fast, std::move(fill));
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!engine.scheduler->idle(*fast) && std::chrono::steady_clock::now() < limit)
    std::this_thread::yield();
  CHECK(engine.scheduler->idle(*fast));
  CHECK(value == 9);
  gate.open = true;
  engine.scheduler->synchronize(*engine.domain);
}

TEST_CASE("the legacy stream waits for blocking streams and they for it, others do not") {
  Engine& engine = Engine::get();
  const auto domain = engine.scheduler->make_domain();
  const auto blocking = engine.scheduler->make_stream(*domain, true);
  const auto free_stream = engine.scheduler->make_stream(*domain, false);
  Gate gate;
  Counts legacy_runs(1);
  Counts blocking_runs(1);
  Counts free_runs(1);
  engine.scheduler->submit(blocking, gate.job());
  engine.scheduler->submit(domain->legacy_stream(), launch_of(&Counts::run, 1, &legacy_runs));
  engine.scheduler->submit(blocking, launch_of(&Counts::run, 1, &blocking_runs));
  engine.scheduler->submit(free_stream, launch_of(&Counts::run, 1, &free_runs));
  engine.scheduler->synchronize(free_stream);
  CHECK(free_runs.runs[0].load() == 1);
  CHECK(legacy_runs.runs[0].load() == 0);
  CHECK(blocking_runs.runs[0].load() == 0);
  CHECK_FALSE(engine.scheduler->runs_at_once(*domain->legacy_stream()));
  gate.open = true;
  engine.scheduler->synchronize(*domain);
  CHECK(legacy_runs.runs[0].load() == 1);
  CHECK(blocking_runs.runs[0].load() == 1);
  CHECK(engine.scheduler->runs_at_once(*domain->legacy_stream()));
}

TEST_CASE("after a fault the rest of the domain is dropped, events still complete, other domains go on") {
  Engine& engine = Engine::get();
  const auto domain = engine.scheduler->make_domain();
  const auto stream = engine.scheduler->make_stream(*domain, true);
  Counts counts(1);
  engine.scheduler->submit(stream, launch_of([](const LaunchState*, WorkerState* worker, std::uint64_t,
                                                std::uint64_t) { quern_cpu_trap(worker, 0); },
                                             10, nullptr));
  engine.scheduler->submit(stream, launch_of(&Counts::run, 1, &counts));
  const auto point = engine.scheduler->record(stream);
  engine.scheduler->synchronize(*point);
  CHECK(domain->fault() == FaultKind::trap);
  CHECK(counts.runs[0].load() == 0);
  CHECK(engine.domain->fault() == FaultKind::none);
  engine.scheduler->synchronize(*domain);
}

/// Each block writes its number to shared and local memory, waits until all have arrived, and checks the
/// memory.
struct WaitForAll {
  std::uint64_t blocks = 0;
  std::atomic<std::uint64_t> come{0};
  std::atomic<std::uint64_t> kept{0};
  static void run(const LaunchState* launch, WorkerState* worker, std::uint64_t block, std::uint64_t) {
    auto& all = *const_cast<WaitForAll*>(reinterpret_cast<const WaitForAll*>(launch->params));
    volatile std::uint64_t* shared = reinterpret_cast<volatile std::uint64_t*>(worker->shared_base);
    volatile std::uint64_t* local = reinterpret_cast<volatile std::uint64_t*>(worker->local_base);
    shared[0] = block;
    local[1] = block;
    all.come.fetch_add(1);
    while (all.come.load() < all.blocks) quern_cpu_yield(worker);
    if (shared[0] == block && local[1] == block) all.kept.fetch_add(1);
  }
};

TEST_CASE(
    "blocks that wait for each other take turns on a thread, and each keeps its shared and local memory") {
  Engine& engine = Engine::get();
  const auto stream = engine.scheduler->make_stream(*engine.domain, true);
  for (const bool cooperative : {true, false})
    for (const std::uint64_t blocks : {1u, 2u, 5u, 24u}) {
      WaitForAll all;
      all.blocks = blocks;
      auto job = launch_of(&WaitForAll::run, blocks, &all);
      job->own.waits = true;
      job->cooperative = cooperative;
      job->own.state.total_shared_bytes = 4096;
      job->own.needs = {1, 16, 64};
      engine.scheduler->submit(stream, std::move(job));
      engine.scheduler->synchronize(stream);
      CHECK(all.kept.load() == blocks);
    }
}

TEST_CASE("a fault ends a launch of which other blocks wait for ever") {
  Engine& engine = Engine::get();
  const auto domain = engine.scheduler->make_domain();
  const auto stream = engine.scheduler->make_stream(*domain, true);
  auto job = launch_of(
      [](const LaunchState*, WorkerState* worker, std::uint64_t block, std::uint64_t) {
        if (block == 7) quern_cpu_trap(worker, 0);
        for (;;) quern_cpu_yield(worker);
      },
      10, nullptr);
  job->own.waits = true;
  engine.scheduler->submit(stream, std::move(job));
  engine.scheduler->synchronize(*domain);
  CHECK(domain->fault() == FaultKind::trap);
}

TEST_CASE("a cancelled stream ends its launches, running and queued, and runs all else that it has") {
  Engine& engine = Engine::get();
  for (const bool waits : {false, true})
    for (const bool somebody_waits : {false, true}) {
      CAPTURE(waits);
      CAPTURE(somebody_waits);
      const auto domain = engine.scheduler->make_domain();
      const auto stream = engine.scheduler->make_stream(*domain, true);
      std::atomic<int> begun{0};
      Counts queued(1), after(1);
      Log log;
      engine.scheduler->submit(stream, endless(begun, waits));
      engine.scheduler->submit(stream, log.job(1));
      engine.scheduler->submit(stream, launch_of(&Counts::run, 1, &queued));
      engine.scheduler->submit(stream, log.job(2));
      const auto point = engine.scheduler->record(stream);
      std::thread waiting;
      if (somebody_waits) waiting = std::thread([&] { engine.scheduler->synchronize(stream); });
      wait_for(begun, 1);
      engine.scheduler->cancel(stream);
      engine.scheduler->submit(stream, launch_of(&Counts::run, 1, &after));
      engine.scheduler->synchronize(stream);
      if (somebody_waits) waiting.join();
      CHECK(log.entries == std::vector<int>{1, 2});
      CHECK(point->done());
      CHECK(queued.runs[0].load() == 0);
      CHECK(after.runs[0].load() == 1);
      CHECK(domain->fault() == FaultKind::none);
      engine.scheduler->synchronize(*domain);
    }
}

TEST_CASE("several launches that no thread has taken yet are cancelled at once") {
  Engine& engine = Engine::get();
  const auto domain = engine.scheduler->make_domain();
  const auto busy = engine.scheduler->make_stream(*domain, false);
  const auto stream = engine.scheduler->make_stream(*domain, false);
  std::atomic<int> begun{0};
  Counts counts(1);
  engine.scheduler->submit(busy, endless(begun, false));
  wait_for(begun, 2);  // no worker is free
  for (int i = 0; i < 3; ++i) engine.scheduler->submit(stream, launch_of(&Counts::run, 1, &counts));
  engine.scheduler->cancel(stream);
  engine.scheduler->synchronize(stream);
  engine.scheduler->cancel(busy);
  engine.scheduler->synchronize(*domain);
  CHECK(counts.runs[0].load() == 0);
}

TEST_CASE("a launch that waits for another stream is cancelled before it begins, and holds nobody up") {
  Engine& engine = Engine::get();
  const auto domain = engine.scheduler->make_domain();
  const auto first = engine.scheduler->make_stream(*domain, false);
  const auto second = engine.scheduler->make_stream(*domain, false);
  Gate gate;
  Counts counts(1);
  engine.scheduler->submit(first, gate.job());
  engine.scheduler->wait_event(second, *engine.scheduler->record(first));
  engine.scheduler->submit(second, launch_of(&Counts::run, 1, &counts));
  engine.scheduler->cancel(second);  // returns although `first` continues
  CHECK_FALSE(engine.scheduler->idle(*second));
  gate.open = true;
  engine.scheduler->synchronize(*domain);
  CHECK(counts.runs[0].load() == 0);
}

TEST_CASE("cancelling a domain ends the launches of all its streams and of no other domain") {
  Engine& engine = Engine::get();
  const auto domain = engine.scheduler->make_domain();
  const auto other = engine.scheduler->make_domain();
  const auto stream = engine.scheduler->make_stream(*domain, false);
  std::atomic<int> begun{0};
  Gate gate;
  Counts counts(1), others(1);
  engine.scheduler->submit(stream, endless(begun, true));
  engine.scheduler->submit(domain->legacy_stream(), gate.job());
  engine.scheduler->submit(domain->legacy_stream(), launch_of(&Counts::run, 1, &counts));
  wait_for(begun, 1);
  engine.scheduler->submit(other->legacy_stream(), launch_of(&Counts::run, 1, &others));
  engine.scheduler->cancel(*domain);
  gate.open = true;
  engine.scheduler->synchronize(*domain);
  engine.scheduler->synchronize(*other);
  CHECK(counts.runs[0].load() == 0);
  CHECK(others.runs[0].load() == 1);
}

TEST_CASE("a launch that runs for longer than its own limit ends its domain, whatever the others' limits") {
  Engine& engine = Engine::get();
  for (const bool waits : {false, true}) {
    CAPTURE(waits);
    const auto domain = engine.scheduler->make_domain();
    const auto other = engine.scheduler->make_domain();
    std::atomic<int> begun{0};
    std::atomic<bool> go{false};
    // Watched since before the call, for a long time.
    auto patient = launch_of(
        [](const LaunchState* launch, WorkerState*, std::uint64_t, std::uint64_t) {
          while (!reinterpret_cast<const std::atomic<bool>*>(launch->params)->load())
            std::this_thread::yield();
        },
        1, &go);
    patient->limit = std::chrono::hours(24 * 365 * 200);
    engine.scheduler->submit(other->legacy_stream(), std::move(patient));
    auto job = endless(begun, waits);
    job->limit = std::chrono::milliseconds(20);
    engine.scheduler->submit(domain->legacy_stream(), std::move(job));
    engine.scheduler->synchronize(*domain);
    CHECK(domain->fault() == FaultKind::launch_timeout);
    CHECK(domain->fault_report().text.find("it ran for longer than 0.02 s") != std::string::npos);
    go = true;
    engine.scheduler->synchronize(*other);
    CHECK(other->fault() == FaultKind::none);
  }
}

TEST_CASE("a retired stream finishes what it has") {
  Engine& engine = Engine::get();
  Counts counts(1000);
  std::shared_ptr<EventPoint> point;
  {
    const auto stream = engine.scheduler->make_stream(*engine.domain, true);
    engine.scheduler->submit(stream, launch_of(&Counts::run, 1000, &counts));
    point = engine.scheduler->record(stream);
    engine.scheduler->retire(*stream);
  }
  engine.scheduler->synchronize(*point);
  CHECK(counts.runs[999].load() == 1);
}

TEST_CASE("work that comes to a stream after its end keeps the stream until it is done") {
  Engine& engine = Engine::get();
  Counts counts(1000);
  std::weak_ptr<Stream> stream;
  for (int round = 0; round < 3; ++round) {
    Gate gate;
    {
      const auto retired = engine.scheduler->make_stream(*engine.domain, round == 1);
      engine.scheduler->retire(*retired);
      if (round == 2) engine.scheduler->retire(*retired);
      engine.scheduler->submit(retired, gate.job());
      engine.scheduler->submit(retired, launch_of(&Counts::run, 1000, &counts));
      engine.scheduler->submit(retired, launch_of(&Counts::run, 1000, &counts));
      stream = retired;
    }
    CHECK(!stream.expired());
    gate.open = true;
    engine.scheduler->synchronize(*engine.domain);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!stream.expired() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    CHECK(stream.expired());  // the thread that ran the last one has released it
    CHECK(counts.runs[999].load() == 2 * (round + 1));
  }
}

TEST_CASE("many threads with their own streams launch and wait at once") {
  Engine& engine = Engine::get();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&engine, &wrong, t] {
      const auto stream = engine.scheduler->make_stream(*engine.domain, t % 2 == 0);
      for (int i = 0; i < 200; ++i) {
        Counts counts(static_cast<std::size_t>(1 + i % 50));
        engine.scheduler->submit(stream, launch_of(&Counts::run, counts.runs.size(), &counts));
        if (i % 3 == 0) engine.scheduler->synchronize(*engine.scheduler->record(stream));
        engine.scheduler->synchronize(stream);
        for (const auto& runs : counts.runs) wrong += runs.load() != 1;
      }
      engine.scheduler->retire(*stream);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong.load() == 0);
}
