// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Icmp;
using ir::Type;
using ir::Value;

/// fibonacci(n), by definition; also counts its calls, as a second result.
ir::Function fibonacci(std::uint32_t own_index) {
  IrBuilder b("fibonacci");
  const auto small = b.block();
  const auto large = b.block();
  const auto end = b.block();
  const Value n = b.op(ir::Op::arg, Type::i32, {}, 0);
  b.cond_br(b.icmp(Icmp::ult, n, b.i32(2)), small, large);
  b.at(small);
  b.op(ir::Op::set_result, Type::none, {n}, 0);
  b.op(ir::Op::set_result, Type::none, {b.i64(1)}, 1);
  b.br(end);
  b.at(large);
  const Value one = b.op(ir::Op::call, Type::none, {b.sub(n, b.i32(1))}, own_index);
  const Value first = b.op(ir::Op::extract, Type::i32, {one}, 0);
  const Value first_calls = b.op(ir::Op::extract, Type::i64, {one}, 1);
  const Value two = b.op(ir::Op::call, Type::none, {b.sub(n, b.i32(2))}, own_index);
  const Value second = b.op(ir::Op::extract, Type::i32, {two}, 0);
  const Value second_calls = b.op(ir::Op::extract, Type::i64, {two}, 1);
  b.op(ir::Op::set_result, Type::none, {b.add(first, second)}, 0);
  b.op(ir::Op::set_result, Type::none, {b.add(b.add(first_calls, second_calls), b.i64(1))}, 1);
  b.br(end);
  b.at(end);
  b.ret();
  ir::Function function = b.finish();
  function.kernel = false;
  function.argument_types = {Type::i32};
  function.result_types = {Type::i32, Type::i64};
  return function;
}

TEST_CASE("a recursive function runs each lane to its own depth") {
  TestDevice device;
  IrBuilder b;
  const auto some = b.block();
  const auto none = b.block();
  const auto end = b.block();
  const Value out = b.param(Type::i64);
  b.cond_br(b.icmp(Icmp::ne, b.and_(b.tid(), b.i32(3)), b.i32(3)), some, none);
  b.at(some);
  const Value call = b.op(ir::Op::call, Type::none, {b.and_(b.tid(), b.i32(15))}, 1);
  const Value value = b.op(ir::Op::extract, Type::i32, {call}, 0);
  const Value calls = b.op(ir::Op::extract, Type::i64, {call}, 1);
  b.br(end);
  b.at(none);
  const Value zero = b.i32(0);
  const Value wide_zero = b.i64(0);
  b.br(end);
  b.at(end);
  const Value result = b.phi(Type::i32, {{some, value}, {none, zero}});
  const Value count = b.phi(Type::i64, {{some, calls}, {none, wide_zero}});
  const Value at = b.add(out, b.shl(b.zext(Type::i64, b.tid()), 3));
  b.store(at, result);
  b.store(at, b.trunc(Type::i32, count), ir::Space::global, 4);
  b.ret();
  ir::Module module = b.module();
  module.functions.push_back(fibonacci(1));
  for (const Specialisation& variant : variants({70, 1, 1})) {
    CAPTURE(name(variant));
    device.clear();
    auto memory = device.allocate<std::uint32_t>(140);
    const auto code = compile_ir(module, variant);
    REQUIRE(!device.launch(*code, variant, {1, 1, 1}, Params().add(memory.data())));
    constexpr std::uint32_t kValues[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610};
    constexpr std::uint32_t kCalls[] = {1, 1, 3, 5, 9, 15, 25, 41, 67, 109, 177, 287, 465, 753, 1219, 1973};
    for (std::uint32_t t = 0; t < 70; ++t) {
      REQUIRE(memory[2 * t] == (t % 4 == 3 ? 0 : kValues[t % 16]));
      REQUIRE(memory[2 * t + 1] == (t % 4 == 3 ? 0 : kCalls[t % 16]));
    }
  }
}

}  // namespace
}  // namespace quern::cpu::test
