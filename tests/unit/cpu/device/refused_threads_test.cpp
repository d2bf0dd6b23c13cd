// SPDX-License-Identifier: Apache-2.0
// Work whose thread cannot be started, as where RLIMIT_NPROC or the limit of a control group is reached.
#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <iterator>
#include <thread>

#include "engine.hpp"

using namespace quern::cpu::engine;
using quern::cpu::test::Engine;

namespace {

/// From now on this thread cannot start threads: the system calls for it fail as at a limit.
bool refuse_threads() {
  constexpr unsigned kRefuse = SECCOMP_RET_ERRNO | EAGAIN;
  sock_filter filter[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_clone},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_clone3},
      {BPF_RET | BPF_K, 0, 0, kRefuse},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Runs `body` on a thread that cannot start others.
void without_threads(const std::function<void()>& body) {
  std::thread([&] {
    const bool is_refused = refuse_threads();
    CHECK(is_refused);
    if (is_refused) body();
  }).join();
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
  job->run = [](const LaunchState* launch, WorkerState*, std::uint64_t, std::uint64_t number) {
    const_cast<std::atomic<std::uint64_t>*>(
        reinterpret_cast<const std::atomic<std::uint64_t>*>(launch->params))
        ->fetch_add(number);
  };
  job->block_count = blocks;
  job->state.params = reinterpret_cast<const std::byte*>(&count);
  job->state.grid[0] = static_cast<std::uint32_t>(blocks);
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
  Engine& engine = Engine::make();
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
  Engine& engine = Engine::make();
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
  Engine& engine = Engine::make();
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
