// SPDX-License-Identifier: Apache-2.0
// PTX of kernels with a given number of instructions, of several kinds, which several benchmarks compile.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>

namespace quern::bench {

inline constexpr unsigned kRegisters = 8;  // values that are live at a time

/// Instruction `index` of straight-line code: integer and floating-point operations on few registers.
inline std::string operation(unsigned index) {
  const unsigned to = index % kRegisters, a = (index * 5 + 1) % kRegisters, b = (index * 3 + 2) % kRegisters;
  static constexpr const char* kForms[] = {
      "add.s32 %r{}, %r{}, %r{};",    "fma.rn.f32 %f{0}, %f{1}, %f{2}, %f{0};",
      "xor.b32 %r{}, %r{}, %r{};",    "mul.f32 %f{}, %f{}, %f{};",
      "mul.lo.s32 %r{}, %r{}, %r{};", "add.f32 %f{}, %f{}, %f{};",
      "max.s32 %r{}, %r{}, %r{};",    "sub.f32 %f{}, %f{}, %f{};"};
  return fmt::format(fmt::runtime(kForms[index % std::size(kForms)]), to, a, b) + "\n";
}

inline std::string straight(unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i) text += operation(i);
  return text;
}

/// Ten instructions for each branch on data.
inline std::string branches(unsigned count) {
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
inline std::string loops(unsigned count) {
  std::string text;
  for (unsigned i = 0; i + 10 <= count; i += 10) {
    text += fmt::format("mov.u32 %i, 0;\n$loop{}:\n", i);
    for (unsigned k = 0; k < 6; ++k) text += operation(i + k);
    text += fmt::format("add.u32 %i, %i, 1;\nsetp.lt.u32 %p0, %i, %n;\n@%p0 bra $loop{};\n", i);
  }
  return text;
}

/// Ten instructions for each load and store, at computed addresses.
inline std::string memory(unsigned count) {
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

/// The kernel k(p, n) of such a body. p: 4 bytes an instruction, and 8 KiB; n: how often each loop runs.
inline std::string kernel(const std::string& body) {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n) {\n"
      ".reg .b32 %r<8>;\n.reg .f32 %f<8>;\n.reg .b32 %i;\n.reg .b32 %n;\n.reg .b64 %a;\n.reg .b64 "
      "%base;\n.reg .pred %p<1>;\n"
      "ld.param.u64 %base, [p];\ncvta.to.global.u64 %base, %base;\nld.param.u32 %n, [n];\nmov.u32 %r0, "
      "%tid.x;\n";
  for (unsigned i = 1; i < kRegisters; ++i) text += fmt::format("add.s32 %r{}, %r0, {};\n", i, i);
  for (unsigned i = 0; i < kRegisters; ++i) text += fmt::format("cvt.rn.f32.s32 %f{0}, %r{0};\n", i);
  text += body + "mov.u32 %i, %tid.x;\nmul.wide.u32 %a, %i, 4;\nadd.s64 %a, %base, %a;\n";
  for (unsigned i = 0; i < kRegisters; ++i)
    text +=
        fmt::format("st.global.u32 [%a+{}], %r{};\nst.global.f32 [%a+{}], %f{};\n", 8 * i, i, 8 * i + 4, i);
  return text + "ret;\n}\n";
}

struct Kind {
  const char* name;
  std::string (*body)(unsigned count);
};
inline constexpr Kind kKinds[] = {
    {"straight", straight}, {"branches", branches}, {"loops", loops}, {"memory", memory}};

}  // namespace quern::bench
