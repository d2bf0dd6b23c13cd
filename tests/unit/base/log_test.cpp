// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../support/captured_output.hpp"
#include "base/env.hpp"

using namespace quern;
using quern::test::output_of;

namespace {

const LogRecord kRecord{LogLevel::warning, "something is odd", {{"device", "a device"}, {"line", "7"}}};

/// Back to stderr at the end of a test case.
struct Reset {
  ~Reset() { set_log_handler({}); }
};

}  // namespace

TEST_CASE("without a handler errors and warnings are lines on stderr, and nothing else is written") {
  CHECK(output_of([] { base::log(kRecord); }) == "quern: warning: something is odd\n");
  CHECK(output_of([] { base::log({LogLevel::error, "bad", {}}, "the device: "); }) == "the device: bad\n");
  CHECK(output_of([] { base::log({LogLevel::info, "by the way", {}}); }) == "");
  CHECK(output_of([] { base::log({LogLevel::debug, "a detail", {}}); }) == "");
}

TEST_CASE("a handler receives level, text and fields, and nothing is written") {
  const Reset reset;
  std::vector<LogRecord> records;
  CHECK(set_log_handler([&](const LogRecord& record) { records.push_back(record); }) == nullptr);
  const std::string written = output_of([] {
    base::log(kRecord);
    base::log({LogLevel::debug, "two\nlines\n", {}}, "prefix");
  });
  CHECK(written == "");
  REQUIRE(records.size() == 2);
  CHECK(records[0].level == LogLevel::warning);
  CHECK(records[0].text == "something is odd");
  CHECK(records[0].field("device") == "a device");
  CHECK(records[0].field("line") == "7");
  CHECK(records[0].field("kernel") == "");
  CHECK(records[1].level == LogLevel::debug);
  CHECK(records[1].text == "two\nlines");
}

TEST_CASE("setting a handler gives the former one back, and an empty one is stderr again") {
  const Reset reset;
  int first = 0;
  int second = 0;
  set_log_handler([&](const LogRecord&) { ++first; });
  LogHandler former = set_log_handler([&](const LogRecord&) { ++second; });
  base::log(kRecord);
  CHECK(first == 0);
  CHECK(second == 1);
  former(kRecord);
  CHECK(first == 1);
  set_log_handler(std::move(former));
  base::log(kRecord);
  CHECK(first == 2);
  CHECK(set_log_handler({}) != nullptr);
  CHECK(output_of([] { base::log(kRecord); }) == "quern: warning: something is odd\n");
}

TEST_CASE("what a handler throws, and what it makes quern log, goes nowhere") {
  const Reset reset;
  int calls = 0;
  set_log_handler([&](const LogRecord&) {
    ++calls;
    base::log({LogLevel::error, "caused by the handler", {}});
    if (calls == 1) throw std::runtime_error("out of the handler");
    throw 7;
  });
  CHECK(output_of([] {
          base::log(kRecord);
          base::log(kRecord);
        }) == "");
  CHECK(calls == 2);
}

TEST_CASE("a malformed variable is told once, with its name as a field") {
  const Reset reset;
  std::vector<LogRecord> records;
  set_log_handler([&](const LogRecord& record) { records.push_back(record); });
  ::setenv("QUERN_LOG_TEST", "many", 1);
  const std::string written = output_of([] {
    for (int i = 0; i < 3; ++i) base::env_number("QUERN_LOG_TEST", &base::warn_of_env);
  });
  ::unsetenv("QUERN_LOG_TEST");
  CHECK(written == "");
  REQUIRE(records.size() == 1);
  CHECK(records[0].level == LogLevel::warning);
  CHECK(records[0].text == "QUERN_LOG_TEST is not a whole number, and is ignored: many");
  CHECK(records[0].field("variable") == "QUERN_LOG_TEST");
}

TEST_CASE("setting a handler waits until the former one has returned in other threads") {
  const Reset reset;
  std::atomic<bool> inside{false};
  std::atomic<bool> left{false};
  std::atomic<bool> replaced{false};
  set_log_handler([&](const LogRecord&) {
    inside = true;
    // Long enough that a replacement that does not wait would return.
    for (int i = 0; i < 200 && !replaced; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    left = true;
  });
  std::thread logging([] { base::log(kRecord); });
  while (!inside) std::this_thread::yield();
  set_log_handler([](const LogRecord&) {});
  const bool was_left = left;
  replaced = true;
  logging.join();
  CHECK(was_left);
}

TEST_CASE("a handler may put another one in its place") {
  const Reset reset;
  int first = 0;
  int second = 0;
  set_log_handler([&](const LogRecord&) {
    ++first;
    CHECK(set_log_handler([&](const LogRecord&) { ++second; }) != nullptr);
  });
  base::log(kRecord);
  base::log(kRecord);
  CHECK(first == 1);
  CHECK(second == 1);
}

TEST_CASE("threads log while handlers come and go, and each record goes to one of them") {
  const Reset reset;
  constexpr int kThreads = 4;
  constexpr int kRecords = 500;
  std::atomic<int> taken{0};
  const auto handler = [&](const LogRecord&) { ++taken; };
  set_log_handler(handler);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < kRecords; ++i) base::log(kRecord);
    });
  for (int i = 0; i < 200; ++i) set_log_handler(handler);
  for (std::thread& thread : threads) thread.join();
  CHECK(taken == kThreads * kRecords);
}

TEST_CASE("records that find no handler are offered to who takes them for this library") {
  const Reset reset;
  static int offered;
  offered = 0;
  base::forward_log([](const LogRecord&) { return ++offered > 1; });
  CHECK(output_of([] { base::log(kRecord); }) == "quern: warning: something is odd\n");
  CHECK(output_of([] { base::log(kRecord); }) == "");
  set_log_handler([](const LogRecord&) {});
  base::log(kRecord);
  base::forward_log(nullptr);
  CHECK(offered == 2);
}
