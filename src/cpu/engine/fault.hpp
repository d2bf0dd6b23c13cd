// SPDX-License-Identifier: Apache-2.0
// Faults of kernels, and leaving a kernel that faults.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
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
  out_of_memory,   ///< a worker's local memory, frames or a text to print could not be allocated
  launch_timeout,  ///< it exceeded its time limit
  peer_ended,      ///< a stream waited for another process, which ended or failed before
};

struct Fault {
  FaultKind kind = FaultKind::none;
  std::uint64_t address = 0;  ///< for an address fault, if the processor reports it
  bool was_read = false;      ///< the processor says that it was reading
  /// an index into KernelCode::locations; a larger value: not known
  std::uint32_t location = ~std::uint32_t{0};
  std::uint32_t lane = 0;
  bool knows_lane = false;  ///< the kernel reported the fault itself, or an explanation determined the lane
  /// The instruction of the kernel that faulted, or its call of a helper; null: none.
  const std::byte* pc = nullptr;
  // Determined by a FaultExplainer.
  AccessKind access = AccessKind::none;
  std::uint32_t access_bytes = 0;
  std::string_view space;
  std::optional<std::uint64_t> kernel_address;  ///< the address that the kernel computed
  // The threads that were running, for the report. Set by note_running_threads when the run has ended.
  std::uint64_t block = kUnknownIndex;
  std::uint32_t warp = 0;        ///< the first of the warps
  std::uint32_t warp_count = 0;  ///< the number of warps; 0: not known
};

/// An execution of kernel code on this thread. During it, faults of the code end the execution instead of the
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
  SavedStack here;             ///< the stack at which it was suspended
  void* fake_stack = nullptr;  ///< AddressSanitizer's state of its frames
  /// Another thread sets this to end the run. The run ends when it next yields or calls the host, or when a
  /// signal interrupts it in its own code (request_stop). Accessed by atomic built-ins: the signal handler
  /// may call no function.
  bool stop = false;
};

/// Installs handlers for SIGSEGV, SIGBUS, SIGFPE and SIGILL, unless they are installed. A repeated call
/// reinstalls them if the program has installed handlers since. They handle a fault only on a thread inside
/// run_guarded(), and only if the program counter is in the kernel's code, or the address is in the window or
/// in the guard zone of the stack (a fault in a helper that the kernel called). They forward all other faults
/// to the previous handler. Thread-safe.
void install_fault_handlers();

/// While an object of this class lives, faults on this thread reach the handlers: a blocked fault would end
/// the process. Runs on threads of the host need this, since the host may block any signal at any time. Costs
/// one system call if the host blocks none of these signals.
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

/// Calls function(argument), quern's own code that accesses memory which the program may take away meanwhile:
/// `memory`, of which there are at most two. Returns false if it was not there; the call then ended at that
/// access. The function must hold no lock and no object with a destructor. Costs no system call: on a thread
/// that blocks the signals of faults, such an access still ends the process.
bool survive(std::span<const Range> memory, void (*function)(void*), void* argument) noexcept;

/// Runs function(argument) on run.stack. left: a fault ended it, and run.fault has the details. suspended:
/// resume_guarded continues it, on the same thread. If the run may overflow its stack, the thread has an
/// alternate signal stack meanwhile.
StayEnd run_guarded(KernelRun& run, void (*function)(void*), void* argument);
StayEnd resume_guarded(KernelRun& run);
/// Suspends the current run of this thread, or ends it if it must stop. Its stack must contain no object
/// whose destructor must run.
void suspend_run();
/// Stores the block and the warps that `worker` was running when the fault ended its run.
void note_running_threads(Fault& fault, const WorkerState& worker, std::uint64_t chunk_first,
                          std::uint64_t chunk_count);

/// Ends the current run of this thread if it must stop.
void end_if_stopped();

/// Requests that the thread that executes `run` end it. Must be called again until the run has ended, since
/// code outside the kernel cannot be interrupted. The caller must ensure that the run still exists.
void request_stop(KernelRun& run, pthread_t thread);

/// True if the end of the run has been requested.
bool is_stopped(const KernelRun& run) noexcept;

/// Ends the current run of this thread with `fault`. May be called only inside run_guarded().
[[noreturn]] void raise_fault(const Fault& fault);

}  // namespace quern::cpu::engine
