// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/fault.hpp"
#include "cpu/abi/helpers.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/thread_annotations.hpp"
#include "base/thread_value.hpp"
#include "base/uninstrumented.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define QUERN_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define QUERN_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define QUERN_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define QUERN_THREAD_SANITIZER 1
#endif
#endif
#if defined(QUERN_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(QUERN_THREAD_SANITIZER)
#include <dlfcn.h>
#endif

namespace quern::cpu::engine {
namespace {

// initial-exec: the handler may run in any thread at any time. With other TLS models, the first use of a
// thread-local variable allocates memory.
__attribute__((tls_model("initial-exec"))) thread_local KernelRun* current_run = nullptr;

/// A call of survive().
struct Survival {
  SavedStack saved;
  std::span<const Range> memory;
};
__attribute__((tls_model("initial-exec"))) thread_local Survival* current_survival = nullptr;

bool is_survived(const siginfo_t& info) noexcept {
  const Survival* const here = current_survival;
  return here != nullptr && info.si_code > 0 &&
         std::ranges::any_of(here->memory, [&](const Range& range) { return range.contains(info.si_addr); });
}

constexpr std::array kSignals{SIGSEGV, SIGBUS, SIGFPE, SIGILL};
/// Earlier handlers of one signal. If a program replaces quern's handler later, quern's is installed again
/// and the list grows. Entries are written before `count` includes them, and never change.
struct Predecessors {
  static constexpr std::size_t kMax = 16;
  std::array<struct sigaction, kMax> actions;
  std::atomic<std::size_t> count{0};
};
std::array<Predecessors, kSignals.size()> predecessors;
/// The number of earlier handlers that are running, and the frame of the handler that called the last one. If
/// one of them forwards the signal to quern, quern calls the one before it. A handler may also leave by
/// longjmp; then a later signal arrives at or above that frame.
__attribute__((tls_model("initial-exec"))) thread_local std::size_t chain_depth = 0;
__attribute__((tls_model("initial-exec"))) thread_local const void* chain_frame = nullptr;

FaultKind classify(const KernelRun& run, int signal, const siginfo_t& info) noexcept {
  if (run.stack->overflowed_at(info.si_addr)) return FaultKind::stack_overflow;
  if (signal == SIGILL) return FaultKind::illegal_instruction;
  if (signal == SIGFPE) return FaultKind::trap;
  if (signal == SIGSEGV && run.window->is_misaligned_mark(info.si_addr)) return FaultKind::misaligned_address;
  return FaultKind::illegal_address;
}

/// By the error code of a page fault (Intel's manual, volume 3, "Page-Fault Exceptions"). Other exceptions do
/// not tell.
bool is_read(greg_t exception, greg_t error) noexcept {
  constexpr greg_t kPageFault = 14, kWrite = 2;
  return exception == kPageFault && (error & kWrite) == 0;
}

bool is_ours(const KernelRun& run, int signal, const siginfo_t& info, const void* pc) noexcept {
  if (info.si_code <= 0) return false;  // sent by kill() or the like, not caused by an instruction
  const auto text_bytes = static_cast<std::uint64_t>(run.text_end - run.text_begin);
  if (Range{const_cast<std::byte*>(run.text_begin), text_bytes}.contains(pc)) return true;
  if (signal != SIGSEGV && signal != SIGBUS) return false;
  return run.window->reaches(info.si_addr) || run.stack->overflowed_at(info.si_addr);
}

/// Returns the kernel's code address for `pc`: `pc` itself, or, if `pc` is in a helper, the helper's call.
/// Helpers that access the kernel's memory call nothing, and their stack frames contain only numbers and data
/// addresses, so the first code address in the frame is the return address. The byte before it belongs to the
/// call. Not instrumented: it reads frames of other functions, including the gaps that a sanitizer adds.
QUERN_UNINSTRUMENTED const std::byte* kernel_pc(const KernelRun& run, const void* pc,
                                                const void* stack_pointer) noexcept {
  constexpr std::size_t kMaxHelperFrame = 4096;
  const auto text_bytes = static_cast<std::uint64_t>(run.text_end - run.text_begin);
  const Range text{const_cast<std::byte*>(run.text_begin), text_bytes};
  if (text.contains(pc)) return static_cast<const std::byte*>(pc);
  const auto* word = static_cast<const void* const*>(stack_pointer);
  const auto* const end = static_cast<const void* const*>(run.stack->top());
  for (std::size_t i = 0; word < end && i < kMaxHelperFrame / sizeof *word; ++i, ++word)
    if (text.contains(*word)) return static_cast<const std::byte*>(*word) - 1;
  return nullptr;
}

/// request_stop sends this value with the signal, so that the handler recognises it.
int stop_mark = 0;

#if defined(QUERN_THREAD_SANITIZER)
/// The C library's sigaction(). With ThreadSanitizer's, its own handler would run first, which must not
/// interrupt its other code; a stop request may.
int set_action(int signal, const struct sigaction* action, struct sigaction* before) {
  static const auto function = reinterpret_cast<decltype(&::sigaction)>(
      ::dlsym(::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "sigaction"));
  return function(signal, action, before);
}
#else
int set_action(int signal, const struct sigaction* action, struct sigaction* before) {
  return ::sigaction(signal, action, before);
}
#endif

void chain(int signal, siginfo_t* info, void* context) {
  std::size_t index = 0;
  while (kSignals[index] != signal) ++index;
  if (__builtin_frame_address(0) >= chain_frame) chain_depth = 0;
  const Predecessors& before = predecessors[index];
  const std::size_t count = before.count.load(std::memory_order_acquire);
  const struct sigaction& previous = before.actions[count > chain_depth ? count - 1 - chain_depth : 0];
  const bool has_function = (previous.sa_flags & SA_SIGINFO) != 0 ||
                            (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN);
  if (!has_function) {
    // The instruction runs again with the default action; a signal that was sent is sent again.
    set_action(signal, &previous, nullptr);
    if (info->si_code <= 0) ::raise(signal);
    return;
  }
  const void* const outer_frame = std::exchange(chain_frame, __builtin_frame_address(0));
  // returning from the signal handler restores the mask
  ::pthread_sigmask(SIG_BLOCK, &previous.sa_mask, nullptr);
  ++chain_depth;
  if ((previous.sa_flags & SA_SIGINFO) != 0)
    previous.sa_sigaction(signal, info, context);
  else
    previous.sa_handler(signal);
  --chain_depth;
  chain_frame = outer_frame;
}

/// Handles the signals that are no stop requests: faults of kernels, calls of survive(), and the signals of
/// others.
[[gnu::noinline]] void handle_fault(int signal, siginfo_t* info, void* context) {
  KernelRun* run = current_run;
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const void* pc = reinterpret_cast<const void*>(registers[REG_RIP]);
  if (is_survived(*info)) {
    registers[REG_RIP] = reinterpret_cast<greg_t>(&quern_cpu_leave_stack);
    registers[REG_RDI] = reinterpret_cast<greg_t>(&current_survival->saved);
    return;
  }
  if (run == nullptr || !is_ours(*run, signal, *info, pc)) return chain(signal, info, context);
  run->fault.kind = classify(*run, signal, *info);
  run->fault.address = reinterpret_cast<std::uint64_t>(info->si_addr);
  run->fault.was_read = is_read(registers[REG_TRAPNO], registers[REG_ERR]);
  run->fault.pc = kernel_pc(*run, pc, reinterpret_cast<const void*>(registers[REG_RSP]));
  // The return from the handler restores the signal mask and the alternate stack. After that the thread
  // leaves the run.
  registers[REG_RIP] = reinterpret_cast<greg_t>(&quern_cpu_leave_stack);
  registers[REG_RDI] = reinterpret_cast<greg_t>(&run->saved);
}

/// A stop request may interrupt any code, also a sanitizer's, which then holds its locks. So this function is
/// not instrumented, and for such a request it calls nothing; tests/unit/cpu/device/meson.build checks it.
QUERN_UNINSTRUMENTED __attribute__((section("quern_signal_text"))) void handle(int signal, siginfo_t* info,
                                                                               void* context) {
  const bool is_stop_request =
      signal == SIGSEGV && info->si_code == SI_QUEUE && info->si_value.sival_ptr == &stop_mark;
  if (!is_stop_request) return handle_fault(signal, info, context);
  // The signal may arrive late, when the thread runs something else or nothing.
  KernelRun* const run = current_run;
  if (run == nullptr || !__atomic_load_n(&run->stop, __ATOMIC_RELAXED)) return;
  // The run may end in the kernel's own code and in helpers that access its memory: the thread holds no lock
  // there, and no destructor must run.
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* const pc = reinterpret_cast<const std::byte*>(registers[REG_RIP]);
  const TextRange helpers = helper_text();
  const bool may_end =
      (pc >= run->text_begin && pc < run->text_end) || (pc >= helpers.begin && pc < helpers.end);
  if (!may_end) return;
  registers[REG_RIP] = reinterpret_cast<greg_t>(&quern_cpu_leave_stack);
  registers[REG_RDI] = reinterpret_cast<greg_t>(&run->saved);
}

/// Memory for a thread's alternate signal stack, allocated at first use. It lives as long as the thread.
class SignalMemory {
 public:
  SignalMemory()
      : start_(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~SignalMemory() {
    if (start_ != MAP_FAILED) ::munmap(start_, kBytes);
  }
  SignalMemory(const SignalMemory&) = delete;
  SignalMemory& operator=(const SignalMemory&) = delete;

  static constexpr std::size_t kBytes = 65536;
  void* start() const { return start_ == MAP_FAILED ? nullptr : start_; }

 private:
  void* start_;
};

/// Sets an alternate signal stack for a thread that has none, during a run whose stack may overflow. For
/// other runs, the handlers use the run's stack, so the host's threads are not changed.
class SignalStack {
 public:
  explicit SignalStack(const KernelRun& run) {
    stack_t existing{};
    if (!run.may_overflow || ::sigaltstack(nullptr, &existing) != 0 || (existing.ss_flags & SS_DISABLE) == 0)
      return;
    void* const memory = memory_of_thread();
    if (memory == nullptr) return;
    stack_t stack{};
    stack.ss_sp = memory;
    stack.ss_size = SignalMemory::kBytes;
    installed_ = ::sigaltstack(&stack, nullptr) == 0;
  }
  ~SignalStack() {
    if (!installed_) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  /// Null: there is none. Kernels run on the main thread until the process has ended.
  static void* memory_of_thread() noexcept try {
    return base::thread_value<SignalMemory>().start();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }

  bool installed_ = false;
};

#if defined(QUERN_ADDRESS_SANITIZER)
constexpr std::size_t kNearTop = 65536;
/// After a run was left, clears AddressSanitizer's state of its frames.
void forget_frames(const KernelRun& run) {
  __asan_unpoison_memory_region(static_cast<std::byte*>(run.stack->top()) - kNearTop, kNearTop);
}
/// The same for calls on this stack that were left.
void forget_calls() { __asan_handle_no_return(); }
/// Announces a stack switch to AddressSanitizer, which tracks the bounds of the current stack, and the fake
/// frames, which a suspended run needs again.
class FiberNote {
 public:
  explicit FiberNote(KernelRun& run) : run_(run) {
    __sanitizer_start_switch_fiber(&fake_stack_, static_cast<std::byte*>(run.stack->top()) - kNearTop,
                                   kNearTop);
    __sanitizer_finish_switch_fiber(run.fake_stack, &bottom_, &size_);
    run.fake_stack = nullptr;
  }
  ~FiberNote() {
    __sanitizer_start_switch_fiber(suspended ? &run_.fake_stack : nullptr, bottom_, size_);
    __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
  }
  FiberNote(const FiberNote&) = delete;
  FiberNote& operator=(const FiberNote&) = delete;

  bool suspended = false;

 private:
  KernelRun& run_;
  void* fake_stack_ = nullptr;
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
};
#else
void forget_frames(const KernelRun&) noexcept {}
void forget_calls() noexcept {}
struct FiberNote {
  explicit FiberNote(KernelRun&) noexcept {}
  bool suspended = false;
};
#endif

}  // namespace

void install_fault_handlers() {
  static base::Mutex mutex;
  const base::LockGuard lock(mutex);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction current{};
    set_action(kSignals[i], nullptr, &current);
    if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == &handle) continue;
    Predecessors& before = predecessors[i];
    const std::size_t count = before.count.load(std::memory_order_relaxed);
    if (count == 0 || before.actions[count - 1].sa_sigaction != current.sa_sigaction) {
      if (count == Predecessors::kMax) continue;
      before.actions[count] = current;
      before.count.store(count + 1, std::memory_order_release);
    }
    struct sigaction action{};
    action.sa_sigaction = &handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    set_action(kSignals[i], &action, nullptr);
  }
}

FaultSignals::FaultSignals() noexcept {
  sigset_t faults;
  sigemptyset(&faults);
  for (const int signal : kSignals) sigaddset(&faults, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &faults, &hosts_);
  for (const int signal : kSignals) blocked_ = blocked_ || sigismember(&hosts_, signal) == 1;
}

FaultSignals::~FaultSignals() {
  if (!blocked_) return;
  // Consumes a stop signal that came too late, so that it does not reach the host's sigwait().
  sigset_t present;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &present);
  ::pthread_sigmask(SIG_SETMASK, &hosts_, nullptr);
}

namespace {

template <class Enter>
StayEnd stay(KernelRun& run, const Enter& enter) {
  const SignalStack signal_stack(run);
  KernelRun* const outer = current_run;  // a host function that a waiting thread runs may itself wait
  current_run = &run;
  const StayEnd end = [&] {
    FiberNote note(run);
    const StayEnd result = enter();
    note.suspended = result == StayEnd::suspended;
    return result;
  }();
  current_run = outer;
  return end;
}

}  // namespace

/// Handles a run that was suspended and never resumed.
KernelRun::~KernelRun() {
  if (fake_stack != nullptr) const FiberNote ended(*this);
}

bool survive(std::span<const Range> memory, void (*function)(void*), void* argument) noexcept {
  Survival here;
  here.memory = memory;
  Survival* const outer = std::exchange(current_survival, &here);
  const StayEnd end = quern_cpu_run_here(&here.saved, function, argument);
  current_survival = outer;
  if (end == StayEnd::left) forget_calls();
  return end != StayEnd::left;
}

StayEnd run_guarded(KernelRun& run, void (*function)(void*), void* argument) {
  forget_frames(run);
  return stay(run, [&] { return quern_cpu_run_on_stack(&run.saved, run.stack->top(), function, argument); });
}

StayEnd resume_guarded(KernelRun& run) {
  return stay(run, [&] { return quern_cpu_resume_stack(&run.saved, &run.here); });
}

void suspend_run() {
  end_if_stopped();
  KernelRun* run = current_run;
  quern_cpu_suspend_stack(&run->saved, &run->here);
}

void end_if_stopped() {
  KernelRun* run = current_run;
  if (run != nullptr && is_stopped(*run)) quern_cpu_leave_stack(&run->saved);
}

bool is_stopped(const KernelRun& run) noexcept { return __atomic_load_n(&run.stop, __ATOMIC_RELAXED); }

void request_stop(KernelRun& run, pthread_t thread) {
  __atomic_store_n(&run.stop, true, __ATOMIC_RELAXED);
  ::pthread_sigqueue(thread, SIGSEGV, {.sival_ptr = &stop_mark});
}

void note_running_threads(Fault& fault, const WorkerState& worker, std::uint64_t chunk_first,
                          std::uint64_t chunk_count) {
  if (fault.kind == FaultKind::none || worker.blocks_left > chunk_count || worker.blocks_left == 0) return;
  fault.block = chunk_first + (chunk_count - worker.blocks_left);
  if (fault.warp_count != 0 || worker.running_warps == kUnknownWarp) return;
  fault.warp = worker.running_warps & kRunningWarpMask;
  fault.warp_count = std::max(1u, worker.running_warps >> kRunningWarpBits);
}

void raise_fault(const Fault& fault) {
  KernelRun* run = current_run;
  if (run == nullptr) std::abort();  // a device helper was called outside a kernel: this is a defect in quern
  run->fault = fault;
  quern_cpu_leave_stack(&run->saved);
}

}  // namespace quern::cpu::engine
