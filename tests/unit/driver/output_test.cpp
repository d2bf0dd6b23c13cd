// SPDX-License-Identifier: Apache-2.0
#include "driver/output.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "../support/captured_output.hpp"
#include "quern/log.hpp"
#include "quern/printf.hpp"

using namespace quern;
using quern::test::output_of;

namespace {

QuernCpuLogSink log_sink = nullptr;
QuernCpuPrintSink print_sink = nullptr;

/// The sinks that a plug-in receives.
void take_sinks() {
  QuernCpuPlugin plugin{};
  plugin.set_log_sink = [](QuernCpuLogSink sink) { log_sink = sink; };
  plugin.set_print_sink = [](QuernCpuPrintSink sink) { print_sink = sink; };
  driver::take_output(plugin);
}

const QuernCpuLogField kFields[] = {{"kernel", "k"}, {"line", "3"}};
const QuernCpuLogRecord kRecord{sizeof kRecord, 0, "an assertion", 2, kFields};
int context_object;
const QuernCpuPrint kPrint{sizeof kPrint, 0, "text\n", 5, "k", &context_object};

struct Reset {
  ~Reset() {
    set_log_handler({});
    set_printf_handler({});
  }
};

}  // namespace

TEST_CASE("the plug-in is told that nobody takes its messages and prints where no handler is set") {
  take_sinks();
  CHECK(log_sink(&kRecord) == 0);
  CHECK(print_sink(&kPrint) == 0);
}

TEST_CASE("the plug-in's messages and prints arrive whole") {
  const Reset reset;
  take_sinks();
  std::vector<LogRecord> records;
  set_log_handler([&](const LogRecord& record) { records.push_back(record); });
  CHECK(log_sink(&kRecord) == 1);
  REQUIRE(records.size() == 1);
  CHECK(records[0].level == LogLevel::error);
  CHECK(records[0].text == "an assertion");
  CHECK(records[0].fields.size() == 2);
  CHECK(records[0].field("line") == "3");
  int prints = 0;
  set_printf_handler([&](const DevicePrint& print) {
    ++prints;
    CHECK(print.text == "text\n");
    CHECK(print.kernel == "k");
    CHECK(print.context == &context_object);
  });
  CHECK(print_sink(&kPrint) == 1);
  CHECK(prints == 1);
  CHECK(records.size() == 1);
}

TEST_CASE("what a printf handler throws is a warning") {
  const Reset reset;
  take_sinks();
  std::vector<LogRecord> records;
  set_printf_handler([](const DevicePrint&) { throw std::runtime_error("no room"); });
  CHECK(output_of([] { CHECK(print_sink(&kPrint) == 1); }) ==
        "quern: warning: the handler of device printf threw: no room\n");
  set_log_handler([&](const LogRecord& record) { records.push_back(record); });
  set_printf_handler([](const DevicePrint&) { throw 1; });
  CHECK(print_sink(&kPrint) == 1);
  REQUIRE(records.size() == 1);
  CHECK(records[0].level == LogLevel::warning);
  CHECK(records[0].text == "the handler of device printf threw what is no std::exception");
  CHECK(records[0].field("kernel") == "k");
}

TEST_CASE(
    "a printf handler beside a session on a GPU is told once that it does not see what kernels print there") {
  const Reset reset;
  std::vector<LogRecord> records;
  set_log_handler([&](const LogRecord& record) { records.push_back(record); });
  set_printf_handler([](const DevicePrint&) {});
  set_printf_handler({});
  driver::note_own_stdout("a GPU");
  CHECK(records.empty());  // nobody asked
  set_printf_handler([](const DevicePrint&) {});
  driver::note_own_stdout("another GPU");
  REQUIRE(records.size() == 1);
  CHECK(records[0].text ==
        "the printf handler does not see what kernels on a GPU print: the CUDA driver writes it to stdout "
        "itself");
  CHECK(records[0].field("device") == "a GPU");
}
