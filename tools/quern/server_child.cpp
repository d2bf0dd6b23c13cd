// SPDX-License-Identifier: Apache-2.0
#include "server_child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <quern/error.hpp>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace quern::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{10};
constexpr int kTickMs = 100;

[[noreturn]] void fail(const std::string& what, int error) {
  throw Error(error == ENOENT ? ErrorCode::not_found : ErrorCode::io,
              fmt::format("cannot {}: {}\nhint: install quern as a whole; quern-serve is beside the library",
                          what, std::strerror(error)));
}

Diagnostic diagnostic(const char* code, const char* message) {
  Diagnostic made;
  made.code = code;
  made.message = message;
  return made;
}

std::string temporary_log() {
  const char* const folder = std::getenv("TMPDIR");
  std::string name =
      std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") + "/quern-serve-XXXXXX.log";
  const int file = ::mkostemps(name.data(), 4, O_CLOEXEC);
  if (file < 0) fail("make a file for the server's log in " + name, errno);
  ::close(file);
  return name;
}

pid_t spawn(const std::filesystem::path& program, std::vector<std::string> words, const std::string& log) {
  words.insert(words.begin(), "quern-serve");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(), O_WRONLY | O_APPEND, 0);
  pid_t process = -1;
  const int error = ::posix_spawn(&process, program.c_str(), &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail("start " + program.string(), error);
  return process;
}

}  // namespace

ServerChild::ServerChild(const std::filesystem::path& program, const std::vector<std::string>& words)
    : log_(temporary_log()) {
  int pair[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) fail("make a pair of sockets", errno);
  socket_ = pair[0];
  ::fcntl(socket_, F_SETFD, FD_CLOEXEC);
  std::vector<std::string> all = words;
  all.push_back(fmt::format("--stats-fd={}", pair[1]));
  process_ = spawn(program, all, log_);
  ::close(pair[1]);
}

ServerChild::~ServerChild() { ::close(socket_); }

Expected<std::string> ServerChild::stats(const std::function<bool()>& goes_on) {
  const char byte = '?';
  if (::send(socket_, &byte, 1, MSG_NOSIGNAL) != 1) return diagnostic("lost", "the server has ended");
  std::string text;
  const Clock::time_point end = Clock::now() + kPatience;
  while (Clock::now() < end) {
    if (goes_on && !goes_on()) return diagnostic("cancelled", "not waited for");
    pollfd ready{socket_, POLLIN, 0};
    if (::poll(&ready, 1, kTickMs) <= 0) continue;
    char block[1 << 14];
    const ssize_t size = ::recv(socket_, block, sizeof block, 0);
    if (size <= 0) return diagnostic("lost", "the server is about to end");
    text.append(block, static_cast<std::size_t>(size));
    if (text.back() != '\n') continue;
    has_started_ = true;
    // An answer that came too late for its request may come first.
    const std::size_t before = text.size() < 2 ? std::string::npos : text.rfind('\n', text.size() - 2);
    return before == std::string::npos ? text : text.substr(before + 1);
  }
  return diagnostic("timeout", "the server did not answer in time");
}

bool ServerChild::is_running() {
  int status = 0;
  if (status_ < 0 && ::waitpid(process_, &status, WNOHANG) == process_) status_ = status;
  return status_ < 0;
}

int ServerChild::end() {
  if (is_running()) {
    ::kill(process_, SIGTERM);
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    status_ = status;
  }
  tell_log();
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

void ServerChild::tell_log() const {
  std::error_code ignored;
  const bool empty = std::filesystem::file_size(log_, ignored) == 0;
  if (!has_started_) {
    std::ostringstream text;
    text << std::ifstream(log_).rdbuf();
    std::fputs(text.str().c_str(), stderr);
  } else if (!empty) {
    std::fprintf(stderr, "quern serve: the server has ended; its log is %s\n", log_.c_str());
    return;
  }
  std::filesystem::remove(log_, ignored);
}

}  // namespace quern::cli
