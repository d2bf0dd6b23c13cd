// SPDX-License-Identifier: Apache-2.0
// The leak report at exit, tested in a child process that runs this program again.
#include <doctest/doctest.h>
#include <unistd.h>
#include <quern/quern.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace quern;

namespace {

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The output on stderr of this program, run as a child that leaves an array behind.
std::string child(const std::string& environment) {
  const std::string command = "env QUERN_TEST_LEAK=1 " + environment + " /proc/" + std::to_string(getpid()) +
                              "/exe --test-case='child:*' 2>&1 >/dev/null";
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  CHECK(pclose(pipe) == 0);
  return text;
}

}  // namespace

TEST_CASE("child: leaves an array and a stream behind") {
  if (std::getenv("QUERN_TEST_LEAK") == nullptr) return;
  // Static objects have been destroyed when the report is made, so they are no leaks. These objects are never
  // destroyed.
  const Session session("cpu");
  static const auto* const left = new DeviceNDArray(session.device_array({100}, Dtype::float32));
  static const auto* const stream = new Stream(session.stream());
  CHECK(left->size() == 100);
  CHECK(stream->query());
  (void)session.device_array({50}, Dtype::float32);  // released, but still pending: no leak
}

TEST_CASE(
    "the leak report at exit lists what is live, with its sites on request, and only if it is asked for") {
  const std::string report = child("QUERN_LEAK_REPORT=1 QUERN_TRACK_ALLOCATIONS=1");
  CHECK(holds(report, "still live at exit on quern CPU device"));
  CHECK(holds(report, "device     live 1 (400 bytes), pending 1 (200 bytes)"));
  CHECK(holds(report, "stream     live 1"));
  CHECK(holds(report, "device of 400 bytes made at\n    "));
  // The first frame is in this program and not in the library.
  const std::string site = report.substr(report.find("device of 400 bytes made at\n"));
  CHECK(holds(site.substr(0, site.find('\n', 30)), "/exe+0x"));
  CHECK_FALSE(holds(child("QUERN_LEAK_REPORT=1 QUERN_TRACK_ALLOCATIONS=0"), "made at"));
  CHECK_FALSE(holds(child("QUERN_LEAK_REPORT=0"), "still live"));
}

TEST_CASE("child: hands its log to a function, also at exit") {
  if (std::getenv("QUERN_TEST_LEAK") == nullptr || std::getenv("QUERN_TEST_HANDLER") == nullptr) return;
  set_log_handler([](const LogRecord& record) {
    const std::string line = std::string(to_string(record.level)) + " of " +
                             std::string(record.field("device")) + ": " + record.text + "|";
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) std::abort();
  });
}

TEST_CASE("the leak report at exit goes to the log handler") {
  const std::string report = child("QUERN_LEAK_REPORT=1 QUERN_TRACK_ALLOCATIONS=0 QUERN_TEST_HANDLER=1");
  CHECK(report.find(
            "warning of quern CPU device: still live at exit on quern CPU device:\ndevice     live 1") == 0);
  CHECK(report.find('|') == report.size() - 1);
}

TEST_CASE("what quern keeps for itself is no leak of the program's") {
  const Session session("cpu");
  {
    const DeviceNDArray matrix = session.device_array({64, 32}, Dtype::float32);
    matrix.assign(2.5f);
    CHECK(matrix.transpose().copy().copy_to_host().size() == 2048);  // by a kernel of quern's
    const Stream stream = session.stream();
    const std::vector<float> values(2048, 1.f);
    matrix.copy_bytes_from_host(std::as_bytes(std::span(values)),
                                stream);  // through page-locked memory of quern's
    stream.synchronize();
  }
  CHECK(session.leak_report() == "");
  CHECK(session.memory_stats().kinds[static_cast<std::size_t>(ResourceKind::module)].made_count == 0);
  session.release_pending();
  CHECK(session.memory_stats().kinds[static_cast<std::size_t>(ResourceKind::module)].pending_count == 0);
}

TEST_CASE("memory_stats and leak_report count what is live and pending, and forget what was released") {
  setenv("QUERN_TRACK_ALLOCATIONS", "1", 1);
  const Session session("cpu");
  unsetenv("QUERN_TRACK_ALLOCATIONS");
  CHECK(session.leak_report().empty());
  DeviceNDArray array = session.device_array({25}, Dtype::float32);
  CHECK(holds(session.leak_report(), "device of 100 bytes made at\n"));
  const MemoryStats stats = session.memory_stats();
  REQUIRE(stats.live.size() == 1);
  CHECK(stats.live[0].kind == ResourceKind::device);
  CHECK(stats.live[0].size_bytes == 100);
  CHECK(holds(stats.live[0].made_at.substr(0, stats.live[0].made_at.find('\n')), "/leak-report-test"));
  array = {};
  CHECK(session.leak_report().empty());
  CHECK(session.memory_stats().live.empty());
  CHECK(session.memory_stats()[ResourceKind::device].pending_bytes == 100);
  CHECK(session.memory_stats()[ResourceKind::device].peak_bytes == 100);
  session.release_pending();
  CHECK(session.memory_stats()[ResourceKind::device].pending_count == 0);
  CHECK(session.pending_release_count() == 0);
}
