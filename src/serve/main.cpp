// SPDX-License-Identifier: Apache-2.0
// quern-serve: the program behind `quern serve`, and behind the process that its workers are forked from.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstring>
#include <string_view>

#include "serve/log.hpp"
#include "serve/options.hpp"
#include "serve/server.hpp"
#include "serve/worker/nursery.hpp"
#include "store/address.hpp"

namespace quern::serve {
namespace {

constexpr std::string_view kNurseryOption = "--nursery=";
constexpr std::string_view kStoreOption = "--store=";

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

/// `ps` shows arguments to everyone: passwords in them are overwritten.
void hide_passwords(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    char* text = argv[i];
    if (std::string_view(text).starts_with(kStoreOption)) text += kStoreOption.size();
    const std::string_view password = store::password_in(text);
    if (!password.empty()) std::memset(text + (password.data() - text), 'x', password.size());
  }
}

int serve(const Settings& settings) {
  take_over_log();
  Server server(settings);
  Expected<void> opened = server.open();
  // Errors at startup go to the terminal.
  if (opened && !settings.log_file.empty()) opened = log_to(settings.log_file);
  if (!opened) {
    write_text(STDERR_FILENO, to_string(opened.errors()));
    ::_exit(1);
  }
  return server.run();
}

/// `text`: the memory of a worker in bytes, a comma, 1 for precompiled headers.
int nursery(std::string_view text) {
  NurseryOptions options;
  const char* const end_of_text = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), end_of_text, options.memory_bytes);
  if (error != std::errc() || end_of_text - end != 2 || *end != ',') return 2;
  options.precompiled_headers = end[1] == '1';
  return nursery_main(options);
}

int program(int argc, char** argv) {
  const std::string_view first = argc == 2 ? argv[1] : "";
  if (first.starts_with(kNurseryOption)) return nursery(first.substr(kNurseryOption.size()));
  prepare_process();
  const CommandLine line = read_command_line(argc, argv);
  hide_passwords(argc, argv);
  if (line.settings) return serve(*line.settings);
  write_text(line.status == 0 ? STDOUT_FILENO : STDERR_FILENO, line.text);
  return line.status;
}

}  // namespace
}  // namespace quern::serve

int main(int argc, char** argv) { return quern::serve::program(argc, argv); }
