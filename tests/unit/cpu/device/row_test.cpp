// SPDX-License-Identifier: Apache-2.0
// Launches that a thread runs one after another without the queues: those of a stream, and chains of grids.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "cpu/engine/scheduler.hpp"
#include "engine.hpp"
#include "launches.hpp"

using namespace quern::cpu::engine;
using namespace quern::cpu::test;

namespace {

using Clock = std::chrono::steady_clock;

/// A launch of one block that one thread runs.
std::unique_ptr<LaunchJob> alone(RunBlocks run, const void* parameter) {
  auto job = launch_of(run, 1, parameter);
  job->alone = true;
  return job;
}

/// Notes the order in which its entries ran.
struct Order {
  struct Entry {
    Order* order;
    int number;
    std::string name;
  };
  explicit Order(int count) {
    for (int i = 0; i < count; ++i) entries.push_back({this, i, "kernel " + std::to_string(i)});
  }
  std::vector<Entry> entries;
  std::vector<int> ran;
  std::vector<std::uint64_t> grid_ids;
  static void run(const LaunchState* launch, WorkerState*, std::uint64_t, std::uint64_t) {
    const auto& entry = parameter_of<Entry>(launch);
    entry.order->ran.push_back(entry.number);
    entry.order->grid_ids.push_back(launch->grid_id);
  }
  static void trap(const LaunchState*, WorkerState* worker, std::uint64_t, std::uint64_t) {
    quern_cpu_trap(worker, 0);
  }
  std::unique_ptr<LaunchJob> launch(std::size_t i, RunBlocks kernel = &Order::run) {
    auto job = alone(kernel, &entries[i]);
    job->own.kernel = &entries[i].name;
    return job;
  }
  /// The numbers before `end`, in their order.
  static std::vector<int> up_to(int end) {
    std::vector<int> numbers;
    for (int i = 0; i < end; ++i) numbers.push_back(i);
    return numbers;
  }
};

/// Grids that run as a chain.
struct Grids {
  std::vector<Grid> grids;
  void add(std::unique_ptr<LaunchJob> job) { grids.push_back(std::move(job->own)); }
  std::unique_ptr<LaunchJob> job(std::uint64_t first_id = 1) {
    auto made = std::make_unique<LaunchJob>();
    made->chain = grids;
    made->grid_id = first_id;
    made->alone = true;
    return made;
  }
};

/// Holds its launch until it is opened, for at most ten seconds.
struct Latch {
  std::atomic<int> reached{0};
  std::atomic<bool> open{false};
  std::atomic<bool> left{false};
  static void run(const LaunchState* launch, WorkerState*, std::uint64_t, std::uint64_t) {
    auto& latch = parameter_of<Latch>(launch);
    ++latch.reached;
    const auto end = Clock::now() + std::chrono::seconds(10);
    while (!latch.open && Clock::now() < end) std::this_thread::yield();
    latch.left = true;
  }
};

void submit_row(const std::shared_ptr<Stream>& stream, Order& order, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) Engine::get().scheduler->submit(stream, order.launch(i));
}

/// A stream of a domain of its own.
struct Own {
  std::shared_ptr<Domain> domain = Engine::get().scheduler->make_domain();
  std::shared_ptr<Stream> stream = Engine::get().scheduler->make_stream(*domain, false);
  Scheduler& scheduler = *Engine::get().scheduler;
  ~Own() { scheduler.synchronize(*domain); }
};

}  // namespace

TEST_CASE("launches in a row run once each, in their order, whoever runs them") {
  for (const bool caller_runs : {true, false}) {
    CAPTURE(caller_runs);
    Own own;
    Order order(2000);
    submit_row(own.stream, order, 0, 1500);
    Log before;
    own.scheduler.submit(own.stream, before.job(1));
    submit_row(own.stream, order, 1500, 2000);
    const auto point = own.scheduler.record(own.stream);
    if (!caller_runs)
      while (!point->done()) std::this_thread::yield();
    own.scheduler.synchronize(own.stream);
    CHECK(order.ran == Order::up_to(2000));
    CHECK(before.entries == std::vector<int>{1});
  }
}

TEST_CASE("a fault in a row is that of its launch: those before have run, those after do not") {
  for (const bool chained : {false, true}) {
    CAPTURE(chained);
    Own own;
    Order order(20);
    Grids grids;
    for (std::size_t i = 0; i < 20; ++i) {
      auto job = order.launch(i, i == 11 ? &Order::trap : &Order::run);
      if (chained)
        grids.add(std::move(job));
      else
        own.scheduler.submit(own.stream, std::move(job));
    }
    if (chained) own.scheduler.submit(own.stream, grids.job());
    own.scheduler.synchronize(own.stream);
    CHECK(order.ran == Order::up_to(11));
    CHECK(own.domain->fault() == FaultKind::trap);
    CHECK(own.domain->fault_report().kernel == "kernel 11");
  }
}

TEST_CASE("a fault of another stream of the context ends a row after the launch that runs") {
  for (const bool chained : {false, true}) {
    CAPTURE(chained);
    Own own;
    const auto other = own.scheduler.make_stream(*own.domain, false);
    Order order(20);
    Gate gate;
    Latch latch;
    Grids grids;
    own.scheduler.submit(own.stream, gate.job());  // until all are queued, so that they are taken together
    grids.add(alone(&Latch::run, &latch));
    for (std::size_t i = 0; i < 20; ++i) grids.add(order.launch(i));
    if (chained)
      own.scheduler.submit(own.stream, grids.job());
    else
      own.scheduler.submit(own.stream, alone(&Latch::run, &latch));
    if (!chained) submit_row(own.stream, order, 0, 20);
    gate.open = true;
    wait_for(latch.reached, 1);
    own.scheduler.submit(other, order.launch(0, &Order::trap));
    own.scheduler.synchronize(other);
    CHECK(own.domain->fault() == FaultKind::trap);
    latch.open = true;
    own.scheduler.synchronize(own.stream);
    CHECK(order.ran.empty());
  }
}

TEST_CASE("after a fault of another stream a row has run up to some launch, and none after it") {
  for (int round = 0; round < 1000; ++round) {
    Own own;
    const auto other = own.scheduler.make_stream(*own.domain, false);
    Order order(12);
    submit_row(own.stream, order, 0, 12);
    own.scheduler.submit(other, order.launch(0, &Order::trap));
    own.scheduler.synchronize(other);
    own.scheduler.synchronize(own.stream);
    REQUIRE(order.ran == Order::up_to(static_cast<int>(order.ran.size())));
  }
}

TEST_CASE("cancelling ends a row, also while a launch in its middle runs, and the stream goes on") {
  for (const bool chained : {false, true})
    for (const bool somebody_waits : {false, true}) {
      CAPTURE(chained);
      CAPTURE(somebody_waits);
      Own own;
      Order order(30);
      std::atomic<int> begun{0};
      Grids grids;
      for (std::size_t i = 0; i < 20; ++i) {
        auto job = i == 10 ? endless(begun, false) : order.launch(i);
        job->alone = true;
        if (chained)
          grids.add(std::move(job));
        else
          own.scheduler.submit(own.stream, std::move(job));
      }
      if (chained) own.scheduler.submit(own.stream, grids.job());
      std::thread waiting;
      if (somebody_waits) waiting = std::thread([&] { own.scheduler.synchronize(own.stream); });
      wait_for(begun, 1);
      own.scheduler.cancel(own.stream);
      CHECK(order.ran == Order::up_to(10));
      submit_row(own.stream, order, 20, 30);
      own.scheduler.synchronize(own.stream);
      if (somebody_waits) waiting.join();
      REQUIRE(order.ran.size() == 20);
      CHECK(order.ran[10] == 20);
      CHECK(own.domain->fault() == FaultKind::none);
    }
}

TEST_CASE("a row that is cancelled by another thread has run up to some launch, and none after it") {
  for (int round = 0; round < 300; ++round) {
    Own own;
    Order order(120);
    std::atomic<bool> submitted{false};
    std::thread cancelling([&] {
      while (!submitted) __builtin_ia32_pause();
      const auto end = Clock::now() + std::chrono::nanoseconds(200 * (round % 50));
      while (Clock::now() < end) __builtin_ia32_pause();
      own.scheduler.cancel(own.stream);
    });
    submit_row(own.stream, order, 0, 120);
    submitted = true;
    own.scheduler.synchronize(own.stream);
    cancelling.join();
    REQUIRE(order.ran == Order::up_to(static_cast<int>(order.ran.size())));
  }
}

TEST_CASE("a time limit holds for each launch of a row") {
  for (const bool chained : {false, true}) {
    CAPTURE(chained);
    static constexpr std::chrono::milliseconds kLimit{200};
    Own own;
    Order order(3);
    std::atomic<int> begun{0};
    const RunBlocks slow = [](const LaunchState*, WorkerState*, std::uint64_t, std::uint64_t) {
      std::this_thread::sleep_for(kLimit / 4);
    };
    Grids grids;
    const auto add = [&](std::unique_ptr<LaunchJob> job) {
      job->alone = true;
      job->limit = kLimit;
      if (chained)
        grids.add(std::move(job));
      else
        own.scheduler.submit(own.stream, std::move(job));
    };
    const auto end = [&] {
      if (!chained) return;
      auto job = grids.job();
      job->limit = kLimit;
      own.scheduler.submit(own.stream, std::move(job));
    };
    for (int i = 0; i < 8; ++i) add(alone(slow, nullptr));  // together they take twice the limit
    end();
    own.scheduler.synchronize(own.stream);
    CHECK(own.domain->fault() == FaultKind::none);
    grids.grids.clear();
    add(order.launch(0));
    add(endless(begun, false));
    add(order.launch(1));
    end();
    own.scheduler.synchronize(own.stream);
    CHECK(own.domain->fault() == FaultKind::launch_timeout);
    CHECK(order.ran == Order::up_to(1));
  }
}

TEST_CASE("a caller waits for the launches that were there when it came, not for those queued later") {
  for (int round = 0; round < 100; ++round) {  // either the caller or a thread of the pool takes the launches
    Own own;
    Gate gate;
    Order order(2);
    Latch latch;
    own.scheduler.submit(own.stream, gate.job());
    submit_row(own.stream, order, 0, 2);
    std::atomic<bool> waits{false};
    std::thread waiting([&] {
      waits = true;
      own.scheduler.synchronize(own.stream);
    });
    while (!waits) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // usually until it sleeps
    own.scheduler.submit(own.stream, alone(&Latch::run, &latch));
    gate.open = true;
    waiting.join();
    REQUIRE_FALSE(latch.left);
    CHECK(order.ran == Order::up_to(2));
    latch.open = true;
  }
}

TEST_CASE("a chain runs its grids once each in their order, as often as it is launched, under new ids") {
  Own own;
  Order order(500);
  Grids grids;
  for (std::size_t i = 0; i < 500; ++i) grids.add(order.launch(i));
  for (int round = 0; round < 3; ++round)
    own.scheduler.submit(own.stream, grids.job(static_cast<std::uint64_t>(1000 * (round + 1))));
  own.scheduler.synchronize(own.stream);
  REQUIRE(order.ran.size() == 1500);
  for (std::size_t i = 0; i < 1500; ++i) {
    CHECK(order.ran[i] == static_cast<int>(i % 500));
    CHECK(order.grid_ids[i] == 1000 * (i / 500 + 1) + i % 500);
  }
}

/// Takes 100 us, unless another launch has run.
struct Slow {
  std::atomic<bool> other_ran{false};
  std::atomic<int> ran{0}, ran_before_other{0};
  static void run(const LaunchState* launch, WorkerState*, std::uint64_t, std::uint64_t) {
    auto& slow = parameter_of<Slow>(launch);
    ++slow.ran;
    if (slow.other_ran) return;
    ++slow.ran_before_other;
    const auto end = Clock::now() + std::chrono::microseconds(100);
    while (Clock::now() < end) __builtin_ia32_pause();
  }
  static void other(const LaunchState* launch, WorkerState*, std::uint64_t, std::uint64_t) {
    parameter_of<Slow>(launch).other_ran = true;
  }
};

TEST_CASE("a row leaves its worker to other streams in between") {
  constexpr int kCount = 20'000;  // 2 s
  for (const bool chained : {false, true}) {
    CAPTURE(chained);
    Own own;
    const auto busy = own.scheduler.make_stream(*own.domain, false);
    const auto other = own.scheduler.make_stream(*own.domain, false);
    Latch latch;
    Slow slow;
    own.scheduler.submit(busy, alone(&Latch::run, &latch));  // one of the two workers
    wait_for(latch.reached, 1);
    Grids grids;
    for (int i = 0; i < kCount; ++i) {
      if (chained)
        grids.add(alone(&Slow::run, &slow));
      else
        own.scheduler.submit(own.stream, alone(&Slow::run, &slow));
    }
    if (chained) own.scheduler.submit(own.stream, grids.job());
    wait_for(slow.ran, 10);
    own.scheduler.submit(other, alone(&Slow::other, &slow));
    const int ran_then = slow.ran;
    while (!slow.other_ran) std::this_thread::yield();  // a caller that waits would go on with its own stream
    own.scheduler.synchronize(own.stream);
    CHECK(slow.ran == kCount);
    CHECK(slow.ran_before_other < ran_then + 20);
    latch.open = true;
  }
}

/// Blocks that take 2 ms.
struct Blocks {
  explicit Blocks(std::size_t count) : runs(count) {}
  std::vector<std::atomic<int>> runs;
  std::atomic<int> running{0}, most_running{0}, done{0};
  static void run(const LaunchState* launch, WorkerState*, std::uint64_t first, std::uint64_t count) {
    auto& blocks = parameter_of<Blocks>(launch);
    const int running = ++blocks.running;
    if (running > blocks.most_running) blocks.most_running = running;
    for (std::uint64_t block = first; block < first + count; ++block) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ++blocks.runs[block];
      ++blocks.done;
    }
    --blocks.running;
  }
};

TEST_CASE("a launch of several blocks that one thread begins is shared if it takes longer than a turn") {
  for (const bool waits : {false, true}) {
    CAPTURE(waits);
    Own own;
    Order order(4);
    Blocks blocks(40), more(40);
    Gate gate;
    own.scheduler.submit(own.stream, gate.job());
    submit_row(own.stream, order, 0, 2);
    for (Blocks* each : {&blocks, &more}) {
      auto job = launch_of(&Blocks::run, 40, each);
      job->alone = true;
      own.scheduler.submit(own.stream, std::move(job));
    }
    struct Check {
      Blocks* blocks;
      int done_before = 0;
      static void run(const LaunchState* launch, WorkerState*, std::uint64_t, std::uint64_t) {
        auto& check = parameter_of<Check>(launch);
        check.done_before = check.blocks->done;
      }
    } check{&more};
    own.scheduler.submit(own.stream, alone(&Check::run, &check));
    submit_row(own.stream, order, 2, 4);
    gate.open = true;
    if (!waits)
      while (!own.scheduler.idle(*own.stream)) std::this_thread::yield();
    own.scheduler.synchronize(own.stream);
    CHECK(order.ran == Order::up_to(4));
    CHECK(check.done_before == 40);
    for (Blocks* each : {&blocks, &more}) {
      CHECK(each->most_running == 2);
      CHECK(std::ranges::all_of(each->runs, [](const auto& runs) { return runs == 1; }));
    }
  }
}

TEST_CASE("a chain whose grids take longer than a turn is shared, and can be cancelled and limited") {
  enum class End { none, cancelled, late };
  for (const End end : {End::none, End::cancelled, End::late}) {
    CAPTURE(static_cast<int>(end));
    Own own;
    Order order(6);
    Blocks blocks(40), more(40);
    Grids grids;
    grids.add(order.launch(0));
    grids.add(launch_of(&Blocks::run, 40, &blocks));
    grids.add(order.launch(1));
    grids.add(order.launch(2));
    grids.add(launch_of(&Blocks::run, 40, &more));
    grids.add(order.launch(3));
    auto job = grids.job(70);
    if (end == End::late) job->limit = std::chrono::milliseconds(10);  // a grid takes 40
    own.scheduler.submit(own.stream, std::move(job));
    submit_row(own.stream, order, 4, 5);
    if (end == End::cancelled) {
      wait_for(blocks.done, 5);
      own.scheduler.cancel(own.stream);
      CHECK(order.ran == Order::up_to(1));
      submit_row(own.stream, order, 5, 6);
    }
    own.scheduler.synchronize(own.stream);
    if (end == End::none) {
      CHECK(order.ran == Order::up_to(5));
      CHECK(std::vector(order.grid_ids.begin(), order.grid_ids.begin() + 4) ==
            std::vector<std::uint64_t>{70, 72, 73, 75});
      for (Blocks* each : {&blocks, &more}) {
        CHECK(each->most_running == 2);
        CHECK(std::ranges::all_of(each->runs, [](const auto& runs) { return runs == 1; }));
      }
    } else {
      CHECK(order.ran == (end == End::late ? std::vector{0} : std::vector{0, 5}));
      CHECK(own.domain->fault() == (end == End::late ? FaultKind::launch_timeout : FaultKind::none));
      CHECK(blocks.done < 40);
      CHECK(more.done == 0);
    }
  }
}

TEST_CASE("threads that submit rows to their own streams and wait do not meet each other's launches") {
  std::vector<std::thread> threads;
  std::array<bool, 4> right{};
  for (std::size_t t = 0; t < right.size(); ++t)
    threads.emplace_back([&right, t] {
      Own own;
      Order order(3000);
      for (std::size_t i = 0; i < 3000; ++i) {
        submit_row(own.stream, order, i, i + 1);
        if (i % 97 == t) own.scheduler.synchronize(own.stream);
      }
      own.scheduler.synchronize(own.stream);
      right[t] = order.ran == Order::up_to(3000);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(std::ranges::all_of(right, [](bool each) { return each; }));
}
