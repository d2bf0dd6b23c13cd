// SPDX-License-Identifier: Apache-2.0
// Faults of kernels, and how the engine leaves a kernel that faults.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cpu/abi/state.hpp"
#include "cpu/engine/fault_report.hpp"
#include "cpu/engine/stack_switch.hpp"
#include "cpu/engine/window.hpp"

namespace quern::cpu::engine {

enum class FaultKind : std::uint8_t {
  none,
  illegal_address,
  misaligned_address,
  stack_overflow,
  illegal_instruction,
  assertion,
  trap,
  divergent_barrier,
  no_such_barrier,
  barrier_of_part,
  unreachable,
  out_of_memory,   ///< a worker's local memory or frames could not be had
  launch_timeout,  ///< it ran for longer than its limit
  peer_ended,      ///< a stream waited for another process, which ended or failed before
};

struct Fault {
  FaultKind kind = FaultKind::none;
  std::uint64_t address = 0;                   ///< for an address fault, if the processor reports it
  std::uint32_t location = ~std::uint32_t{0};  ///< an index into KernelCode::locations; beyond: not known
  std::uint32_t lane = 0;
  bool knows_lane = false;  ///< the kernel reported the fault itself, or an explanation found the lane
  /// The kernel's instruction that the processor could not run, or its call of a helper; null: none.
  const std::byte* pc = nullptr;
  // Found out by a FaultExplainer.
  AccessKind access = AccessKind::none;
  std::uint32_t access_bytes = 0;
  std::string_view space;
  std::optional<std::uint64_t> kernel_address;  ///< as the kernel computed it
  // The threads that ran, for the report. Filled in when the run has ended (note_running_threads).
  std::uint64_t block = kUnknownIndex;
  std::uint32_t warp = 0;        ///< the first of
  std::uint32_t warp_count = 0;  ///< so many; 0: not known
};

/// One stay in kernel code on this thread. While it is entered, faults of its code end it instead of the
/// process.
struct KernelRun {
  KernelRun() = default;
  ~KernelRun();
  KernelRun(const KernelRun&) = delete;
  KernelRun& operator=(const KernelRun&) = delete;

  SavedStack saved;
  const std::byte* text_begin = nullptr;
  const std::byte* text_end = nullptr;
  const Window* window = nullptr;
  const GuardedStack* stack = nullptr;
  bool may_overflow = false;  ///< the kernel calls functions that may call themselves
  Fault fault;
  SavedStack here;             ///< the point of suspension
  void* fake_stack = nullptr;  ///< AddressSanitizer's state of its frames
  /// Set by another thread to end the run. The run ends when it next yields or calls the host, or when a
  /// signal interrupts it in its own code (request_stop).
  std::atomic<bool> stop{false};
};

/// Installs handlers for SIGSEGV, SIGBUS, SIGFPE and SIGILL, unless they are in place; a repeated call moves
/// them back on top of handlers that the program installed since. They handle a fault only on a thread inside
/// run_guarded(), and only if the program counter lies in the kernel's code, or the address in the window or
/// the stack's guard zone (a helper that the kernel called); all others are forwarded to the previous
/// handler. Thread-safe.
void install_fault_handlers();

/// While an object of this class lives, faults on this thread reach the handlers: a blocked fault would end
/// the process. Needed around runs on threads of the host, which may block any signal at any time. One system
/// call if the host blocks none of them.
class FaultSignals {
 public:
  FaultSignals() noexcept;
  ~FaultSignals();
  FaultSignals(const FaultSignals&) = delete;
  FaultSignals& operator=(const FaultSignals&) = delete;

 private:
  sigset_t hosts_;
  bool blocked_ = false;
};

/// Runs function(argument) on run.stack. left: a fault ended it, run.fault has the details; suspended:
/// resume_guarded continues it, on the same thread. If the run may overflow its stack, the thread has an
/// alternate signal stack meanwhile.
StayEnd run_guarded(KernelRun& run, void (*function)(void*), void* argument);
StayEnd resume_guarded(KernelRun& run);
/// Suspends the current run of this thread, or ends it if it shall stop. No object with a destructor that
/// matters may be alive on its stack.
void suspend_run();
/// The block and the warps that `worker` was in when the fault ended its run.
void note_running_threads(Fault& fault, const WorkerState& worker, std::uint64_t chunk_first,
                          std::uint64_t chunk_count);

/// Ends the current run of this thread if it shall stop.
void end_if_stopped();

/// Requests the thread that is inside `run` to end it. To be called again until the run has ended, since code
/// outside the kernel cannot be interrupted. The caller must ensure that the run is not
/// over.
void request_stop(KernelRun& run, pthread_t thread);

/// Ends the current run of this thread with `fault`. Only from inside run_guarded().
[[noreturn]] void raise_fault(const Fault& fault);

}  // namespace quern::cpu::engine
