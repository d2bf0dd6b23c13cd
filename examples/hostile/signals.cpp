// SPDX-License-Identifier: Apache-2.0
// A host may block signals, and have signal stacks and handlers of its own, installed before a session or
// after it: a kernel's fault still becomes an error, the host's faults reach the host, and its settings are
// kept.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <quern/quern.hpp>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

constexpr const char* kSource = R"(
extern "C" __global__ void wild(int* to) { *to = 1; }
extern "C" __global__ void fine(int* to) { to[blockIdx.x * blockDim.x + threadIdx.x] = 5; }
extern "C" __global__ void forever(volatile int* to) { while (to[0] == 0); }
__device__ __noinline__ int deep(int n, volatile int* to) { return n == 0 ? to[0] : deep(n - 1, to) + to[n & 1] * n; }
extern "C" __global__ void overflow(int* to) { *to = deep(1 << 30, to); }
)";

int* const kNowhere = reinterpret_cast<int*>(64);

/// True if the kernel ends with an error of the device's.
template <class... Arguments>
bool faults(const quern::Session& session, const quern::Kernel& kernel, unsigned grid,
            const Arguments&... arguments) {
  try {
    kernel({.grid = grid, .block = 32})(arguments...);
    session.synchronize();
  } catch (const quern::DriverError& error) {
    return error.code() == quern::ErrorCode::device_fault;
  }
  return false;
}

bool works(const quern::Session& session, const quern::Module& module) {
  const quern::DeviceArray<int> array = session.to_device(std::vector<int>(64));
  module.kernel("fine")({.grid = 2, .block = 32})(array);
  return array.copy_to_host() == std::vector<int>(64, 5);
}

/// A kernel's fault, on this thread (one block) and on others.
void check_faults() {
  for (const unsigned grid : {1u, 4096u}) {
    const quern::Session session("cpu");
    const quern::Module module = session.load_cuda(kSource);
    EXPECT(works(session, module));
    EXPECT(faults(session, module.kernel("wild"), grid, kNowhere));
  }
}

void check_overflow() {
  const quern::Session session("cpu");
  const quern::Module module = session.load_cuda(kSource);
  const quern::DeviceArray<int> array = session.to_device(std::vector<int>(64, 1));
  EXPECT(faults(session, module.kernel("overflow"), 1, array));
}

sigset_t mask() {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  return now;
}

bool same(const sigset_t& a, const sigset_t& b) {
  for (int signal = 1; signal < NSIG; ++signal)
    if (sigismember(&a, signal) != sigismember(&b, signal)) return false;
  return true;
}

bool fault_pending() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGSEGV) == 1 || sigismember(&pending, SIGBUS) == 1;
}

/// A server that takes its signals by sigwait() or signalfd() blocks them all.
void check_blocked() {
  sigset_t all, before;
  sigfillset(&all);
  {
    const quern::Session session("cpu");
    const quern::Module module = session.load_cuda(kSource);
    EXPECT(works(session, module));
    pthread_sigmask(SIG_SETMASK, &all, &before);  // later than everything of ours
    const sigset_t blocked = mask();
    EXPECT(faults(session, module.kernel("wild"), 1, kNowhere));
    EXPECT(same(mask(), blocked));
  }
  const sigset_t blocked = mask();
  check_faults();
  check_overflow();
  EXPECT(same(mask(), blocked));
  EXPECT(!fault_pending());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// A fault on one stream ends a kernel that another thread of the host's runs, which blocks all signals.
void check_stopped() {
  const quern::Session session("cpu");
  const quern::Module module = session.load_cuda(kSource);
  const quern::DeviceArray<int> array = session.to_device(std::vector<int>(64));
  const quern::Stream slow = session.stream(), other = session.stream();
  std::atomic<bool> begun = false, told = false, left_pending = false;
  std::thread waiting([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    try {
      module.kernel("forever")({.grid = 1, .block = 32, .stream = slow})(array);
      begun = true;
      slow.synchronize();
    } catch (const quern::DriverError& error) {
      told = error.code() == quern::ErrorCode::device_fault;
    }
    left_pending = fault_pending();
  });
  while (!begun) std::this_thread::yield();
  try {
    module.kernel("wild")({.grid = 1, .block = 32, .stream = other})(kNowhere);
    other.synchronize();
  } catch (const quern::DriverError&) {
  }
  waiting.join();
  EXPECT(told && !left_pending);
}

void check_alternate_stack() {
  stack_t now{}, mine{};
  EXPECT(sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) != 0);  // after all that went before
  static std::vector<char> memory(1 << 16);
  mine.ss_sp = memory.data();
  mine.ss_size = memory.size();
  EXPECT(sigaltstack(&mine, nullptr) == 0);
  check_faults();
  check_overflow();
  EXPECT(sigaltstack(nullptr, &now) == 0 && now.ss_sp == mine.ss_sp && now.ss_size == mine.ss_size &&
         now.ss_flags == 0);
  mine.ss_flags = SS_DISABLE;
  EXPECT(sigaltstack(&mine, nullptr) == 0);
}

// --- handlers

void* page = nullptr;
struct sigaction before_host;
std::atomic<int> mended = 0, passed_on = 0;

/// As garbage collectors have it: a write to a protected page of the host's lets the write happen.
void host_handler(int signal, siginfo_t* info, void* context) {
  if (info->si_addr == page) {
    ++mended;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    return;
  }
  ++passed_on;
  if ((before_host.sa_flags & SA_SIGINFO) != 0) return before_host.sa_sigaction(signal, info, context);
  std::_Exit(3);
}

void touch_protected_page() {
  const int before = mended;
  mprotect(page, 4096, PROT_NONE);
  *static_cast<volatile int*>(page) = 1;
  EXPECT(mended == before + 1);
}

void install_host_handler() {
  struct sigaction action{};
  action.sa_sigaction = &host_handler;
  action.sa_flags = SA_SIGINFO;
  EXPECT(sigaction(SIGSEGV, &action, &before_host) == 0);
}

/// The host's handler under ours: it gets the host's faults and never a kernel's.
void check_handler_before() {
  install_host_handler();
  touch_protected_page();
  check_faults();
  touch_protected_page();
  check_overflow();
  EXPECT(passed_on == 0);
}

/// The host's handler over ours: it forwards signals that are not its own.
void check_handler_after() {
  const quern::Session session("cpu");
  const quern::Module module = session.load_cuda(kSource);
  EXPECT(works(session, module));
  const quern::Kernel wild = module.kernel("wild");
  install_host_handler();
  touch_protected_page();
  EXPECT(faults(session, wild, 1, kNowhere));
  touch_protected_page();
}

/// A crash of the host's own code is still a crash, with the same signal.
void check_own_crash() {
  const pid_t child = fork();
  if (child == 0) {
    *reinterpret_cast<volatile int*>(8) = 1;
    std::_Exit(0);
  }
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/// Signals of the process's do not go to threads of ours: with all others blocking them they stay pending.
void check_signals_of_the_process() {
  static std::atomic<int> taken = 0;
  signal(SIGUSR1, [](int) { ++taken; });
  const quern::Session session("cpu");
  const quern::Module module = session.load_cuda(kSource);
  EXPECT(works(session, module));
  const quern::DeviceArray<int> array = session.to_device(std::vector<int>(4096 * 32));
  module.kernel("fine")({.grid = 4096, .block = 32})(array);
  sigset_t user, before, pending;
  sigemptyset(&user);
  sigaddset(&user, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &user, &before);
  kill(getpid(), SIGUSR1);
  session.synchronize();
  usleep(20000);
  sigpending(&pending);
  EXPECT(taken == 0 && sigismember(&pending, SIGUSR1) == 1);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT(taken == 1);
}

}  // namespace

int main() {
  page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(page != MAP_FAILED);
  check_faults();
  check_own_crash();
  check_blocked();
  check_stopped();
  check_alternate_stack();
  check_signals_of_the_process();
  check_handler_after();
  check_handler_before();
  std::puts("ok");
}
