// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <ctime>

namespace quern::base {

/// While an object of this class lives, a signal that a system call of this thread raises does not reach the
/// host: SIGXFSZ of a file that would exceed RLIMIT_FSIZE (the call fails with EFBIG), SIGPIPE of a closed
/// connection (EPIPE). The destructor takes that signal away and restores the thread's mask. A signal that
/// the host has blocked and that was pending before stays pending. Keeps errno. Header only: libraries
/// without the rest of this component use it.
class HeldSignal {
 public:
  explicit HeldSignal(int signal) noexcept {
    sigemptyset(&only_);
    sigaddset(&only_, signal);
    sigset_t pending;
    sigemptyset(&pending);
    ::sigpending(&pending);
    was_pending_ = sigismember(&pending, signal) == 1;
    ::pthread_sigmask(SIG_BLOCK, &only_, &before_);
  }
  ~HeldSignal() {
    const int error = errno;
    const timespec now{};
    // The kernel sends these signals to the thread, where one waits at most, and takes them before those of
    // the process.
    if (!was_pending_)
      while (::sigtimedwait(&only_, nullptr, &now) < 0 && errno == EINTR) {
      }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  HeldSignal(const HeldSignal&) = delete;
  HeldSignal& operator=(const HeldSignal&) = delete;

 private:
  sigset_t only_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace quern::base
