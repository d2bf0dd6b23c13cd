// SPDX-License-Identifier: Apache-2.0
// Measures one aspect of growth in a process of its own, and prints rows of numbers separated by tabs, from
// which tools/bench --scale makes the tables. The arguments, and the columns:
//     kernels KIND COUNT: instructions; CPU ms to load and of the first launch; us of a later one; MiB that
//         these added, and at the peak
//     blocks MOST: blocks of the grid, from 1 to MOST; us of a launch
//     arrays MOST: live arrays; CPU us to allocate one; us to launch; CPU us to free one
//     modules MOST: modules; CPU us to load one; ns to find a kernel; us to launch; KiB that each added
//     workers: ms of a kernel that computes; ms of one that waits for memory
//     memory: KiB resident at the start, with the device, with a kernel's code, after all workers have run;
//         threads at the end
#include <fmt/format.h>
#include <quern/quern.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "growth_kernels.hpp"
#include "scale_kernels.hpp"

namespace {

using namespace quern;
using namespace quern::bench;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kThreads = 256;

/// Microseconds that `work` takes.
template <class Work>
double us_of(Work&& work) {
  const Clock::time_point begin = Clock::now();
  work();
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// Milliseconds of processor time of this thread, which compiles: that takes long enough for other programs
/// to be felt. (The clock of the process is coarse while its processor time is limited.)
template <class Work>
double cpu_ms_of(Work&& work) {
  const auto now = [] {
    std::timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
  };
  const double begin = now();
  work();
  return now() - begin;
}

/// The least of `rounds`.
template <class Work>
double best_us(int rounds, Work&& work) {
  double best = 1e30;
  for (int round = 0; round < rounds; ++round) best = std::min(best, us_of(work));
  return best;
}

/// A field of /proc/self/status in KiB: VmRSS, VmHWM.
double kib_of(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field)) return std::strtod(line.c_str() + field.size() + 1, nullptr);
  return 0;
}

void kernels(const Session& session, const bench::Kind& kind, unsigned count) {
  const std::string ptx = bench::kernel(kind.body(count));
  const auto array = session.device_array<std::uint32_t>(std::size_t{count} + 2048);
  session.synchronize();
  const double before = kib_of("VmRSS:");
  std::vector<Module> module;
  const double load = cpu_ms_of([&] { module.push_back(session.load_ptx(ptx)); });
  const Kernel kernel = module.front().kernel("k");
  const auto launch = [&] {
    kernel({.grid = 1, .block = kThreads})(array, 2u);
    session.synchronize();
  };
  const double first = cpu_ms_of(launch);
  const double later = best_us(9, launch);
  fmt::print("{}\t{:.3f}\t{:.3f}\t{:.2f}\t{:.1f}\t{:.1f}\n", count, load, first, later,
             (kib_of("VmRSS:") - before) / 1024, kib_of("VmHWM:") / 1024);
}

void blocks(const Session& session, std::uint64_t most) {
  const Kernel kernel = session.load_ptx(module_of(entry("k", kStore))).kernel("k");
  const auto array = session.device_array<std::uint32_t>(1024 * 32);
  for (std::uint64_t count = 1; count <= most; count *= 10) {
    const auto launch = [&] {
      kernel({.grid = static_cast<std::uint32_t>(count), .block = 32})(array);
      session.synchronize();
    };
    launch();
    fmt::print("{}\t{:.3f}\n", count, best_us(count < 1'000'000 ? 200 : 5, launch));
  }
}

void arrays(const Session& session, std::size_t most) {
  const Kernel kernel = session.load_ptx(module_of(entry("k", kStore))).kernel("k");
  const auto used = session.device_array<std::uint32_t>(1024 * 32);
  const auto launch = [&] {
    kernel({.grid = 1, .block = 32})(used);
    session.synchronize();
  };
  launch();
  for (std::size_t count = 1; count <= most; count *= 10) {
    double made = 1e30, freed = 1e30, launched = 1e30;
    for (int round = 0; round < 5; ++round) {
      std::vector<DeviceArray<float>> live;
      live.reserve(count);
      made = std::min(made, 1e3 * cpu_ms_of([&] {
                              for (std::size_t i = 0; i < count; ++i)
                                live.push_back(session.device_array<float>(256));
                            }));
      launched = std::min(launched, best_us(50, launch));
      freed = std::min(freed, 1e3 * cpu_ms_of([&] {
                                live.clear();
                                session.synchronize();
                              }));
    }
    const auto each = static_cast<double>(count);
    fmt::print("{}\t{:.3f}\t{:.3f}\t{:.3f}\n", count, made / each, launched, freed / each);
  }
}

void modules(const Session& session, std::size_t most) {
  const auto used = session.device_array<std::uint32_t>(1024 * 32);
  std::vector<Module> loaded;
  const auto name_of = [](std::size_t index) { return fmt::format("kernel_{}", index); };
  const double before = kib_of("VmRSS:");
  for (std::size_t count = 1; count <= most; count *= 10) {
    const std::size_t more = count - loaded.size();
    const double load =
        1e3 * cpu_ms_of([&] {
          while (loaded.size() < count)
            loaded.push_back(session.load_ptx(module_of(entry(name_of(loaded.size()), kStore))));
        });
    const double find = best_us(5, [&] {
      for (std::size_t i = 0; i < count; ++i) (void)loaded[i].kernel(name_of(i));
    });
    const double more_kib = kib_of("VmRSS:") - before;
    const Kernel kernel = loaded.front().kernel(name_of(0));
    const auto launch = [&] {
      kernel({.grid = 1, .block = 32})(used);
      session.synchronize();
    };
    launch();
    fmt::print("{}\t{:.3f}\t{:.1f}\t{:.3f}\t{:.2f}\n", count, load / static_cast<double>(more),
               1e3 * find / static_cast<double>(count), best_us(50, launch),
               more_kib / static_cast<double>(count));
  }
}

void workers(const Session& session) {
  const Module module = session.load_ptx(module_of(entry("compute", kCompute) + entry("stream", kStream)));
  constexpr std::size_t kElements = std::size_t{1} << 25;
  const auto array = session.device_array<float>(kElements);
  const auto best_ms = [&](const char* name, std::uint32_t grid) {
    const Kernel kernel = module.kernel(name);
    const auto launch = [&] {
      kernel({.grid = grid, .block = kThreads})(array);
      session.synchronize();
    };
    launch();
    return best_us(9, launch) / 1e3;
  };
  fmt::print("{:.4f}\t{:.4f}\n", best_ms("compute", 1024), best_ms("stream", kElements / kThreads));
}

void memory() {
  const double start = kib_of("VmRSS:");
  const Session session("cpu");
  const auto array = session.device_array<float>(1 << 18);
  session.synchronize();
  const double device = kib_of("VmRSS:");
  const Kernel kernel = session.load_ptx(module_of(entry("compute", kCompute))).kernel("compute");
  kernel({.grid = 1, .block = kThreads})(array);
  session.synchronize();
  const double code = kib_of("VmRSS:");
  for (int round = 0; round < 3; ++round) kernel({.grid = 32768, .block = kThreads})(array);
  session.synchronize();
  const auto tasks = std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  fmt::print("{:.0f}\t{:.0f}\t{:.0f}\t{:.0f}\t{}\n", start, device, code, kib_of("VmRSS:"), tasks);
}

void run(const std::vector<std::string>& words) {
  const std::string& what = words.at(0);
  if (what == "memory") return memory();
  const Session session("cpu");
  if (what == "workers") return workers(session);
  if (what == "kernels") {
    for (const bench::Kind& kind : bench::kKinds)
      if (words.at(1) == kind.name) kernels(session, kind, static_cast<unsigned>(std::stoul(words.at(2))));
    return;
  }
  const std::uint64_t most = std::stoull(words.at(1));
  if (what == "blocks") return blocks(session, most);
  if (what == "arrays") return arrays(session, most);
  if (what == "modules") return modules(session, most);
  throw std::invalid_argument(what);
}

}  // namespace

int main(int count, char** words) {
  ::setenv("QUERN_CACHE", "0", 1);
  try {
    run({words + 1, words + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "scale-bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
