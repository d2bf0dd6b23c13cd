// SPDX-License-Identifier: Apache-2.0
// Threads that inherit no state from the thread that starts them.
#pragma once

#include <pthread.h>

#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace quern::base {

/// Starts a thread that runs until `main` returns. It computes with the default floating-point environment,
/// and blocks signals sent to the process; those of faulting instructions are not blocked, independent of the
/// caller's mask. Its stack has 8 MiB, independent of `ulimit -s`. Throws std::system_error.
void start_thread(std::function<void()> main);

/// While it lives, pthread_cancel() of this thread waits: cancelling unwinds the stack by an exception that
/// must not be caught, which the gates to C and noexcept functions would do.
class NoCancellation {
 public:
  NoCancellation() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { ::pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = 0;
};

/// secluded() for functions without a result.
void run_secluded(void (*function)(void*), void* argument);

/// Runs work() with at least 4 MiB of stack, which a compiler needs: on this thread, or, if this thread's
/// stack has less left or is unknown (a fiber), on a thread of its own, while this one waits. Either way with
/// the default floating-point environment, and not cancelled meanwhile. Exceptions of `work` are rethrown
/// here. Throws std::system_error if no thread can be started.
template <class Work>
auto secluded(Work&& work) -> decltype(work()) {
  using Result = decltype(work());
  if constexpr (std::is_void_v<Result>) {
    run_secluded([](void* argument) { (*static_cast<std::remove_reference_t<Work>*>(argument))(); }, &work);
  } else {
    struct Call {
      std::remove_reference_t<Work>& work;
      std::optional<Result> result;
    } call{work, {}};
    run_secluded(
        [](void* argument) {
          auto& each = *static_cast<Call*>(argument);
          each.result.emplace(each.work());
        },
        &call);
    return *std::move(call.result);
  }
}

}  // namespace quern::base
