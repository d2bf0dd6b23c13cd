// SPDX-License-Identifier: Apache-2.0
// Runs a function on another stack, and leaves it from any call depth: permanently, as after a fault in a
// kernel, or temporarily, as for a block that waits for others. These functions replace swapcontext and
// sigsetjmp without their system calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "quern/expected.hpp"

namespace quern::cpu::engine {

/// The stack pointer of the caller of run_on_stack, above the saved registers. Written by the assembly.
struct SavedStack {
  void* stack_pointer = nullptr;
};

/// The ways in which code leaves the other stack.
enum class StayEnd : int { left = 0, finished = 1, suspended = 2 };

/// Calls function(argument) with the stack pointer at `stack_top` (16-byte aligned). When
/// quern_cpu_leave_stack(saved) or quern_cpu_suspend_stack(saved, here) leaves the function, callee-saved
/// registers and the floating-point control words are as before the call. `function` runs with the default
/// control words and on an aligned stack, whatever the caller's are. It must not throw. Objects alive on its
/// stack when it is left permanently are not destroyed.
extern "C" StayEnd quern_cpu_run_on_stack(SavedStack* saved, void* stack_top, void (*function)(void*),
                                          void* argument);
extern "C" [[noreturn]] void quern_cpu_leave_stack(SavedStack* saved);
/// The same on the caller's stack, with its control words.
extern "C" StayEnd quern_cpu_run_here(SavedStack* saved, void (*function)(void*), void* argument);
/// Suspends the code on this stack. Returns when quern_cpu_resume_stack(saved, here) is called. That function
/// returns when the code next leaves this stack.
extern "C" void quern_cpu_suspend_stack(SavedStack* saved, SavedStack* here);
extern "C" StayEnd quern_cpu_resume_stack(SavedStack* saved, SavedStack* here);

class ValgrindStack;

/// A stack with an inaccessible zone below it, which is larger than any frame. Immutable.
class GuardedStack {
 public:
  // A warp's frame of a recursive function holds 32 lanes; 64 MiB are enough for about ten thousand calls.
  // Untouched pages cost nothing. Smaller sizes are for processes with fewer addresses.
  static constexpr std::size_t kStackBytes[] = {std::size_t{64} << 20, std::size_t{16} << 20,
                                                std::size_t{4} << 20};
  /// The size for a process that may have few addresses.
  static constexpr std::size_t kSmallStackBytes = kStackBytes[1];

  /// Creates a stack of the largest of these sizes that the process can have, and of at most `most_bytes`.
  static Expected<GuardedStack> make(std::size_t most_bytes = kStackBytes[0]);

  void* top() const noexcept { return memory_.get() + kGuardBytes + stack_bytes_; }
  /// True if `address` is in the guard zone: the stack overflowed.
  bool overflowed_at(const void* address) const noexcept;

 private:
  static constexpr std::size_t kGuardBytes = std::size_t{16} << 20;
  GuardedStack(std::byte* base, std::size_t stack_bytes);
  std::size_t stack_bytes_;
  std::shared_ptr<std::byte> memory_;
  std::shared_ptr<const ValgrindStack> note_;
};

}  // namespace quern::cpu::engine
