// SPDX-License-Identifier: Apache-2.0
#include "base/background.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/progress.hpp"
#include "quern/error.hpp"

using namespace quern;
using namespace std::chrono_literals;
using base::run_in_background;
using base::Task;

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define QUERN_UNDER_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define QUERN_UNDER_THREAD_SANITIZER 1
#endif

namespace {

#if defined(QUERN_UNDER_THREAD_SANITIZER)
constexpr bool kUnderThreadSanitizer = true;
#else
constexpr bool kUnderThreadSanitizer = false;
#endif

ErrorCode code_of(const std::shared_ptr<Task>& task) {
  try {
    task->rethrow();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

/// Occupies all threads until it is destroyed.
class Full {
 public:
  Full() {
    for (unsigned i = 0; i < base::kMostBackgroundThreads; ++i)
      tasks_.push_back(run_in_background("wait", [this, i] {
        ++inside_;
        while (!open_ && !(i == 0 && one_)) std::this_thread::sleep_for(1ms);
      }));
    while (inside_ < base::kMostBackgroundThreads) std::this_thread::sleep_for(1ms);
  }
  ~Full() {
    open_ = true;
    for (const std::shared_ptr<Task>& task : tasks_) task->wait();
  }
  Full(const Full&) = delete;
  Full& operator=(const Full&) = delete;

  void let_one_go() { one_ = true; }

 private:
  std::atomic<bool> one_{false};
  std::atomic<bool> open_{false};
  std::atomic<unsigned> inside_{0};
  std::vector<std::shared_ptr<Task>> tasks_;
};

}  // namespace

TEST_SUITE_BEGIN("background");

TEST_CASE("work from many threads is done once each, and the threads end") {
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      std::vector<std::shared_ptr<Task>> tasks;
      for (int j = 0; j < 200; ++j) tasks.push_back(run_in_background("count", [&] { ++done; }));
      for (const std::shared_ptr<Task>& task : tasks) {
        task->wait();
        CHECK(task->done());
        task->rethrow();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(done == 1600);
  for (int i = 0; i < 5000 && base::background_thread_count() != 0; ++i) std::this_thread::sleep_for(1ms);
  CHECK(base::background_thread_count() == 0);
}

TEST_CASE("exceptions come to all who ask, each time") {
  const auto task = run_in_background("fail", [] { throw std::runtime_error("why"); });
  for (int i = 0; i < 2; ++i) CHECK_THROWS_WITH_AS(task->rethrow(), "why", std::runtime_error);
}

TEST_CASE("work begins in the order in which it was given") {
  std::vector<int> order;
  std::vector<std::shared_ptr<Task>> tasks;
  Full full;
  for (int i = 0; i < 20; ++i) tasks.push_back(run_in_background("note", [&, i] { order.push_back(i); }));
  CHECK_FALSE(tasks.front()->wait_for(2ms));
  full.let_one_go();  // with several threads, tasks may complete in another order than they were taken
  for (const auto& task : tasks) task->wait();
  REQUIRE(order.size() == 20);
  CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("cancelled work that waits is never done; its resources go at once") {
  const auto held = std::make_shared<int>(7);
  bool ran = false;
  std::shared_ptr<Task> task;
  {
    const Full full;
    task = run_in_background("do it", [held, &ran] { ran = true; });
    CHECK(held.use_count() == 2);
    task->cancel();
    CHECK(task->done());
    CHECK(held.use_count() == 1);
    CHECK(code_of(task) == ErrorCode::cancelled);
  }
  run_in_background("run after it", [] {})->wait();
  CHECK_FALSE(ran);
}

TEST_CASE("work in progress sees that it is cancelled where it tells of progress") {
  std::atomic<bool> begun{false};
  const auto task = run_in_background("work", [&] {
    base::Work work(nullptr, ProgressStage::compile, "x", 0);
    CHECK(work.told());
    CHECK(work.begin());
    begun = true;
    while (work.advance(1)) std::this_thread::sleep_for(1ms);
    throw Error(ErrorCode::cancelled, "by progress");
  });
  while (!begun) std::this_thread::sleep_for(1ms);
  task->cancel();
  task->wait();
  CHECK(code_of(task) == ErrorCode::cancelled);
  base::Work outside(nullptr, ProgressStage::compile, "x", 0);
  CHECK_FALSE(outside.told());
}

TEST_CASE("cancelling and waiting from many threads at the moment of the work harms nothing") {
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> ran{0};
    const auto task = run_in_background("race", [&] { ++ran; });
    std::thread waits([&] { task->wait(); });
    std::thread cancels([&] { task->cancel(); });
    waits.join();
    cancels.join();
    CHECK(task->done());
    CHECK(ran <= 1);
    CHECK((code_of(task) == ErrorCode::cancelled) == (ran == 0));
  }
}

TEST_CASE("a forked child does work of its own, and is told that its parent's is not done there") {
  const Full full;
  const auto parents = run_in_background("compile", [] {});
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    const bool good = code_of(parents) == ErrorCode::driver;
    parents->cancel();
    // ThreadSanitizer starts no threads in the child of a process with several threads
    bool ran = kUnderThreadSanitizer;
    if (!ran) run_in_background("work in the child", [&] { ran = true; })->wait();
    ::_exit(good && ran ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_SUITE_END();
