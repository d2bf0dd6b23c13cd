// SPDX-License-Identifier: Apache-2.0
// Counts the locks that launches take, on as many workers as QUERN_CPU_WORKERS says: this program's own
// pthread_mutex_lock and pthread_cond_signal stand before the C library's for all libraries of the process.
// Prints rows separated by tabs: what is launched, its launches, and for each of them us, locks, locks that
// were taken already, locks of the mutex that is locked most, threads woken, context switches.
#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>
#include <quern/quern.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "scale_kernels.hpp"

namespace {

using namespace quern;

std::atomic<bool> counting{false};
std::atomic<std::uint64_t> locks{0}, taken{0}, woken{0};
std::array<std::atomic<std::uint64_t>, 4096> by_mutex;  // by address; two may share one, which is rare

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::uint64_t context_switches() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<std::uint64_t>(used.ru_nvcsw + used.ru_nivcsw);
}

template <class Work>
void row(const char* what, int launches, Work&& work) {
  work();
  locks = taken = woken = 0;
  for (auto& count : by_mutex) count = 0;
  const std::uint64_t switches = context_switches();
  const auto begin = std::chrono::steady_clock::now();
  counting = true;
  work();
  counting = false;
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  const auto each = [&](std::uint64_t count) { return static_cast<double>(count) / launches; };
  std::uint64_t most = 0;
  for (const auto& count : by_mutex) most = std::max(most, count.load());
  fmt::print("{}\t{}\t{:.2f}\t{:.2f}\t{:.3f}\t{:.2f}\t{:.2f}\t{:.2f}\n", what, launches,
             took.count() / launches, each(locks), each(taken), each(most), each(woken),
             each(context_switches() - switches));
}

}  // namespace

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto lock = next<int(pthread_mutex_t*)>("pthread_mutex_lock");
  static const auto try_lock = next<int(pthread_mutex_t*)>("pthread_mutex_trylock");
  if (!counting.load(std::memory_order_relaxed)) return lock(mutex);
  locks.fetch_add(1, std::memory_order_relaxed);
  by_mutex[reinterpret_cast<std::uintptr_t>(mutex) / 8 % by_mutex.size()].fetch_add(
      1, std::memory_order_relaxed);
  if (try_lock(mutex) == 0) return 0;
  taken.fetch_add(1, std::memory_order_relaxed);
  return lock(mutex);
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  static const auto signal = next<int(pthread_cond_t*)>("pthread_cond_signal");
  if (counting.load(std::memory_order_relaxed)) woken.fetch_add(1, std::memory_order_relaxed);
  return signal(condition);
}
}

int main() {
  const Session session("cpu");
  const Module module = session.load_ptx(
      bench::module_of(bench::entry("small", bench::kStore) + bench::entry("long", bench::kCompute)));
  const auto array = session.device_array<float>(1 << 18);
  const auto launch = [&](const char* name, std::uint32_t grid, int count, bool wait_for_each) {
    const Kernel kernel = module.kernel(name);
    return [=, &session, &array] {
      for (int i = 0; i < count; ++i) {
        kernel({.grid = grid, .block = 256})(array);
        if (wait_for_each) session.synchronize();
      }
      session.synchronize();
    };
  };
  row("1 block, waited for", 1000, launch("small", 1, 1000, true));
  row("1 block, back to back", 1000, launch("small", 1, 1000, false));
  row("65,536 short blocks", 50, launch("small", 65536, 50, true));
  row("1,024 long blocks", 10, launch("long", 1024, 10, true));
}
