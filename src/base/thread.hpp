// SPDX-License-Identifier: Apache-2.0
// Threads of ours, which take over nothing from the thread that happens to start them.
#pragma once

#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace quern::base {

/// Starts a thread that runs until `main` returns. It computes with the default floating-point environment,
/// and blocks signals sent to the process; those of faulting instructions are not blocked, whatever the
/// caller's mask. Its stack has 8 MiB, whatever `ulimit -s`. Throws std::system_error.
void start_thread(std::function<void()> main);

/// secluded() for functions without a result.
void run_secluded(void (*function)(void*), void* argument);

/// Runs work() with at least 4 MiB of stack, which a compiler needs: on this thread, or, if this thread's
/// stack has less left or is unknown (a fiber), on a thread of its own, while this one waits. Either way with
/// the default floating-point environment. Exceptions of `work` are rethrown here. Throws std::system_error
/// if no thread can be started.
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
