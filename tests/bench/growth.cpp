// SPDX-License-Identifier: Apache-2.0
// Measures how the CPU device's compile time grows with the kernel: microseconds for each instruction of PTX,
// for kernels of 10 to 5,000 instructions of several kinds. "front" is everything before LLVM: parsing,
// lowering, the checks at load time and the analyses of a launch. "LLVM" is emission, optimisation and
// machine code.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cpu/compiler/compiler.hpp"
#include "cpu/compiler/passes.hpp"
#include "cpu/lower/lower.hpp"
#include "growth_kernels.hpp"
#include "ptx/ptx.hpp"

namespace {

using namespace quern;
using namespace quern::cpu;

using bench::kernel, bench::Kind, bench::kKinds, bench::straight;

template <class T>
T need(Expected<T> value, const char* what) {
  if (value) return std::move(*value);
  std::fprintf(stderr, "growth-bench: %s: %s\n", what, to_string(value.errors()).c_str());
  std::exit(1);
}

void need(const Expected<void>& done, const char* what) {
  if (done) return;
  std::fprintf(stderr, "growth-bench: %s: %s\n", what, to_string(done.errors()).c_str());
  std::exit(1);
}

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

struct Cost {
  double front = 1e30;
  double llvm = 1e30;
};

/// The least of `repeats` times, in microseconds.
Cost measure(const std::string& text, unsigned repeats) {
  Cost cost;
  Specialisation specialisation{.block = {256, 1, 1}};
  specialisation.isa = host_isa();
  for (unsigned round = 0; round < repeats; ++round) {
    auto start = std::chrono::steady_clock::now();
    const ptx::Module module = need(ptx::parse(text), "parse");
    need(inspect(module, "growth.ptx"), "inspect");
    Compilation compilation(module, *need(lower::find_kernel(module, "k", "growth.ptx"), "find"),
                            "growth.ptx", specialisation);
    need(run_passes(compilation, Form::builder, Form::cut), "plan");
    cost.front = std::min(cost.front, since(start));
    start = std::chrono::steady_clock::now();
    need(run_passes(compilation, Form::llvm, Form::image), "compile");
    cost.llvm = std::min(cost.llvm, since(start));
  }
  return cost;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view only = argc > 1 ? argv[1] : "";
  static constexpr unsigned kCounts[] = {10, 100, 1000, 5000};
  std::printf("compile time, us an instruction%13s%10s%10s%10s\n", "10", "100", "1,000", "5,000");
  measure(kernel(straight(10)), 1);  // includes LLVM's initialisation
  for (const Kind& kind : kKinds) {
    if (!only.empty() && only != kind.name) continue;
    Cost costs[std::size(kCounts)];
    for (std::size_t i = 0; i < std::size(kCounts); ++i)
      costs[i] = measure(kernel(kind.body(kCounts[i])), kCounts[i] <= 100 ? 5 : 2);
    for (const bool llvm : {false, true}) {
      std::printf("  %-10s%-32s", kind.name, llvm ? "LLVM" : "front");
      for (std::size_t i = 0; i < std::size(kCounts); ++i)
        std::printf("%10.1f", (llvm ? costs[i].llvm : costs[i].front) / kCounts[i]);
      std::printf("\n");
    }
  }
  return 0;
}
