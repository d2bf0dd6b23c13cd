// SPDX-License-Identifier: Apache-2.0
#include "terminal/interrupt.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>

namespace quern::cli {
namespace {

bool is_ignored(int signal) {
  struct sigaction action{};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// Signals belong to the process, so this state is global.
std::atomic<bool> keeps_next = false;
std::atomic<int> kept_signal = 0;
std::mutex child_mutex;
pid_t child = 0;

/// Forwards a signal to the child. False: there is none.
bool forward(const siginfo_t& info, int signal) {
  const std::lock_guard lock(child_mutex);
  if (child == 0) return false;
  // sent by a process; signals of the terminal reach the child as well
  if (info.si_code <= 0) ::kill(child, signal);
  return true;
}

void wait_for_one(const sigset_t& signals) {
  siginfo_t info{};
  int signal = 0;
  do signal = ::sigwaitinfo(&signals, &info);
  while (signal < 0 && errno == EINTR);
  if (signal < 0) return;
  if (forward(info, signal)) return wait_for_one(signals);
  if (keeps_next.exchange(false)) {
    kept_signal = signal;
    return wait_for_one(signals);
  }
  std::signal(signal, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  ::kill(::getpid(), signal);
}

}  // namespace

void end_by_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM})
    if (!is_ignored(signal)) sigaddset(&signals, signal);
  // A signal that every thread blocks reaches only the thread that waits for it, and no handler.
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    std::thread(wait_for_one, signals).detach();
  } catch (const std::system_error&) {  // no thread can be created: continue as if nothing was requested
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  }
}

pid_t pass_signals_to(const std::function<pid_t()>& start) {
  const std::lock_guard lock(child_mutex);
  return child = start();
}

void stop_passing_signals() noexcept {
  const std::lock_guard lock(child_mutex);
  child = 0;
}

void keep_interrupts() noexcept { keeps_next = true; }

int interrupted() noexcept { return kept_signal; }

}  // namespace quern::cli
