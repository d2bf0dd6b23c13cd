// SPDX-License-Identifier: Apache-2.0
// If handlers are set, quern writes neither to stdout nor to stderr.
#include <doctest/doctest.h>
#include <quern/quern.h>
#include <quern/quern.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../support/captured_output.hpp"
#include "../support/messages.hpp"

using namespace quern;
using quern::test::holds;
using quern::test::output_of;

namespace {

constexpr const char* kSource =
    R"(extern "C" __global__ void say(int job) { printf("job %d, thread %d\n", job, threadIdx.x); }
extern "C" __global__ void demand(int* values) {
  assert(values[threadIdx.x] < 3);
}
)";

/// Sets handlers that keep all records and texts, and removes them at the end.
class Received {
 public:
  Received() {
    set_log_handler([this](const LogRecord& record) {
      const std::lock_guard lock(mutex_);
      (record.level <= LogLevel::warning ? records_ : details_).push_back(record);
    });
    set_printf_handler([this](const DevicePrint& print) {
      const std::lock_guard lock(mutex_);
      texts_.emplace_back(print.text);
      kernels_.emplace_back(print.kernel);
      contexts_.push_back(print.context);
    });
  }
  ~Received() {
    set_log_handler({});
    set_printf_handler({});
  }
  Received(const Received&) = delete;
  Received& operator=(const Received&) = delete;

  // Read these only while no handler runs.
  const std::vector<LogRecord>& records() const { return records_; }
  const std::vector<LogRecord>& details() const { return details_; }  ///< of the lower levels
  const std::vector<std::string>& texts() const { return texts_; }
  const std::vector<std::string>& kernels() const { return kernels_; }
  const std::vector<void*>& contexts() const { return contexts_; }
  const LogRecord* with(std::string_view field, std::string_view value) const {
    for (const LogRecord& record : records_)
      if (record.field(field) == value) return &record;
    return nullptr;
  }

 private:
  std::mutex mutex_;
  std::vector<LogRecord> records_;
  std::vector<LogRecord> details_;
  std::vector<std::string> texts_;
  std::vector<std::string> kernels_;
  std::vector<void*> contexts_;
};

struct Variable {
  const char* name;
  Variable(const char* name_, const char* value) : name(name_) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name); }
};

bool ready() {
  static const bool found = [] { return Session::try_open({"cpu"}).has_value() && doctor().ready; }();
  if (!found) MESSAGE("SKIPPED: no CPU device or no NVRTC on this machine");
  return found;
}

void say(const Session& session, int job, std::uint32_t threads) {
  session.load_cuda(kSource).kernel("say")({.grid = 1, .block = threads})(job);
  session.synchronize();
}

bool fails_assertion() {
  const Session session({.device = "cpu", .isolated = true});
  session.load_cuda(kSource, {.file_name = "demand.cu"})
      .kernel("demand")({.grid = 1, .block = 4})(session.to_device(std::vector<int>{0, 1, 3, 2}));
  try {
    session.synchronize();
  } catch (const DriverError& error) {
    return error.code() == ErrorCode::device_fault;
  }
  return false;
}

void throw_in_callback() {
  const Session session("cpu");
  const Stream stream = session.stream();
  stream.add_callback([] { throw std::runtime_error("no luck"); });
  stream.synchronize();
}

}  // namespace

// Must be first: the device reads its environment variables when it starts.
TEST_CASE(
    "malformed variables of the library's and the device's arrive as warnings, and nothing is written") {
  const Variable workers("QUERN_CPU_WORKERS", "several");
  const Variable memory("QUERN_CPU_MEMORY", "1");
  const Variable pending("QUERN_MAX_PENDING_DEALLOCS_COUNT", "few");
  const Received received;
  bool opened = false;
  CHECK(output_of([&] { opened = Session::try_open({"cpu"}).has_value(); }) == "");
  if (!opened) {
    MESSAGE("SKIPPED: no CPU device on this machine");
    return;
  }
  const LogRecord* const of_device = received.with("variable", "QUERN_CPU_WORKERS");
  REQUIRE(of_device != nullptr);
  CHECK(of_device->level == LogLevel::warning);
  CHECK(of_device->text == "QUERN_CPU_WORKERS is not a whole number, and is ignored: several");
  CHECK(of_device->field("device") == "quern CPU device");
  CHECK(received.with("variable", "QUERN_CPU_MEMORY") != nullptr);
  const LogRecord* const of_library = received.with("variable", "QUERN_MAX_PENDING_DEALLOCS_COUNT");
  REQUIRE(of_library != nullptr);
  CHECK(of_library->text == "QUERN_MAX_PENDING_DEALLOCS_COUNT is not a whole number, and is ignored: few");
}

TEST_CASE("what kernels print goes to stdout, and to the handler where there is one") {
  if (!ready()) return;
  const Session session("cpu");
  CHECK(output_of([&] { say(session, 1, 2); }) == "job 1, thread 0\njob 1, thread 1\n");
  {
    const Received received;
    CHECK(output_of([&] { say(session, 2, 2); }) == "");
    CHECK(received.texts() == std::vector<std::string>{"job 2, thread 0\n", "job 2, thread 1\n"});
    CHECK(received.kernels() == std::vector<std::string>{"say", "say"});
    CHECK(received.records().empty());
  }
  CHECK(output_of([&] { say(session, 3, 1); }) == "job 3, thread 0\n");
}

TEST_CASE("the context of what is printed tells isolated sessions apart") {
  if (!ready()) return;
  const Received received;
  const Session one({.device = "cpu", .isolated = true});
  const Session other({.device = "cpu", .isolated = true});
  say(one, 1, 1);
  say(other, 2, 1);
  CHECK(received.contexts() == std::vector<void*>{one.native_context(), other.native_context()});
  CHECK(one.native_context() != other.native_context());
}

TEST_CASE("a failed assertion is a line on stderr, or an error with the thread and the line") {
  if (!ready()) return;
  bool failed = false;
  const std::string written = output_of([&] { failed = fails_assertion(); });
  CHECK(failed);
  const std::string line =
      "demand.cu:3: void demand(int *): block: [0,0,0], thread: [2,0,0] Assertion `values[threadIdx.x] < 3` "
      "failed.";
  CHECK(written == line + "\n");
  const Received received;
  CHECK(output_of([&] { failed = fails_assertion(); }) == "");
  CHECK(failed);
  REQUIRE(received.records().size() == 1);
  const LogRecord& record = received.records()[0];
  CHECK(record.level == LogLevel::error);
  CHECK(record.text == line);
  CHECK(record.field("kernel") == "demand");
  CHECK(record.field("file") == "demand.cu");
  CHECK(record.field("line") == "3");
  CHECK(record.field("thread") == "[2,0,0]");
}

TEST_CASE("what is compiled is told at the level of debug, once, and never on stderr") {
  if (!ready()) return;
  const Session session("cpu");
  const auto run = [&] {
    session.load_cuda("extern \"C\" __global__ void empty() {}", {.file_name = "empty.cu"})
        .kernel("empty")({})();
    session.synchronize();
  };
  {
    const Received received;
    CHECK(output_of(run) == "");
    REQUIRE(received.details().size() == 2);
    CHECK(received.details()[0].level == LogLevel::debug);
    CHECK(received.details()[0].field("file") == "empty.cu");
    CHECK(received.details()[1].field("kernel") == "empty");
    CHECK(received.records().empty());
  }
  CHECK(output_of([] { Session("cpu").load_cuda("extern \"C\" __global__ void empty() {}"); }) == "");
}

TEST_CASE("a callback's exception arrives from a thread of the device's") {
  if (!ready()) return;
  const Received received;
  CHECK(output_of([] { throw_in_callback(); }) == "");
  REQUIRE(received.records().size() == 1);
  CHECK(received.records()[0].text == "a stream's callback threw: no luck");
}

TEST_CASE(
    "several sessions print and fail at once while handlers come and go, and nothing is written or lost") {
  if (!ready()) return;
  constexpr int kThreads = 3;
  constexpr int kRounds = 5;
  std::atomic<int> prints{0};
  std::atomic<int> failures{0};
  const auto on_print = [&](const DevicePrint&) { ++prints; };
  const auto on_record = [&](const LogRecord& record) {
    failures += record.level == LogLevel::error && record.field("kernel") == "demand";
  };
  set_printf_handler(on_print);
  set_log_handler(on_record);
  std::atomic<int> running{kThreads};
  const std::string written = output_of([&] {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&running, t] {
        const Session session({.device = "cpu", .isolated = true});
        for (int round = 0; round < kRounds; ++round) {
          say(session, t, 32);
          fails_assertion();
        }
        --running;
      });
    while (running > 0) {
      set_printf_handler(on_print);
      set_log_handler(on_record);
      std::this_thread::yield();
    }
    for (std::thread& thread : threads) thread.join();
  });
  set_printf_handler({});
  set_log_handler({});
  CHECK(written == "");
  CHECK(prints == kThreads * kRounds * 32);
  CHECK(failures == kThreads * kRounds);
}
