// SPDX-License-Identifier: Apache-2.0
// Measures the time from PTX to the end of the first launch on the CPU device: for small kernels, for
// mathematical functions, for long code, and for debug code. Each kernel gets a process of its own, so that
// its peak of memory is known. Times are those that the process ran (CPU time), since compiling takes long
// enough for other programs of the machine to be felt.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <quern/quern.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sources.hpp"

namespace {

using namespace quern;

constexpr std::uint32_t kThreads = 256;
constexpr std::size_t kBytes = std::size_t{64} * kThreads;  ///< 16 words a thread

struct Case {
  const char* name;
  std::function<std::string()> ptx;  ///< of a kernel k(pointer)
};

std::string from_cuda(const std::string& source, std::vector<std::string> options = {}) {
  CompileRequest request;
  request.source = source;
  request.load.options = std::move(options);
  return compile_source(request).ptx;
}

std::string elementwise(const char* type, const char* expression) {
  return from_cuda(bench::elementwise(type, expression));
}

/// Steps of a hash function without a branch, like those of MD5: six instructions each.
std::string hash_steps(unsigned lines) {
  static constexpr unsigned kTables[] = {0xca, 0xe4, 0x96, 0x39}, kRotations[] = {7, 12, 17, 22, 5, 9, 14};
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
      ".reg .b32 %s<4>, %w<16>, %t<5>, %i;\n.reg .b64 %a, %b;\nld.param.u64 %b, [p];\nmov.u32 %i, %tid.x;\n"
      "cvta.to.global.u64 %b, %b;\nmul.wide.u32 %a, %i, 64;\nadd.s64 %a, %b, %a;\n";
  for (unsigned k = 0; k < 16; ++k) text += fmt::format("ld.global.u32 %w{}, [%a+{}];\n", k, 4 * k);
  for (unsigned k = 0; k < 4; ++k) text += fmt::format("mov.u32 %s{}, {};\n", k, 0x01234567 * (k + 1));
  for (unsigned i = 0; i < lines / 6; ++i) {
    const unsigned a = (0 - i) % 4, b = (a + 1) % 4, c = (a + 2) % 4, d = (a + 3) % 4;
    text += fmt::format("lop3.b32 %t0, %s{}, %s{}, %s{}, {};\nadd.s32 %t1, %s{}, %t0;\n", b, c, d,
                        kTables[i / 16 % 4], a);
    text += fmt::format("add.s32 %t2, %t1, %w{};\nadd.s32 %t3, %t2, {};\n", (i * 5 + 1) % 16,
                        i % 64 * 0x01abcdefu % 0x7fffffffu);
    text += fmt::format("shf.l.wrap.b32 %t4, %t3, %t3, {};\nadd.s32 %s{}, %t4, %s{};\n",
                        kRotations[i % std::size(kRotations)], a, b);
  }
  for (unsigned k = 0; k < 4; ++k) text += fmt::format("st.global.u32 [%a+{}], %s{};\n", 4 * k, k);
  return text + "ret;\n}\n";
}

/// Byte permutations by a number that all threads share, as code uses to read words at any byte.
std::string byte_permutations() {
  return from_cuda(R"(extern "C" __global__ void k(unsigned* y) {
    unsigned* mine = y + 16 * threadIdx.x; unsigned by = y[0] & 3, w[16];
    for (int i = 0; i < 16; ++i) w[i] = mine[i];
    #pragma unroll
    for (int round = 0; round < 16; ++round) {
      #pragma unroll
      for (int i = 0; i < 16; ++i) w[i] += __byte_perm(w[i], w[(i + 1) % 16], 0x3210 + 0x1111 * ((by + round) & 3));
    }
    for (int i = 0; i < 16; ++i) mine[i] = w[i]; })");
}

std::string debug_atomics() {
  return from_cuda(
      R"(#include <cuda/atomic>
    extern "C" __global__ void k(unsigned* p) {
      cuda::atomic_ref<unsigned, cuda::thread_scope_device> a(*p);
      a.fetch_add(1); a.fetch_add(2, cuda::memory_order_relaxed); a.fetch_sub(1, cuda::memory_order_acquire);
      a.fetch_max(3, cuda::memory_order_release); a.fetch_min(1000, cuda::memory_order_acq_rel);
      unsigned expected = a.load(cuda::memory_order_acquire);
      while (!a.compare_exchange_weak(expected, expected + 1, cuda::memory_order_seq_cst)) {} })",
      {"-G"});
}

const Case kCases[] = {
    {"y * 2, f32", [] { return elementwise("float", "x * 2"); }},
    {"sin, f32", [] { return elementwise("float", "sinf(x)"); }},
    {"exp + sin * pow, f64", [] { return elementwise("double", "exp(x) + sin(x) * pow(x, 1.5)"); }},
    {"hash, 500 lines", [] { return hash_steps(500); }},
    {"hash, 5,000 lines", [] { return hash_steps(5'000); }},
    {"hash, 30,000 lines", [] { return hash_steps(30'000); }},
    {"256 byte permutations", byte_permutations},
    {"7 x cuda::atomic_ref, -G", debug_atomics},
};

double cpu_ms() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

double peak_mib() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

/// In a process of its own: prints the row of one case.
void measure(const Case& of) {
  const std::string ptx = of.ptx();
  const Session session("cpu");
  const auto array = session.device_array<std::uint8_t>(kBytes);
  session.synchronize();
  double least_load = 1e30, least_launch = 1e30;
  for (int round = 0; round < 3 && (round == 0 || least_launch < 2'000); ++round) {
    const double start = cpu_ms();
    const Module module = session.load_ptx(ptx + fmt::format("// {}\n", round));
    const double loaded = cpu_ms();
    module.kernel("k")({.grid = 1, .block = kThreads})(array);
    session.synchronize();
    least_load = std::min(least_load, loaded - start);
    least_launch = std::min(least_launch, cpu_ms() - loaded);
  }
  const auto lines = static_cast<double>(std::ranges::count(ptx, '\n'));
  fmt::print("{:<32}{:>8}{:>12.1f}{:>14.1f}{:>12.0f}{:>12.0f}\n", of.name, lines, least_load, least_launch,
             1e3 * (least_load + least_launch) / lines, peak_mib());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view only = argc > 1 ? argv[1] : "";
  ::setenv("QUERN_CPU_WORKERS", "1", 0);
  fmt::print("{:<32}{:>8}{:>12}{:>14}{:>12}{:>12}\n", "compile, CPU time", "lines", "load ms",
             "1st launch ms", "us a line", "peak MiB");
  std::fflush(stdout);
  int failed = 0;
  for (const Case& of : kCases) {
    if (std::string_view(of.name).find(only) == std::string_view::npos) continue;
    const pid_t child = ::fork();
    if (child == 0) {
      measure(of);
      ::_exit(0);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) failed = 1;
  }
  return failed;
}
