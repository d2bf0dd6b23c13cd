// SPDX-License-Identifier: Apache-2.0
// quern-serve: the program behind `quern serve`, and behind each of its workers.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <string_view>

#include "serve/log.hpp"
#include "serve/options.hpp"
#include "serve/server.hpp"
#include "serve/worker.hpp"

namespace quern::serve {
namespace {

constexpr std::string_view kWorkerOption = "--worker=";

void write_text(int descriptor, const std::string& text) {
  if (::write(descriptor, text.data(), text.size()) < 0) ::_exit(1);
}

/// Signals that a server waits for are blocked before the first thread starts, so that all threads block
/// them.
void prepare_process() {
  ::umask(077);
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
}

int serve(const Settings& settings) {
  take_over_log();
  Server server(settings);
  if (const Expected<void> opened = server.open(); !opened) {
    write_text(STDERR_FILENO, to_string(opened.errors()));
    ::_exit(1);
  }
  return server.run();
}

int program(int argc, char** argv) {
  const std::string_view first = argc == 2 ? argv[1] : "";
  if (first.starts_with(kWorkerOption)) {
    const std::string_view number = first.substr(kWorkerOption.size());
    std::uint64_t memory_bytes = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), memory_bytes);
    return error == std::errc() && end == number.data() + number.size() ? worker_main(memory_bytes) : 2;
  }
  prepare_process();
  const CommandLine line = read_command_line(argc, argv);
  if (line.settings) return serve(*line.settings);
  write_text(line.status == 0 ? STDOUT_FILENO : STDERR_FILENO, line.text);
  return line.status;
}

}  // namespace
}  // namespace quern::serve

int main(int argc, char** argv) { return quern::serve::program(argc, argv); }
