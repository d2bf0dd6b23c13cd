// SPDX-License-Identifier: Apache-2.0
#include "base/thread.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <system_error>

#include "base/floating_point.hpp"

/// The begin of the main thread's stack, as the loader found it.
extern "C" void* __libc_stack_end;

namespace quern::base {
namespace {

constexpr std::size_t kStackBytes = std::size_t{8} << 20;
/// The stack of compilers. NVRTC takes less than half of it for the deepest nesting that is accepted.
constexpr std::size_t kSecludedStackBytes = std::size_t{16} << 20;
constexpr std::size_t kNeededBytes = std::size_t{4} << 20;

/// Blocks all signals that are sent, so that a new thread begins with them blocked. Those of faulty
/// instructions are unblocked on the new thread; blocked, they would end the process.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &callers_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &callers_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t callers_;
};

void allow_faults() noexcept {
  sigset_t faults;
  sigemptyset(&faults);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigaddset(&faults, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
}

extern "C" void* quern_base_thread_main(void* argument) {
  const std::unique_ptr<std::function<void()>> main(static_cast<std::function<void()>*>(argument));
  allow_faults();
  const FloatingPointScope floating_point;
  (*main)();
  return nullptr;
}

pthread_t start(std::function<void()> main, std::size_t stack_bytes, bool detached) {
  auto owned = std::make_unique<std::function<void()>>(std::move(main));
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, stack_bytes);
  if (detached) ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread{};
  int error = 0;
  {
    const SignalsBlocked blocked;
    error = ::pthread_create(&thread, &attributes, &quern_base_thread_main, owned.get());
  }
  ::pthread_attr_destroy(&attributes);
  if (error != 0) throw std::system_error(error, std::generic_category(), "cannot start a thread");
  static_cast<void>(owned.release());
  return thread;
}

/// The thread's stack; from == to if it is not known.
struct Stack {
  std::uintptr_t from = 0;
  std::uintptr_t to = 0;
};

/// The main thread's, for which pthread_getattr_np() reads /proc/self/maps: a tenth of a millisecond. The
/// kernel keeps 128 MiB and more below it free.
Stack main_stack() noexcept {
  constexpr std::uintptr_t kMostBytes = std::uintptr_t{64} << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0) return {};
  const auto to = reinterpret_cast<std::uintptr_t>(__libc_stack_end);
  return {to - std::min<std::uintptr_t>(limit.rlim_cur, kMostBytes), to};
}

Stack find_stack() noexcept {
  if (::gettid() == ::getpid()) return main_stack();
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return {};
  void* lowest = nullptr;
  std::size_t bytes = 0;
  std::size_t guard_bytes = 0;
  ::pthread_attr_getstack(&attributes, &lowest, &bytes);
  ::pthread_attr_getguardsize(&attributes, &guard_bytes);
  ::pthread_attr_destroy(&attributes);
  const auto from = reinterpret_cast<std::uintptr_t>(lowest);
  return {from + std::min(guard_bytes, bytes), from + bytes};
}

bool has_room() noexcept {
  static thread_local const Stack stack = find_stack();
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return here > stack.from && here < stack.to && here - stack.from >= kNeededBytes;
}

}  // namespace

void start_thread(std::function<void()> main) { start(std::move(main), kStackBytes, true); }

void run_secluded(void (*function)(void*), void* argument) {
  const NoCancellation whole;
  if (has_room()) {
    const FloatingPointScope floating_point;
    return function(argument);
  }
  std::exception_ptr thrown;
  const pthread_t thread = start(
      [&] {
        try {
          function(argument);
        } catch (...) {
          thrown = std::current_exception();
        }
      },
      kSecludedStackBytes, false);
  ::pthread_join(thread, nullptr);
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

}  // namespace quern::base
