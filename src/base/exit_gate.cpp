// SPDX-License-Identifier: Apache-2.0
#include "base/exit_gate.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/clock.hpp"

namespace quern::base {
namespace {

constexpr std::chrono::milliseconds kPoll{1};
constexpr std::chrono::seconds kLongestWait{10};
constexpr std::chrono::seconds kBeforeRefusal{1};
/// The time from the end of the exiting thread's own objects to our handler.
constexpr std::chrono::nanoseconds kUntilHandlers{std::chrono::milliseconds(50)};
/// Handlers run in the reverse order of their registration. Objects that the library makes when it first
/// needs them, in the first few pieces of work, register theirs then: ours is registered again behind each of
/// these.
constexpr std::uint32_t kMostRegistrations = 16;

/// The passes that this thread holds itself: a compiler may call exit().
thread_local std::uint32_t own_passes = 0;

}  // namespace

void ExitGate::begin_in_this_process() noexcept {
  const int process = ::getpid();
  const int before = process_.exchange(process);
  if (before == process) return;
  if (before != 0) {  // in a forked child; other threads may have begun with what stands at first
    if (inside_.exchange(0) > own_passes) torn_.store(true);
    loading_.store(0);
    closed_.store(false);
  }
  register_handler();
}

bool ExitGate::enter() noexcept {
  begin_in_this_process();
  if (torn_.load()) return false;
  ++inside_;
  if (own_passes != 0 || !closed_.load()) {
    ++own_passes;
    return true;
  }
  --inside_;
  if (::pthread_equal(exiting_.load(), ::pthread_self()) == 0) std::this_thread::sleep_for(kBeforeRefusal);
  return false;
}

void ExitGate::leave() noexcept {
  --own_passes;
  --inside_;
}

/// One object per thread; its destructor runs when the thread ends or calls exit().
class ExitGate::ThreadEnd {
 public:
  explicit ThreadEnd(ExitGate& gate) noexcept : gate_(gate) {}
  ~ThreadEnd() { gate_.wait_for_loading(); }
  ThreadEnd(const ThreadEnd&) = delete;
  ThreadEnd& operator=(const ThreadEnd&) = delete;

 private:
  ExitGate& gate_;
};

void ExitGate::hold_this_thread() noexcept {
  begin_in_this_process();  // a thread that comes to load later than exit() began is refused
  static thread_local ThreadEnd end(*this);
}

void ExitGate::wait_for_loading() noexcept {
  // A forked child has no thread that loads; one that exits in the midst of loading cannot wait for itself.
  if (process_.load() != ::getpid() || own_passes != 0) return;
  thread_ended_ns_.store(now_ns());
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  while (loading_.load() != 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kPoll);
}

/// A thread that has ended may be one that called exit(), which is about to run its handlers: the first
/// loading waits whether ours is among them.
bool ExitGate::begin_loading() noexcept {
  ++loading_;
  while (!loaded_.load() && now_ns() - thread_ended_ns_.load() < kUntilHandlers.count()) {
    if (closed_.load()) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

void ExitGate::register_handler() noexcept {
  if (registrations_.load() < kMostRegistrations && registrations_.fetch_add(1) < kMostRegistrations)
    ::on_exit(&ExitGate::at_exit, this);
}

void ExitGate::at_exit(int status, void* argument) noexcept {
  auto& gate = *static_cast<ExitGate*>(argument);
  if (gate.process_.load() != ::getpid()) return;
  gate.exiting_.store(::pthread_self());
  gate.closed_.store(true);
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  while (gate.inside_.load() > own_passes) {
    if (std::chrono::steady_clock::now() > end) {
      std::fflush(nullptr);
      ::_exit(status);
    }
    std::this_thread::sleep_for(kPoll);
  }
}

Diagnostic rejected(const ExitGate& gate, const std::string& attempted) {
  Diagnostic diagnostic;
  if (gate.is_torn_child()) {
    diagnostic.code = "process-forked";
    diagnostic.message = "cannot " + attempted + ": this process was forked while another thread compiled";
    diagnostic.hint = "fork before threads compile, or start a new process instead";
    return diagnostic;
  }
  diagnostic.code = "process-exit";
  diagnostic.message = "cannot " + attempted + ": the process is exiting";
  diagnostic.hint = "end the threads that compile before exit()";
  return diagnostic;
}

}  // namespace quern::base
