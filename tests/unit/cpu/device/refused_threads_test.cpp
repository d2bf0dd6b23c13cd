// SPDX-License-Identifier: Apache-2.0
// Work whose thread cannot be started, as where RLIMIT_NPROC or the limit of a control group is reached.
#include <doctest/doctest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "../../../refused_threads.hpp"
#include "cpu/abi/warps.hpp"
#include "engine.hpp"

using namespace quern::cpu::engine;
using quern::cpu::test::Engine;

namespace {

/// Runs `body` on a thread that cannot start others.
void without_threads(const std::function<void()>& body) {
  std::thread([&] {
    const bool is_refused = quern::test::refuse_threads();
    CHECK(is_refused);
    if (is_refused) body();
  }).join();
}

/// An engine for callers that start no thread. One for all: an engine reserves many addresses, and under
/// ThreadSanitizer there are few.
Engine& bare_engine() {
  static Engine& engine = Engine::make();
  return engine;
}

bool within_ten_seconds(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Notes the thread that it runs on.
struct Note {
  std::atomic<bool> is_made{false};
  std::thread::id thread;
  HostJob job() {
    return {[](void* user) {
              auto* note = static_cast<Note*>(user);
              note->thread = std::this_thread::get_id();
              note->is_made = true;
            },
            this};
  }
};

ValueJob wait_for(const std::uint32_t& word, std::uint32_t value) {
  ValueJob job;
  job.address = reinterpret_cast<const std::byte*>(&word);
  job.value = value;
  job.relation = ValueJob::Relation::equal;
  return job;
}

TransferJob set(std::uint32_t& word, std::uint32_t value) {
  TransferJob fill;
  fill.destination = reinterpret_cast<std::byte*>(&word);
  fill.bytes = fill.pattern_bytes = 4;
  fill.pattern = value;
  return fill;
}

std::unique_ptr<LaunchJob> count_blocks(std::atomic<std::uint64_t>& count, std::uint64_t blocks) {
  auto job = std::make_unique<LaunchJob>();
  job->own.run = [](const LaunchState* launch, WorkerState*, std::uint64_t, std::uint64_t number) {
    const_cast<std::atomic<std::uint64_t>*>(
        reinterpret_cast<const std::atomic<std::uint64_t>*>(launch->params))
        ->fetch_add(number);
  };
  job->own.block_count = blocks;
  job->own.state.params = reinterpret_cast<const std::byte*>(&count);
  job->own.state.grid[0] = static_cast<std::uint32_t>(blocks);
  return job;
}

/// Work of every group.
struct Work {
  std::uint32_t word = 0;
  std::atomic<std::uint64_t> blocks{0};
  Note first, last;

  std::shared_ptr<EventPoint> submit(Scheduler& scheduler, const std::shared_ptr<Stream>& stream) {
    scheduler.submit(stream, first.job());
    scheduler.submit(stream, set(word, 7));
    scheduler.submit(stream, wait_for(word, 7));
    scheduler.submit(stream, count_blocks(blocks, 5000));
    scheduler.submit(stream, last.job());
    return scheduler.record(stream);
  }
  void check_done() const {
    CHECK(first.is_made);
    CHECK(word == 7);
    CHECK(blocks == 5000);
    CHECK(last.is_made);
  }
};

}  // namespace

TEST_CASE("without threads, a caller that waits does all kinds of work itself") {
  Engine& engine = bare_engine();
  const auto stream = engine.scheduler->make_stream(*engine.domain, true);
  Work work;
  without_threads([&] {
    work.submit(*engine.scheduler, stream);
    engine.scheduler->synchronize(stream);
    CHECK(work.first.thread == std::this_thread::get_id());
    CHECK(work.last.thread == std::this_thread::get_id());
  });
  work.check_done();
}

TEST_CASE("without threads, work of a stream waits for another stream's, which the caller does first") {
  Engine& engine = bare_engine();
  const auto first = engine.scheduler->make_stream(*engine.domain, false);
  const auto second = engine.scheduler->make_stream(*engine.domain, false);
  Work before, after;
  without_threads([&] {
    engine.scheduler->wait_event(second, *before.submit(*engine.scheduler, first));
    after.submit(*engine.scheduler, second);
    engine.scheduler->synchronize(second);
  });
  before.check_done();
  after.check_done();
}

TEST_CASE("without threads, work gets done for a caller that asks again and again") {
  Engine& engine = bare_engine();
  const auto stream = engine.scheduler->make_stream(*engine.domain, true);
  for (const bool asks_for_point : {false, true}) {
    Work work;
    without_threads([&] {
      const auto point = work.submit(*engine.scheduler, stream);
      CHECK(within_ten_seconds([&] {
        return asks_for_point ? engine.scheduler->is_passed(*point) : engine.scheduler->idle(*stream);
      }));
    });
    work.check_done();
  }
}

TEST_CASE("threads of one kind do the work of another whose thread is refused, for nobody who waits") {
  for (const int sleep_ms : {0, 20}) {  // the thread polls; it is parked
    Engine& engine = Engine::make();
    const auto stream = engine.scheduler->make_stream(*engine.domain, true);
    std::atomic<std::uint64_t> blocks{0};
    engine.scheduler->submit(stream, count_blocks(blocks, 5000));  // starts a thread
    CHECK(within_ten_seconds([&] { return blocks == 5000; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(sleep_ms));
    Work work;
    without_threads([&] {
      work.submit(*engine.scheduler, stream);
      CHECK(within_ten_seconds([&] { return work.last.is_made.load(); }));
      CHECK(work.last.thread != std::this_thread::get_id());
    });
    engine.scheduler->synchronize(stream);
    work.check_done();
  }
}

TEST_CASE("a refused thread is started as soon as a caller asks that may start one") {
  Engine& engine = Engine::make();
  const auto stream = engine.scheduler->make_stream(*engine.domain, true);
  Work work;
  without_threads([&] { work.submit(*engine.scheduler, stream); });
  CHECK_FALSE(work.first.is_made);
  static_cast<void>(engine.scheduler->idle(*stream));  // the work may be done already when it returns
  CHECK(within_ten_seconds([&] { return work.last.is_made.load(); }));
  CHECK(work.last.thread != std::this_thread::get_id());
  engine.scheduler->synchronize(stream);
  work.check_done();
}

namespace {

/// A stream that waits until `word` is 1, with work after that.
struct Waiting {
  explicit Waiting(Engine& on) : engine(on), stream(on.scheduler->make_stream(*on.domain, false)) {
    engine.scheduler->submit(stream, wait_for(word, 1));
    engine.scheduler->submit(stream, set(after, 1));
    point = engine.scheduler->record(stream);
  }
  Engine& engine;
  std::uint32_t word = 0, after = 0;
  const std::shared_ptr<Stream> stream;
  std::shared_ptr<EventPoint> point;
};

/// The ways in which a caller waits for the stream.
using Way = std::function<void(const Waiting&)>;
const std::vector<Way>& ways() {
  static const std::vector<Way> all{
      [](const Waiting& at) { at.engine.scheduler->synchronize(at.stream); },
      [](const Waiting& at) { at.engine.scheduler->synchronize(*at.point); },
      [](const Waiting& at) { at.engine.scheduler->synchronize(*at.engine.domain); },
      [](const Waiting& at) {
        CHECK(within_ten_seconds([&] { return at.engine.scheduler->idle(*at.stream); }));
      },
      [](const Waiting& at) {
        CHECK(within_ten_seconds([&] { return at.engine.scheduler->is_passed(*at.point); }));
      },
  };
  return all;
}

/// A launch of one block that runs `run` with the address as its parameters.
std::unique_ptr<LaunchJob> launch_on(std::uint32_t& word, RunBlocks run) {
  auto job = std::make_unique<LaunchJob>();
  job->own.run = run;
  job->own.block_count = job->own.state.grid[0] = 1;
  job->own.state.params = reinterpret_cast<const std::byte*>(&word);
  return job;
}
std::atomic_ref<std::uint32_t> word_of(const LaunchState* launch) {
  return std::atomic_ref(*const_cast<std::uint32_t*>(reinterpret_cast<const std::uint32_t*>(launch->params)));
}
void write_word(const LaunchState* launch, WorkerState*, std::uint64_t, std::uint64_t) {
  word_of(launch).store(1);
}
void wait_for_word(const LaunchState* launch, WorkerState* worker, std::uint64_t, std::uint64_t) {
  while (word_of(launch).load() != 1) quern_cpu_yield(worker);
}

/// Jobs that write 1 to the word.
using Write = std::function<Job(std::uint32_t& word)>;
const std::vector<Write>& writes() {
  static std::uint32_t one = 1;
  static const std::vector<Write> all{
      [](std::uint32_t& word) { return set(word, 1); },
      [](std::uint32_t& word) {
        TransferJob copy = set(word, 0);
        copy.source = reinterpret_cast<const std::byte*>(&one);
        return copy;
      },
      [](std::uint32_t& word) { return launch_on(word, write_word); },
      [](std::uint32_t& word) {
        return HostJob{[](void* user) { std::atomic_ref(*static_cast<std::uint32_t*>(user)).store(1); },
                       &word};
      },
  };
  return all;
}

}  // namespace

TEST_CASE("without threads, a caller whose stream waits for a value does the work that writes it") {
  Engine& engine = bare_engine();
  const auto writer = engine.scheduler->make_stream(*engine.domain, false);
  for (const Way& wait : ways())
    for (const Write& write : writes())
      without_threads([&] {
        Waiting waiting(engine);
        engine.scheduler->submit(writer, write(waiting.word));
        wait(waiting);
        CHECK(waiting.after == 1);
      });
}

TEST_CASE("without threads, a caller looks at the values of all streams in turn") {
  Engine& engine = bare_engine();
  without_threads([&] {
    Waiting last(engine), between(engine), first(engine), other(engine);
    engine.scheduler->submit(between.stream, set(last.word, 1));
    engine.scheduler->submit(first.stream, set(between.word, 1));
    const auto writer = engine.scheduler->make_stream(*engine.domain, false);
    std::atomic<std::uint64_t> blocks{0};
    engine.scheduler->submit(writer, count_blocks(blocks, 1));
    engine.scheduler->submit(writer, set(first.word, 1));
    engine.scheduler->synchronize(last.stream);
    CHECK(last.after == 1);
    CHECK(other.after == 0);
    engine.scheduler->submit(writer, set(other.word, 1));
    engine.scheduler->synchronize(other.stream);
  });
}

TEST_CASE("without threads, a caller sleeps until the program itself writes the value") {
  Engine& engine = bare_engine();
  std::atomic<Waiting*> waiting{};
  std::jthread program([&] {
    while (waiting == nullptr) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::atomic_ref(waiting.load()->word).store(1);
  });
  without_threads([&] {
    Waiting here(engine);
    waiting = &here;
    engine.scheduler->synchronize(here.stream);
    CHECK(here.after == 1);
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    CHECK(used.tv_sec * 1000 + used.tv_nsec / 1'000'000 < 100);
  });
}

TEST_CASE("without threads, a caller goes on looking at its value when another caller leaves") {
  Engine& engine = bare_engine();
  std::atomic<Waiting*> first{}, second{};
  const auto wait_as = [&](std::atomic<Waiting*>& me) {
    without_threads([&] {
      Waiting here(engine);
      me = &here;
      engine.scheduler->synchronize(here.stream);
      me = nullptr;
    });
  };
  std::jthread one([&] { wait_as(first); }), two([&] { wait_as(second); });
  const auto release = [](std::atomic<Waiting*>& caller) {
    CHECK(within_ten_seconds([&] { return caller != nullptr; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic_ref(caller.load()->word).store(1);
    CHECK(within_ten_seconds([&] { return caller == nullptr; }));
  };
  release(first);
  release(second);
}

TEST_CASE("without threads, a kernel that waits for a value does not keep others from writing it") {
  Engine& engine = bare_engine();
  for (const Write& write : writes()) {
    const auto waits = engine.scheduler->make_stream(*engine.domain, false);
    const auto writer = engine.scheduler->make_stream(*engine.domain, false);
    std::uint32_t word = 0;
    without_threads([&] {
      auto kernel = launch_on(word, wait_for_word);
      kernel->own.waits = true;
      engine.scheduler->submit(waits, std::move(kernel));
      engine.scheduler->submit(writer, write(word));
      engine.scheduler->synchronize(waits);
    });
    CHECK(word == 1);
  }
}

TEST_CASE("a thread that does another group's work does not keep its own from being done") {
  Engine& engine = Engine::make();
  {
    Waiting begun(engine);  // starts the thread that looks at values
    std::atomic_ref(begun.word).store(1);
    CHECK(within_ten_seconds([&] { return begun.point->done(); }));
  }
  struct Gate {
    std::atomic<bool> reached{false}, open{false};
  } gate;
  const auto host = engine.scheduler->make_stream(*engine.domain, false);
  const auto writer = engine.scheduler->make_stream(*engine.domain, false);
  without_threads([&] {
    engine.scheduler->submit(host, HostJob{[](void* user) {
                                             auto& at = *static_cast<Gate*>(user);
                                             at.reached = true;
                                             while (!at.open) std::this_thread::yield();
                                           },
                                           &gate});
    CHECK(within_ten_seconds([&] { return gate.reached.load(); }));
    Waiting waiting(engine);
    engine.scheduler->submit(writer, set(waiting.word, 1));
    engine.scheduler->synchronize(waiting.stream);
    CHECK(waiting.after == 1);
    gate.open = true;
    engine.scheduler->synchronize(host);
  });
}

TEST_CASE("a thread that looks at values does the work that writes them, for nobody who waits") {
  Engine& engine = Engine::make();
  const auto writer = engine.scheduler->make_stream(*engine.domain, false);
  Waiting waiting(engine);  // starts the thread that looks at values
  without_threads([&] {
    engine.scheduler->submit(writer, set(waiting.word, 1));
    CHECK(within_ten_seconds([&] { return waiting.point->done(); }));
  });
  engine.scheduler->synchronize(waiting.stream);
}
