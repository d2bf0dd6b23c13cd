// SPDX-License-Identifier: Apache-2.0
// Conditions under which quern's code may run on a thread of the host.
#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <cfenv>
#include <cstdint>
#include <functional>
#include <future>
#include <stdexcept>
#include <thread>

#include "base/floating_point.hpp"
#include "base/held_signal.hpp"
#include "base/thread.hpp"

namespace quern::base {
namespace {

#if defined(__x86_64__)
std::uint32_t mxcsr() {
  std::uint32_t value = 0;
  asm volatile("stmxcsr %0" : "=m"(value));
  return value;
}
void set_mxcsr(std::uint32_t value) { asm volatile("ldmxcsr %0" : : "m"(value)); }
std::uint16_t control_word() {
  std::uint16_t value = 0;
  asm volatile("fnstcw %0" : "=m"(value));
  return value;
}
void set_control_word(std::uint16_t value) { asm volatile("fldcw %0" : : "m"(value)); }

// Flush to zero, round towards zero, traps (SSE); single precision, round upwards, trap on division by zero
// (x87).
constexpr std::uint32_t kHostMxcsr = 0x8040 | 0x6000 | 0x0800;
constexpr std::uint16_t kHostControlWord = 0x0878 | 0x03;

struct HostState {
  HostState() {
    set_mxcsr(kHostMxcsr);
    set_control_word(kHostControlWord);
  }
  ~HostState() { std::fesetenv(FE_DFL_ENV), set_mxcsr(0x1f80); }
};

TEST_CASE("a floating-point scope has the default state and puts the host's back") {
  const HostState host;
  std::uint32_t inside = 0;
  std::uint16_t inside_word = 0;
  {
    const FloatingPointScope scope;
    inside = mxcsr();
    inside_word = control_word();
  }
  const std::uint32_t after = mxcsr();
  const std::uint16_t after_word = control_word();
  const FloatingPointScope for_doctest;
  CHECK(inside == 0x1f80);
  CHECK(inside_word == 0x37f);
  CHECK((after & ~0x3fu) == kHostMxcsr);
  CHECK(after_word == kHostControlWord);
}

TEST_CASE("a thread of ours takes over neither floating-point state nor signal mask") {
  struct Seen {
    std::uint32_t mxcsr;
    std::uint16_t control_word;
    sigset_t mask;
  };
  std::promise<Seen> promise;
  sigset_t before;
  sigset_t hosts;
  sigemptyset(&hosts);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaddset(&hosts, signal);
  REQUIRE(::pthread_sigmask(SIG_SETMASK, &hosts, &before) == 0);
  {
    const HostState host;
    start_thread([&promise] {
      Seen seen{mxcsr(), control_word(), {}};
      ::pthread_sigmask(SIG_BLOCK, nullptr, &seen.mask);
      promise.set_value(seen);
    });
  }
  const Seen seen = promise.get_future().get();
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, &before, &after);
  CHECK(seen.mxcsr == 0x1f80);
  CHECK(seen.control_word == 0x37f);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    CHECK(sigismember(&seen.mask, signal) == 0);
    CHECK(sigismember(&after, signal) == 1);
  }
  for (const int signal : {SIGUSR1, SIGINT, SIGTERM, SIGALRM, SIGCHLD}) {
    CHECK(sigismember(&seen.mask, signal) == 1);
    CHECK(sigismember(&after, signal) == 0);
  }
}

TEST_CASE("secluded work has the default floating-point state") {
  std::uint32_t inside = 0;
  {
    const HostState host;
    inside = secluded([] { return mxcsr(); });
  }
  CHECK((inside & ~0x3fu) == 0x1f80);
}
#endif

bool is_pending(int signal) {
  sigset_t pending;
  ::sigpending(&pending);
  return sigismember(&pending, signal) == 1;
}

bool is_blocked(int signal) {
  sigset_t mask;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

TEST_CASE("a signal that this thread raises while it is held does not reach the host") {
  {
    const HeldSignal held(SIGXFSZ);
    ::pthread_kill(::pthread_self(), SIGXFSZ);
    CHECK(is_pending(SIGXFSZ));
    errno = EFBIG;
  }
  CHECK(errno == EFBIG);
  CHECK_FALSE(is_pending(SIGXFSZ));
  CHECK_FALSE(is_blocked(SIGXFSZ));
}

TEST_CASE("a signal that the host has blocked stays blocked, and one that was pending stays pending") {
  sigset_t only, before;
  sigemptyset(&only);
  sigaddset(&only, SIGXFSZ);
  REQUIRE(::pthread_sigmask(SIG_BLOCK, &only, &before) == 0);
  const timespec now{};
  for (const bool was_pending : {false, true}) {
    if (was_pending) ::pthread_kill(::pthread_self(), SIGXFSZ);
    {
      const HeldSignal held(SIGXFSZ);
      ::pthread_kill(::pthread_self(), SIGXFSZ);
    }
    CHECK(is_blocked(SIGXFSZ));
    CHECK(is_pending(SIGXFSZ) == was_pending);
    CHECK((::sigtimedwait(&only, nullptr, &now) == SIGXFSZ) == was_pending);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// Runs `body` on a thread with a stack of this size.
void on_stack_of(std::size_t bytes, std::function<void()> body) {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  REQUIRE(::pthread_attr_setstacksize(&attributes, bytes) == 0);
  pthread_t thread{};
  REQUIRE(::pthread_create(
              &thread, &attributes,
              [](void* each) -> void* {
                (*static_cast<std::function<void()>*>(each))();
                return nullptr;
              },
              &body) == 0);
  ::pthread_join(thread, nullptr);
  ::pthread_attr_destroy(&attributes);
}

/// Writes to 3 MiB of stack, page by page.
int use_stack() {
  volatile char bytes[3 << 20];
  for (std::size_t at = 0; at < sizeof bytes; at += 4096) bytes[at] = 1;
  return bytes[4096];
}

TEST_CASE("secluded work has stack enough on a thread that has little") {
  int result = 0;
  std::thread::id caller, worker;
  on_stack_of(std::size_t{64} << 10, [&] {
    caller = std::this_thread::get_id();
    result = secluded([&] {
      worker = std::this_thread::get_id();
      return use_stack();
    });
  });
  CHECK(result == 1);
  CHECK(caller != worker);
}

TEST_CASE("secluded work stays on a thread that has enough stack, also when it is called from itself") {
  const std::thread::id caller = std::this_thread::get_id();
  CHECK(secluded([] { return std::this_thread::get_id(); }) == caller);
  on_stack_of(std::size_t{64} << 10, [] {
    secluded([] {
      const std::thread::id outer = std::this_thread::get_id();
      CHECK(secluded([] { return std::this_thread::get_id(); }) == outer);
    });
  });
}

TEST_CASE("what secluded work throws comes out") {
  const auto fails = [] { secluded([] { throw std::runtime_error("no"); }); };
  CHECK_THROWS_WITH_AS(fails(), "no", std::runtime_error);
  on_stack_of(std::size_t{64} << 10, [&] { CHECK_THROWS_WITH_AS(fails(), "no", std::runtime_error); });
}

}  // namespace
}  // namespace quern::base
