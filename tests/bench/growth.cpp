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
#include <functional>
#include <string>
#include <string_view>

#include "cpu/compiler/compiler.hpp"
#include "cpu/compiler/passes.hpp"
#include "cpu/lower/lower.hpp"
#include "ptx/ptx.hpp"

namespace {

using namespace quern;
using namespace quern::cpu;

constexpr unsigned kRegisters = 8;  // values that are live at a time

/// Instruction `index` of straight-line code: integer and floating-point operations on few registers.
std::string operation(unsigned index) {
  const unsigned to = index % kRegisters, a = (index * 5 + 1) % kRegisters, b = (index * 3 + 2) % kRegisters;
  static constexpr const char* kForms[] = {
      "add.s32 %r{}, %r{}, %r{};",    "fma.rn.f32 %f{0}, %f{1}, %f{2}, %f{0};",
      "xor.b32 %r{}, %r{}, %r{};",    "mul.f32 %f{}, %f{}, %f{};",
      "mul.lo.s32 %r{}, %r{}, %r{};", "add.f32 %f{}, %f{}, %f{};",
      "max.s32 %r{}, %r{}, %r{};",    "sub.f32 %f{}, %f{}, %f{};"};
  return fmt::format(fmt::runtime(kForms[index % std::size(kForms)]), to, a, b) + "\n";
}

std::string straight(unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i) text += operation(i);
  return text;
}

/// Ten instructions for each branch on data.
std::string branches(unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i) {
    if (i % 10 == 3)
      text += fmt::format("setp.gt.s32 %p0, %r{}, {};\n", i % kRegisters, i);
    else if (i % 10 == 4)
      text += fmt::format("@%p0 bra $over{};\n", i / 10);
    else
      text += operation(i);
    if (i % 10 == 9) text += fmt::format("$over{}:\n", i / 10);
  }
  if (count % 10 > 4) text += fmt::format("$over{}:\n", count / 10);
  return text;
}

/// Ten instructions for each loop; loops follow one another.
std::string loops(unsigned count) {
  std::string text;
  for (unsigned i = 0; i + 10 <= count; i += 10) {
    text += fmt::format("mov.u32 %i, 0;\n$loop{}:\n", i);
    for (unsigned k = 0; k < 6; ++k) text += operation(i + k);
    text += fmt::format("add.u32 %i, %i, 1;\nsetp.lt.u32 %p0, %i, %n;\n@%p0 bra $loop{};\n", i);
  }
  return text;
}

/// Ten instructions for each load and store, at computed addresses.
std::string memory(unsigned count) {
  std::string text;
  for (unsigned i = 0; i + 10 <= count; i += 10) {
    text += fmt::format("and.b32 %i, %r{}, 1023;\nmul.wide.u32 %a, %i, 4;\nadd.s64 %a, %base, %a;\n",
                        i / 10 % kRegisters);
    text += fmt::format("ld.global.u32 %r{}, [%a+{}];\n", i / 10 % kRegisters, 4 * i);
    for (unsigned k = 0; k < 5; ++k) text += operation(i + k);
    text += fmt::format("st.global.u32 [%a+{}], %r{};\n", 4 * i, (i / 10 + 3) % kRegisters);
  }
  return text;
}

std::string kernel(const std::string& body) {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n) {\n"
      ".reg .b32 %r<8>;\n.reg .f32 %f<8>;\n.reg .b32 %i;\n.reg .b32 %n;\n.reg .b64 %a;\n.reg .b64 "
      "%base;\n.reg .pred %p<1>;\n"
      "ld.param.u64 %base, [p];\ncvta.to.global.u64 %base, %base;\nld.param.u32 %n, [n];\nmov.u32 %r0, "
      "%tid.x;\n";
  for (unsigned i = 1; i < kRegisters; ++i) text += fmt::format("add.s32 %r{}, %r0, {};\n", i, i);
  for (unsigned i = 0; i < kRegisters; ++i) text += fmt::format("cvt.rn.f32.s32 %f{0}, %r{0};\n", i);
  text += body + "mul.wide.u32 %a, %r0, 4;\nadd.s64 %a, %base, %a;\n";
  for (unsigned i = 0; i < kRegisters; ++i)
    text +=
        fmt::format("st.global.u32 [%a+{}], %r{};\nst.global.f32 [%a+{}], %f{};\n", 8 * i, i, 8 * i + 4, i);
  return text + "ret;\n}\n";
}

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
  struct Kind {
    const char* name;
    std::string (*body)(unsigned);
  };
  static constexpr Kind kKinds[] = {
      {"straight", straight}, {"branches", branches}, {"loops", loops}, {"memory", memory}};
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
