// SPDX-License-Identifier: Apache-2.0
// Kernels so large that the code generator leaves out passes (emit/llvm/machine_code.cpp).
#include <doctest/doctest.h>

#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Type;
using ir::Value;

constexpr unsigned kSteps = 3'600;     // of six operations each
constexpr unsigned kStepsABlock = 60;  // then the lanes diverge

ir::Module xorshifts() {
  IrBuilder b;
  const Value out = b.param(Type::i64);
  const Value address = b.add(out, b.shl(b.zext(Type::i64, b.tid()), 2));
  Value x = b.add(b.tid(), b.i32(1));
  for (unsigned step = 0; step < kSteps; ++step) {
    x = b.xor_(x, b.shl(x, 13));
    x = b.xor_(x, b.lshr(x, 17));
    x = b.xor_(x, b.shl(x, 5));
    if (step % kStepsABlock != 0) continue;
    const auto from = b.here(), arm = b.block(), join = b.block();
    b.cond_br(b.icmp(ir::Icmp::slt, x, b.i32(0)), arm, join);
    b.at(arm);
    const Value changed = b.add(x, b.i32(static_cast<int>(step)));
    b.br(join);
    b.at(join);
    x = b.phi(Type::i32, {{from, x}, {arm, changed}});
  }
  b.store(address, x);
  b.ret();
  return b.module();
}

std::uint32_t expected(std::uint32_t thread) {
  std::uint32_t x = thread + 1;
  for (unsigned step = 0; step < kSteps; ++step) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    if (step % kStepsABlock == 0 && (x >> 31) != 0) x += step;
  }
  return x;
}

TEST_CASE("a kernel of more than 20,000 operations computes as the host does") {
  TestDevice device;
  const Specialisation specialisation{.block = {64, 1, 1}, .isa = host_isa()};
  const auto code = compile_ir(xorshifts(), specialisation);
  auto memory = device.allocate<std::uint32_t>(64);
  REQUIRE(!device.launch(*code, specialisation, {1, 1, 1}, Params().add(memory.data())));
  for (std::uint32_t thread = 0; thread < 64; ++thread) CHECK(memory[thread] == expected(thread));
}

}  // namespace
}  // namespace quern::cpu::test
