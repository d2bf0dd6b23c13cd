// SPDX-License-Identifier: Apache-2.0
// Measures how the time to load a module grows with its number of kernels: processor time for 2,500 and
// 10,000 kernels, and their ratio divided by 4, which is 1 if the time is linear. NVRTC's own time is
// excluded: it is quadratic.
#include <fmt/format.h>
#include <quern/quern.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "compile/ptx/entries.hpp"

namespace {

using namespace quern;

constexpr std::size_t kFew = 2500, kMany = 4 * kFew;
constexpr int kRepeats = 3;
constexpr double kLimit = 1.5;

double processor_ms() {
  std::timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

std::string kernel_name(std::size_t index) { return fmt::format("generated_kernel_{}", index); }

/// Returns a new text at each call, since the device keeps texts that it has parsed.
std::string ptx_text(std::size_t count) {
  static int calls = 0;
  std::string text = fmt::format(".version 8.0\n.target sm_80\n.address_size 64\n// {}\n", ++calls);
  for (std::size_t i = 0; i < count; ++i)
    text += fmt::format(
        ".visible .entry {}(.param .u64 out, .param .u32 n) {{\n.reg .pred %p;\n.reg .b32 %r<3>;\n"
        ".reg .b64 %a<3>;\nld.param.u64 %a0, [out];\nld.param.u32 %r0, [n];\nmov.u32 %r1, %tid.x;\n"
        "setp.ge.s32 %p, %r1, %r0;\n@%p bra $end{};\nmul.wide.s32 %a1, %r1, 4;\nadd.s64 %a2, %a0, %a1;\n"
        "st.global.u32 [%a2], %r1;\n$end{}:\nret;\n}}\n",
        kernel_name(i), i, i);
  return text;
}

std::string python_text(std::size_t count) {
  std::string text = "from numba import cuda\n";
  for (std::size_t i = 0; i < count; ++i)
    text += fmt::format(
        "@cuda.jit\ndef {}(out, n):\n    i = cuda.grid(1)\n    if i < n:\n        out[i] = i + {}\n",
        kernel_name(i), i);
  return text;
}

std::string cuda_text(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text +=
        fmt::format("namespace generated {{ __global__ void {}(int* out, int n) {{}} }}\n", kernel_name(i));
  return text;
}

void name_kernels(const std::string& source, std::size_t count) {
  std::vector<abi::EntryInfo> entries(count);
  std::vector<compile::LoweredName> expressions;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = kernel_name(i);
    entries[i].lowered_name = fmt::format("_ZN9generated{}{}EPii", name.size(), name);
    entries[i].parameters.resize(2);
    expressions.emplace_back("generated::" + name, entries[i].lowered_name);
  }
  compile::name_entries(entries, expressions, compile::read_kernels(source));
}

/// `prepare` returns the work for that number of kernels.
void row(const char* name, const std::function<std::function<void()>(std::size_t)>& prepare) {
  double few = 1e30, many = 1e30;
  for (int repeat = 0; repeat < kRepeats; ++repeat)
    for (const std::size_t count : {kFew, kMany}) {
      const std::function<void()> work = prepare(count);
      const double start = processor_ms();
      work();
      double& best = count == kFew ? few : many;
      best = std::min(best, processor_ms() - start);
    }
  const double growth = many / few / 4;
  fmt::print("{:<40}{:>10.2f}{:>10.2f}{:>8.2f}{:>8.2f}  {}\n", name, few, many, growth, kLimit,
             growth <= kLimit ? "ok" : "MISSED");
}

}  // namespace

int main() {
  Session session("cpu");
  fmt::print("{:<40}{:>10}{:>10}{:>8}{:>8}\n", "kernels in a module", kFew, kMany, "/4", "limit");
  row("load PTX, ms",
      [&](std::size_t count) { return [&session, text = ptx_text(count)] { session.load_ptx(text); }; });
  row("take every kernel of it, ms", [&](std::size_t count) {
    return [count, module = session.load_ptx(ptx_text(count))] {
      for (std::size_t i = 0; i < count; ++i) module.kernel(kernel_name(i));
    };
  });
  row("name the kernels of CUDA C++, ms",
      [](std::size_t count) { return [count, text = cuda_text(count)] { name_kernels(text, count); }; });
  row("load Kernel Python, ms", [&](std::size_t count) {
    return [&session, text = python_text(count)] { session.load_python(text); };
  });
}
