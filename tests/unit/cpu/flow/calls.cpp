// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Icmp;
using ir::Type;
using ir::Value;

/// fibonacci(n), computed by its definition. Also counts its calls, as a second result.
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

/// store_down(address, n): stores n, n - 1, ... 0 from address + 4 * n on. Returns nothing.
ir::Function store_down(std::uint32_t own_index) {
  IrBuilder b("store_down");
  const auto more = b.block();
  const auto end = b.block();
  const Value address = b.op(ir::Op::arg, Type::i64, {}, 0);
  const Value n = b.op(ir::Op::arg, Type::i32, {}, 1);
  b.store(b.add(address, b.shl(b.zext(Type::i64, n), 2)), n);
  b.cond_br(b.icmp(Icmp::ne, n, b.i32(0)), more, end);
  b.at(more);
  b.op(ir::Op::call, Type::none, {address, b.sub(n, b.i32(1))}, own_index);
  b.br(end);
  b.at(end);
  b.ret();
  ir::Function function = b.finish();
  function.kernel = false;
  function.argument_types = {Type::i64, Type::i32};
  return function;
}

TEST_CASE("a recursive function may have effects and no results") {
  TestDevice device;
  IrBuilder b;
  const Value out = b.param(Type::i64);
  const Value own = b.add(out, b.shl(b.zext(Type::i64, b.tid()), 7));
  b.op(ir::Op::call, Type::none, {own, b.and_(b.tid(), b.i32(31))}, 1);
  b.ret();
  ir::Module module = b.module();
  module.functions.push_back(store_down(1));
  for (const Specialisation& variant : variants({40, 1, 1})) {
    CAPTURE(name(variant));
    device.clear();
    auto memory = device.allocate<std::uint32_t>(40 * 32);
    const auto code = compile_ir(module, variant);
    REQUIRE(!device.launch(*code, variant, {1, 1, 1}, Params().add(memory.data())));
    for (std::uint32_t t = 0; t < 40; ++t)
      for (std::uint32_t i = 0; i < 32; ++i) REQUIRE(memory[t * 32 + i] == (i <= t % 32 ? i : 0));
  }
}

/// sum_down(address of the caller's word, n): the caller's word, plus its own, plus n, plus the result of the
/// next activation. Each activation reads the caller's word through the address that it was given.
ir::Function sum_down(std::uint32_t own_index, std::uint32_t local_bytes) {
  IrBuilder b("sum_down");
  const auto more = b.block();
  const auto last = b.block();
  const auto end = b.block();
  const Value above = b.op(ir::Op::arg, Type::i64, {}, 0);
  const Value n = b.op(ir::Op::arg, Type::i32, {}, 1);
  const Value own = b.op(ir::Op::local_address, Type::i64, {}, 4);
  const Value own_generic = b.op(ir::Op::to_generic, Type::i64, {own});
  b.inst(own_generic).attr.space = ir::Space::local;
  b.store(own, n, ir::Space::local);
  const Value theirs = b.load(Type::i32, above, ir::Space::generic);
  b.cond_br(b.icmp(Icmp::ne, n, b.i32(0)), more, last);
  b.at(more);
  const Value call = b.op(ir::Op::call, Type::none, {own_generic, b.sub(n, b.i32(1))}, own_index);
  const Value below = b.op(ir::Op::extract, Type::i32, {call}, 0);
  const Value kept = b.load(Type::i32, own, ir::Space::local);  // still there
  b.op(ir::Op::set_result, Type::none, {b.add(b.add(theirs, below), b.mul(kept, b.i32(1000)))}, 0);
  b.br(end);
  b.at(last);
  b.op(ir::Op::set_result, Type::none, {theirs}, 0);
  b.br(end);
  b.at(end);
  b.ret();
  ir::Function function = b.finish();
  function.kernel = false;
  function.local_bytes = local_bytes;
  function.argument_types = {Type::i64, Type::i32};
  function.result_types = {Type::i32};
  return function;
}

ir::Module sums(std::uint32_t local_bytes) {
  IrBuilder b;
  const Value out = b.param(Type::i64);
  const Value first = b.op(ir::Op::local_address, Type::i64, {}, 8);
  const Value first_generic = b.op(ir::Op::to_generic, Type::i64, {first});
  b.inst(first_generic).attr.space = ir::Space::local;
  b.store(first, b.i32(7), ir::Space::local);
  const Value call = b.op(ir::Op::call, Type::none, {first_generic, b.and_(b.tid(), b.i32(15))}, 1);
  const Value result = b.op(ir::Op::extract, Type::i32, {call}, 0);
  b.store(b.add(out, b.shl(b.zext(Type::i64, b.tid()), 2)), result);
  b.ret();
  ir::Module module = b.module();
  module.functions[0].local_bytes = 12;
  module.functions.push_back(sum_down(1, local_bytes));
  return module;
}

TEST_CASE("each activation has its own local memory, which those that it calls can read") {
  TestDevice device;
  device.local_bytes = 16 + 16 * 32;
  const ir::Module module = sums(20);
  for (Specialisation variant : variants({70, 1, 1})) {
    for (const bool dispatch : {false, true}) {
      variant.dispatch = dispatch;
      CAPTURE(name(variant));
      CAPTURE(dispatch);
      device.clear();
      auto memory = device.allocate<std::uint32_t>(70);
      const auto code = compile_ir(module, variant);
      REQUIRE(!device.launch(*code, variant, {1, 1, 1}, Params().add(memory.data())));
      for (std::uint32_t t = 0; t < 70; ++t) {
        const std::uint32_t n = t % 16;
        // 7 + n + (n - 1) + ... + 1 through the addresses, and 1000 times n, ..., 1 from the activations' own
        // words.
        REQUIRE(memory[t] == 7 + n * (n + 1) / 2 * 1001);
      }
    }
  }
}

TEST_CASE("an activation for whose local memory there is no room ends the launch as a stack overflow") {
  TestDevice device;
  const ir::Module module = sums(20);
  const Specialisation variant = variants({32, 1, 1})[0];
  const auto code = compile_ir(module, variant);
  auto memory = device.allocate<std::uint32_t>(32);
  device.local_bytes = 16 + 15 * 32 + 16;  // four bytes are missing for the sixteenth activation
  CHECK(device.launch(*code, variant, {1, 1, 1}, Params().add(memory.data())) == ir::Trap::stack_overflow);
  device.local_bytes = 16 + 15 * 32 + 32;
  CHECK(!device.launch(*code, variant, {1, 1, 1}, Params().add(memory.data())));
}

}  // namespace
}  // namespace quern::cpu::test
