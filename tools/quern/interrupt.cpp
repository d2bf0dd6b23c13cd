// SPDX-License-Identifier: Apache-2.0
#include "interrupt.hpp"

#include <unistd.h>

#include <csignal>
#include <system_error>
#include <thread>

namespace quern::cli {
namespace {

bool is_ignored(int signal) {
  struct sigaction action{};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void wait_for_one(const sigset_t& signals) {
  int signal = 0;
  if (sigwait(&signals, &signal) != 0) return;
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
  // A signal that every thread blocks reaches no handler, and the one that waits for it.
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    std::thread(wait_for_one, signals).detach();
  } catch (const std::system_error&) {  // no thread to be had: then as if nothing had been asked
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  }
}

}  // namespace quern::cli
