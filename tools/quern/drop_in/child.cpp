// SPDX-License-Identifier: Apache-2.0
#include "drop_in/child.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <quern/error.hpp>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "terminal/interrupt.hpp"

namespace quern::cli {
namespace {

constexpr int kSignalled = 128;

[[noreturn]] void fail(const std::string& program, int error) {
  const bool is_absent = error == ENOENT;
  throw Error(is_absent ? ErrorCode::not_found : ErrorCode::io,
              fmt::format("cannot run {}: {}\nhint: {}", program, std::strerror(error),
                          is_absent ? "give the path of a program, or the name of one in PATH"
                                    : "give a program that may be executed"));
}

/// The signal mask of this thread, without the signals that end_by_signals() has blocked.
sigset_t mask_of_child() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  sigdelset(&mask, SIGINT);
  sigdelset(&mask, SIGTERM);
  return mask;
}

pid_t spawn(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const sigset_t mask = mask_of_child();
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &mask);
  pid_t process = -1;
  const int error =
      ::posix_spawnp(&process, pointers.front(), nullptr, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) fail(words.front(), error);
  return process;
}

}  // namespace

int run_child(const std::vector<std::string>& command) {
  std::signal(SIGCHLD, SIG_DFL);  // a process that ignores it cannot learn its children's statuses
  const pid_t process = pass_signals_to([&] { return spawn(command); });
  std::signal(SIGQUIT, SIG_IGN);  // the terminal's signal, which the child receives as well
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  stop_passing_signals();
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
}

}  // namespace quern::cli
