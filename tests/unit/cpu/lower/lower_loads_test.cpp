// SPDX-License-Identifier: Apache-2.0
// Loads go in the order of their addresses.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "support.hpp"

using namespace quern;
using cpu::ir::Op;
using cpu::ir::Type;

namespace {

/// The types of the loads of global memory, in their order: `loads` gives each place its own.
std::vector<Type> order(std::string_view loads, std::string_view before = "") {
  const cpu::ir::Module module = test::lowered(test::kernel_text(R"(
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    add.s32 %r5, %r4, %r2;
    add.s32 %r6, %r4, 7;
    add.s32 %r7, %r4, -7;
    mul.wide.u32 %rd2, %r4, 4;
    mul.wide.u32 %rd3, %r5, 4;
    mul.wide.u32 %rd4, %r6, 4;
    mul.wide.u32 %rd5, %r7, 4;
    mul.wide.u32 %rd6, %r4, 8;
    add.s64 %rd2, %rd1, %rd2;
    add.s64 %rd3, %rd1, %rd3;
    add.s64 %rd4, %rd1, %rd4;
    add.s64 %rd5, %rd1, %rd5;
    add.s64 %rd6, %rd1, %rd6;
)" + std::string(loads) + R"(
    cvt.u64.u32 %rd8, %r8;
    add.s64 %rd9, %rd7, %rd8;
    st.global.u64 [%rd1], %rd9;
    ret;)",
                                                                 before));
  std::vector<Type> types;
  for (const cpu::ir::Block& block : module.functions[0].blocks)
    for (const cpu::ir::Value value : block.insts)
      if (const cpu::ir::Inst& inst = module.functions[0][value]; inst.op == Op::load)
        types.push_back(inst.type);
  return types;
}

const std::vector<Type> kSwapped{Type::i32, Type::i64}, kKept{Type::i64, Type::i32};

}  // namespace

TEST_CASE("the load of a higher address goes behind that of a lower one") {
  // The first load is of 64 bits, the second one of 32.
  CHECK(order("ld.global.u64 %rd7, [%rd1+8]; ld.global.u32 %r8, [%rd1];") == kSwapped);
  CHECK(order("ld.global.u64 %rd7, [%rd1]; ld.global.u32 %r8, [%rd1+8];") == kKept);
  CHECK(order("ld.global.u64 %rd7, [%rd1]; ld.global.u32 %r8, [%rd1+-8];") == kSwapped);
  // x[i + blockDim.x], x[i]
  CHECK(order("ld.global.u64 %rd7, [%rd3]; ld.global.u32 %r8, [%rd2];") == kSwapped);
  CHECK(order("ld.global.u64 %rd7, [%rd2]; ld.global.u32 %r8, [%rd3];") == kKept);
  // x[i + 7], x[i]; x[i], x[i - 7]; x[i + 7], x[i - 7]
  CHECK(order("ld.global.u64 %rd7, [%rd4]; ld.global.u32 %r8, [%rd2];") == kSwapped);
  CHECK(order("ld.global.u64 %rd7, [%rd2]; ld.global.u32 %r8, [%rd5];") == kSwapped);
  CHECK(order("ld.global.u64 %rd7, [%rd5]; ld.global.u32 %r8, [%rd2];") == kKept);
  CHECK(order("ld.global.u64 %rd7, [%rd4]; ld.global.u32 %r8, [%rd5];") == kSwapped);
}

TEST_CASE("loads keep their places where their order is not known, or matters") {
  // x[i] and y[i], where y has elements of another size
  CHECK(order("ld.global.u64 %rd7, [%rd6]; ld.global.u32 %r8, [%rd2];") == kKept);
  CHECK(order("ld.global.u64 %rd7, [%rd1+8]; st.global.u32 [%rd2], %r1; ld.global.u32 %r8, [%rd1];") ==
        kKept);
  CHECK(order("ld.global.u64 %rd7, [%rd1+8]; bar.sync 0; ld.global.u32 %r8, [%rd1];") == kKept);
  CHECK(order("ld.volatile.global.u64 %rd7, [%rd1+8]; ld.global.u32 %r8, [%rd1];") == kKept);
  CHECK(order("ld.global.u64 %rd7, [%rd1+8]; ld.volatile.global.u32 %r8, [%rd1];") == kKept);
  CHECK(order("ld.global.u64 %rd7, [%rd1+8]; ld.relaxed.gpu.global.u32 %r8, [%rd1];") == kKept);
}

TEST_CASE("a load stays behind the computation of its address") {
  CHECK(order("ld.global.u64 %rd7, [%rd1+8]; add.s64 %rd6, %rd1, -8; ld.global.u32 %r8, [%rd6];").size() ==
        2);
  // The address depends on what the first load reads.
  CHECK(order("ld.global.u64 %rd7, [%rd3]; add.s64 %rd6, %rd7, -8; ld.global.u32 %r8, [%rd6];") == kKept);
}

TEST_CASE("loads of different lines keep their places, so that a fault is reported for the first one") {
  const auto with = [](std::string_view line) {
    return order(fmt::format(R"(
    .loc 1 5 1
    ld.global.u64 %rd7, [%rd1+8];
    .loc 1 {} 9
    ld.global.u32 %r8, [%rd1];)",
                             line),
                 ".file 1 \"k.cu\"");
  };
  CHECK(with("5") == kSwapped);
  CHECK(with("6") == kKept);
}
