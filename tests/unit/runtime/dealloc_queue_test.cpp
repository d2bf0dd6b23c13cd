// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/dealloc_queue.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <thread>
#include <vector>

using quern::ResourceKind;
using quern::runtime::DeallocQueue;
using quern::runtime::Release;

namespace {

struct Log {
  std::vector<std::uint64_t> released;
  std::vector<std::string> reports;
  std::uint64_t failing = 0;  // the handle whose release fails

  DeallocQueue queue(DeallocQueue::Limits limits) {
    return {limits,
            [this](const Release& item) {
              if (item.handle == failing) return std::string("it failed");
              released.push_back(item.handle);
              return std::string();
            },
            [this](const std::string& text) { reports.push_back(text); }};
  }
};

Release item(std::uint64_t handle, std::size_t bytes = 1) { return {ResourceKind::device, handle, bytes}; }

}  // namespace

TEST_CASE("nothing is released at once") {
  Log log;
  DeallocQueue queue = log.queue({10, 1000});
  for (std::uint64_t i = 1; i <= 10; ++i) queue.schedule(item(i));
  CHECK(log.released.empty());
  CHECK(queue.pending_count() == 10);
}

TEST_CASE("one release beyond the count limit releases everything, in order") {
  Log log;
  DeallocQueue queue = log.queue({3, 1000});
  for (std::uint64_t i = 1; i <= 4; ++i) queue.schedule(item(i));
  CHECK(log.released == std::vector<std::uint64_t>{1, 2, 3, 4});
  CHECK(queue.pending_count() == 0);
}

TEST_CASE("a count limit of 0 releases at once") {
  Log log;
  DeallocQueue queue = log.queue({0, 1000});
  queue.schedule(item(7));
  CHECK(log.released == std::vector<std::uint64_t>{7});
}

TEST_CASE("more bytes than the limit release everything") {
  Log log;
  DeallocQueue queue = log.queue({10, 100});
  queue.schedule(item(1, 100));
  CHECK(log.released.empty());
  queue.schedule(item(2, 1));
  CHECK(log.released.size() == 2);
  CHECK(queue.pending_bytes() == 0);
}

TEST_CASE("a release that fails ends the flush, is dropped and reported, and the rest is released later") {
  Log log;
  log.failing = 2;
  DeallocQueue queue = log.queue({10, 1000});
  for (std::uint64_t i = 1; i <= 3; ++i) queue.schedule(item(i));
  queue.flush();
  CHECK(log.released == std::vector<std::uint64_t>{1});
  CHECK(log.reports == std::vector<std::string>{"it failed"});
  CHECK(queue.pending_count() == 1);
  queue.flush();
  CHECK(log.released == std::vector<std::uint64_t>{1, 3});
}

TEST_CASE("while deferred nothing is released, and the outermost end releases") {
  Log log;
  DeallocQueue queue = log.queue({1, 1000});
  queue.defer();
  queue.defer();
  for (std::uint64_t i = 1; i <= 5; ++i) queue.schedule(item(i));
  queue.flush();  // as the layer does after an out-of-memory error
  queue.resume();
  CHECK(log.released.empty());
  queue.resume();
  CHECK(log.released.size() == 5);
}

TEST_CASE("threads may schedule at the same time") {
  Log log;
  std::atomic<int> released = 0;
  DeallocQueue queue({3, 1000}, [&](const Release&) { return ++released, std::string(); }, nullptr);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&queue, t] {
      for (std::uint64_t i = 0; i < 200; ++i) queue.schedule(item(t * 1000 + i + 1));
    });
  for (std::thread& thread : threads) thread.join();
  queue.flush();
  CHECK(released == 800);
}

TEST_CASE("limits come from the environment, Numba's names honoured and quern's first") {
  setenv("NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT", "5", 1);
  setenv("NUMBA_CUDA_MAX_PENDING_DEALLOCS_RATIO", "0.5", 1);
  DeallocQueue::Limits limits = quern::runtime::limits_from_environment(1000);
  CHECK(limits.count == 5);
  CHECK(limits.size_bytes == 500);
  setenv("QUERN_MAX_PENDING_DEALLOCS_COUNT", "0", 1);
  setenv("QUERN_MAX_PENDING_DEALLOCS_RATIO", "ten", 1);
  limits = quern::runtime::limits_from_environment(1000);
  CHECK(limits.count == 0);
  CHECK(limits.size_bytes == 500);
  for (const char* name : {"NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT", "NUMBA_CUDA_MAX_PENDING_DEALLOCS_RATIO",
                           "QUERN_MAX_PENDING_DEALLOCS_COUNT", "QUERN_MAX_PENDING_DEALLOCS_RATIO"})
    unsetenv(name);
  limits = quern::runtime::limits_from_environment(1000);
  CHECK(limits.count == 10);
  CHECK(limits.size_bytes == 200);
}
