// SPDX-License-Identifier: Apache-2.0
// Delivery of printf output by several threads, to readers that are slow or do not read at all.
#include "cpu/engine/output.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio_ext.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cpu/abi/facts.hpp"
#include "engine.hpp"
#include "launches.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define QUERN_TEST_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define QUERN_TEST_SANITIZER 1
#endif

using namespace quern::cpu;
using namespace quern::cpu::engine;
using namespace quern::cpu::test;

namespace {

/// Returns false if it is still not true after a long time.
bool becomes(const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// During its lifetime the process's stdout is a pipe. No check may fail meanwhile: doctest would report it
/// there.
class PipeAsStdout {
 public:
  PipeAsStdout() : kept_(::dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) std::abort();
    ::dup2(ends_[1], STDOUT_FILENO);
  }
  /// Threads that still wait for the pipe continue, since nobody can read it any more.
  ~PipeAsStdout() {
    if (reader_.joinable()) finish();
    const auto before = ::signal(SIGPIPE, SIG_IGN);
    ::close(ends_[0]);
    ::dup2(kept_, STDOUT_FILENO);
    ::close(kept_);
    ::__fpurge(stdout);
    std::clearerr(stdout);
    if (ends_[1] >= 0) ::close(ends_[1]);
    ::signal(SIGPIPE, before);
  }
  PipeAsStdout(const PipeAsStdout&) = delete;
  PipeAsStdout& operator=(const PipeAsStdout&) = delete;

  void fill() {
    ::fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    const std::string letters(PIPE_BUF, '.');
    while (::write(ends_[1], letters.data(), letters.size()) > 0) {
    }
    ::fcntl(ends_[1], F_SETFL, 0);
  }
  /// A thread reads from now on.
  void start_reader() {
    reader_ = std::thread([this] {
      std::array<char, 10'000> part;
      for (ssize_t bytes = 0; (bytes = ::read(ends_[0], part.data(), part.size())) > 0;)
        text_.append(part.data(), static_cast<std::size_t>(bytes));
    });
  }
  /// All that was read, when nobody writes any more.
  std::string finish() {
    std::fflush(stdout);
    ::dup2(kept_, STDOUT_FILENO);
    ::close(std::exchange(ends_[1], -1));
    reader_.join();
    return text_;
  }

 private:
  const int kept_;
  std::array<int, 2> ends_{};
  std::thread reader_;
  std::string text_;
};

/// The sink waits until this is open, and keeps the texts that it receives here.
struct Slow {
  std::atomic<bool> open{false}, reached{false};
  std::vector<std::string> texts;
};
Slow* slow = nullptr;
bool receive(const Print& print) noexcept {
  slow->reached = true;
  while (!slow->open) std::this_thread::yield();
  slow->texts.push_back(print.text);
  return true;
}

std::string numbered(int thread, int number, std::size_t size) {
  std::string text = std::to_string(thread) + ':' + std::to_string(number) + ':';
  text.resize(std::max(text.size(), size), static_cast<char>('a' + number % 26));
  return text + '\n';
}

/// The kernel's format and arguments are in shared memory.
void print(const LaunchState* launch, WorkerState* worker, std::string_view text) {
  std::memcpy(worker->shared_base, text.data(), text.size());
  worker->shared_base[text.size()] = std::byte{0};
  const std::uint64_t args[] = {reinterpret_cast<std::uint64_t>(worker->shared_base), 0};
  quern_cpu_host_call(worker, launch, static_cast<std::uint32_t>(ir::HostCall::vprintf), args);
}

void print_for_ever(const LaunchState* launch, WorkerState* worker, std::uint64_t, std::uint64_t) {
  for (;;) {
    ++parameter_of<std::atomic<int>>(launch);
    print(launch, worker, "one of many lines\n");
  }
}
void print_once(const LaunchState* launch, WorkerState* worker, std::uint64_t, std::uint64_t) {
  ++parameter_of<std::atomic<int>>(launch);
  print(launch, worker, "the only line\n");
}

std::unique_ptr<LaunchJob> printer(RunBlocks run, std::uint64_t blocks, std::atomic<int>& calls) {
  static const std::string name = "printer";
  auto job = launch_of(run, blocks, &calls);
  job->own.kernel = &name;
  return job;
}

bool stays(const std::atomic<int>& calls) {
  const int before = calls;
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  return calls == before;
}

}  // namespace

TEST_CASE("threads that print wait while much is pending, and lose nothing") {
  constexpr int kThreads = 3, kTexts = 4000;
  constexpr std::size_t kTextBytes = 1000, kLargeBytes = 3 * Output::kMostPendingBytes;
  Slow receiver;
  slow = &receiver;
  Output output;
  output.set_sink(&receive);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&output, thread] {
      for (int i = 0; i < kTexts; ++i) output.write({.text = numbered(thread, i, kTextBytes)});
      output.write({.text = numbered(thread, kTexts, kLargeBytes)});
      output.flush();
    });
  CHECK(becomes([&] { return output.pending_bytes() >= Output::kMostPendingBytes; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(output.pending_bytes() < Output::kMostPendingBytes + 2 * kTextBytes);
  receiver.open = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(output.pending_bytes() == 0);
  REQUIRE(receiver.texts.size() == kThreads * (kTexts + 1));
  std::array<int, kThreads> next{};
  std::size_t wrong = 0;
  for (const std::string& text : receiver.texts) {
    const int thread = text[0] - '0', i = next[static_cast<std::size_t>(thread)]++;
    wrong += text != numbered(thread, i, i == kTexts ? kLargeBytes : kTextBytes);
  }
  CHECK(wrong == 0);
}

TEST_CASE("small texts count with what is needed to keep them") {
  Slow receiver;
  slow = &receiver;
  Output output;
  output.set_sink(&receive);
  std::thread first([&] { output.write({}); });
  CHECK(becomes([&] { return receiver.reached.load(); }));
  int count = 0;
  std::atomic<bool> stop{false};
  std::thread second([&] {
    for (; !stop; ++count) output.write({}, [&] { return stop.load(); });
  });
  CHECK(becomes([&] { return output.pending_bytes() >= Output::kMostPendingBytes; }));
  stop = true;
  second.join();
  CHECK(count <= 20'000);
  receiver.open = true;
  first.join();
}

TEST_CASE("several threads' texts in a pipe are whole and in order, also those larger than PIPE_BUF") {
  constexpr int kThreads = 3, kTexts = 500;
  std::string text;
  {
    PipeAsStdout pipe;
    pipe.start_reader();
    Output output;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&output, thread] {
        for (int i = 0; i < kTexts; ++i)
          output.write({.text = numbered(thread, i, static_cast<std::size_t>(i) * 37)});
        output.flush();
      });
    for (std::thread& thread : threads) thread.join();
    text = pipe.finish();
  }
  std::array<int, kThreads> next{};
  std::size_t wrong = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n') + 1);
    const int thread = line[0] - '0';
    if (line.empty() || thread < 0 || thread >= kThreads) {
      ++wrong;
      break;
    }
    const int i = next[static_cast<std::size_t>(thread)]++;
    wrong += line != numbered(thread, i, static_cast<std::size_t>(i) * 37);
    rest.remove_prefix(line.size());
  }
  CHECK(wrong == 0);
  for (const int count : next) CHECK(count == kTexts);
}

TEST_CASE("a stopped launch leaves a full pipe and its texts, and those of others are delivered") {
  constexpr int kEnding = 1, kOther = 2;  // their addresses identify launches
  std::string text;
  bool reached = false, ended = false, left_over = false;
  {
    PipeAsStdout pipe;
    pipe.fill();
    Output output;
    std::atomic<bool> stop{false}, done{false};
    const Output::Stopped stopped = [&] { return stop.load(); };
    std::thread first([&] {
      output.write({.text = std::string(3 * PIPE_BUF, 'x'), .launch = &kEnding}, stopped);
      output.flush(&kEnding, stopped);
      done = true;
    });
    reached = becomes([&] { return output.pending_bytes() > 0; });
    output.write({.text = "of the other launch\n", .launch = &kOther}, stopped);
    output.write({.text = "of the ending launch\n", .launch = &kEnding}, stopped);
    stop = true;
    ended = becomes([&] { return done.load(); });
    left_over = output.pending_bytes() > 0;
    std::thread second([&] { output.flush(&kOther); });
    pipe.start_reader();
    first.join();
    second.join();
    text = pipe.finish();
  }
  CHECK(reached);
  CHECK(ended);
  CHECK(left_over);
  CHECK(text.find("of the ending launch") == std::string::npos);
  CHECK(text.find("of the other launch\n") != std::string::npos);
}

TEST_CASE("a stopped launch does not wait for a thread of the host that holds stdout") {
  Output output;
  std::atomic<bool> done{false};
  ::flockfile(stdout);
  std::thread printing([&] {
    output.write({.text = "this text is lost\n"}, [] { return true; });
    output.flush(nullptr, [] { return true; });
    done = true;
  });
  const bool ended = becomes([&] { return done.load(); });
  ::funlockfile(stdout);
  printing.join();
  CHECK(ended);
  CHECK(output.pending_bytes() == 0);
}

TEST_CASE("a time limit ends a launch whose output nobody reads, also when its blocks have ended") {
  Engine& engine = Engine::get();
  for (const RunBlocks run : {&print_for_ever, &print_once}) {
    const auto domain = engine.scheduler->make_domain();
    std::atomic<int> calls{0};
    bool ended = false;
    {
      PipeAsStdout pipe;
      pipe.fill();
      auto job = printer(run, 4, calls);
      job->limit = std::chrono::milliseconds(100);
      engine.scheduler->submit(domain->legacy_stream(), std::move(job));
      ended = becomes([&] { return engine.scheduler->idle(*domain->legacy_stream()); });
    }
    engine.scheduler->synchronize(*domain);
    CHECK(ended);
    CHECK(calls > 0);
    CHECK(domain->fault() == FaultKind::launch_timeout);
    CHECK(engine.output.pending_bytes() == 0);
  }
}

TEST_CASE("cancelling ends a launch whose output nobody reads, and another one's is delivered") {
  Engine& engine = Engine::get();
  const auto domain = engine.scheduler->make_domain();
  const auto stream = engine.scheduler->make_stream(*domain, false);
  const auto other = engine.scheduler->make_stream(*domain, false);
  std::atomic<int> calls{0}, other_calls{0};
  std::atomic<bool> is_cancelled{false};
  bool blocked = false, printed = false, ended = false;
  std::string text;
  {
    PipeAsStdout pipe;
    pipe.fill();
    engine.scheduler->submit(stream, printer(&print_for_ever, 1, calls));
    blocked = becomes([&] { return calls > 0 && stays(calls); });
    engine.scheduler->submit(other, printer(&print_once, 1, other_calls));
    printed = becomes([&] { return other_calls > 0; });
    std::thread canceller([&] {
      engine.scheduler->cancel(stream);
      is_cancelled = true;
    });
    ended = becomes([&] { return is_cancelled.load(); });
    pipe.start_reader();  // ends a wait that should have ended before
    canceller.join();
    engine.scheduler->synchronize(*domain);
    text = pipe.finish();
  }
  CHECK(blocked);
  CHECK(printed);
  CHECK(ended);
  CHECK(domain->fault() == FaultKind::none);
  CHECK(text.find("the only line\n") != std::string::npos);
  CHECK(engine.output.pending_bytes() == 0);
}

#if !defined(QUERN_TEST_SANITIZER)  // it ends the process if the system refuses memory
TEST_CASE("a text for which there is no memory ends its launch") {
  Engine& engine = Engine::get();
  const auto domain = engine.scheduler->make_domain();
  std::atomic<int> calls{0};
  // 4000 times a string of 60 KB
  const RunBlocks run = [](const LaunchState* launch, WorkerState* worker, std::uint64_t, std::uint64_t) {
    constexpr std::size_t kStrings = 4000, kFormatBytes = 2 * kStrings + 8;
    std::byte* const format = worker->shared_base;
    std::byte* const addresses = format + kFormatBytes;
    std::byte* const letters = addresses + kStrings * sizeof(std::uint64_t);
    const auto address = reinterpret_cast<std::uint64_t>(letters);
    for (std::size_t i = 0; i < kStrings; ++i) {
      std::memcpy(format + 2 * i, "%s", 3);
      std::memcpy(addresses + i * sizeof address, &address, sizeof address);
    }
    std::memset(letters, 'x', 60'000);
    letters[60'000] = std::byte{0};
    const std::uint64_t args[] = {reinterpret_cast<std::uint64_t>(format),
                                  reinterpret_cast<std::uint64_t>(addresses)};
    quern_cpu_host_call(worker, launch, static_cast<std::uint32_t>(ir::HostCall::vprintf), args);
  };
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  rlimit narrow = before;  // enough for small allocations
  narrow.rlim_cur = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (rlim_t{64} << 20);
  REQUIRE(::setrlimit(RLIMIT_AS, &narrow) == 0);
  engine.scheduler->submit(domain->legacy_stream(), printer(run, 1, calls));
  engine.scheduler->synchronize(*domain);
  REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(domain->fault() == FaultKind::out_of_memory);
}
#endif
