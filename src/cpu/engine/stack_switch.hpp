// SPDX-License-Identifier: Apache-2.0
// Runs a function on another stack, and leaves it from any depth: permanently, as after a fault in a kernel,
// or temporarily, as for a block that waits for others. These functions do the work of swapcontext and
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

/// The way in which code left the other stack.
enum class StayEnd : int { left = 0, finished = 1, suspended = 2 };

/// Calls function(argument) with the stack pointer at `stack_top` (16-byte aligned). Where it is left by
/// quern_cpu_leave_stack(saved) or quern_cpu_suspend_stack(saved, here), callee-saved registers and the
/// floating-point control words are as before the call. `function` runs with the default ones and on an
/// aligned stack, independent of the caller's. No exception may come out of `function`, and objects alive on
/// its stack when it is left permanently are not destroyed.
extern "C" StayEnd quern_cpu_run_on_stack(SavedStack* saved, void* stack_top, void (*function)(void*),
                                          void* argument);
extern "C" [[noreturn]] void quern_cpu_leave_stack(SavedStack* saved);
/// Returns when quern_cpu_resume_stack(saved, here) is called, which returns when the run next leaves this
/// stack.
extern "C" void quern_cpu_suspend_stack(SavedStack* saved, SavedStack* here);
extern "C" StayEnd quern_cpu_resume_stack(SavedStack* saved, SavedStack* here);

class ValgrindStack;

/// A stack with an inaccessible zone below it, wide enough that no frame steps over it. Immutable.
class GuardedStack {
 public:
  // A warp's frame of a recursive function holds 32 lanes; 64 MiB take some ten thousand calls. Untouched
  // pages cost nothing. Smaller sizes are for processes with fewer addresses.
  static constexpr std::size_t kStackBytes[] = {std::size_t{64} << 20, std::size_t{16} << 20,
                                                std::size_t{4} << 20};
  /// In a process that may have few addresses.
  static constexpr std::size_t kSmallStackBytes = kStackBytes[1];

  /// Makes a stack of the largest size below that the process may have, and at most `most_bytes`.
  static Expected<GuardedStack> make(std::size_t most_bytes = kStackBytes[0]);

  void* top() const noexcept { return memory_.get() + kGuardBytes + stack_bytes_; }
  /// True if `address` lies in the guard zone: the stack overflowed.
  bool overflowed_at(const void* address) const noexcept;

 private:
  static constexpr std::size_t kGuardBytes = std::size_t{16} << 20;
  GuardedStack(std::byte* base, std::size_t stack_bytes);
  std::size_t stack_bytes_;
  std::shared_ptr<std::byte> memory_;
  std::shared_ptr<const ValgrindStack> note_;
};

}  // namespace quern::cpu::engine
