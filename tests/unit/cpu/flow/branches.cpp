// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Icmp;
using ir::Type;
using ir::Value;

/// out[global index] = what; out is the first parameter.
void store_at(IrBuilder& b, Value out, Value index, Value what) {
  const Value wide = b.zext(Type::i64, index);
  b.store(b.add(out, b.shl(wide, 2)), what);
}

TEST_CASE("every thread of every block runs once") {
  TestDevice device;
  for (const Extents block : {Extents{1, 1, 1}, Extents{32, 1, 1}, Extents{33, 1, 1}, Extents{256, 1, 1}, Extents{7, 3, 2}, Extents{1024, 1, 1}}) {
    IrBuilder b;
    const Value out = b.param(Type::i64);
    const Value size = b.mul(b.mul(b.ntid(0), b.ntid(1)), b.ntid(2));
    const Value block_index = b.add(b.ctaid(0), b.mul(b.nctaid(0), b.add(b.ctaid(1), b.mul(b.nctaid(1), b.ctaid(2)))));
    const Value thread = b.add(b.tid(0), b.mul(b.ntid(0), b.add(b.tid(1), b.mul(b.ntid(1), b.tid(2)))));
    const Value index = b.add(b.mul(block_index, size), thread);
    store_at(b, out, index, b.add(b.mul(index, b.i32(3)), b.i32(1)));
    b.ret();
    for (const Specialisation& variant : variants(block)) {
      CAPTURE(name(variant));
      device.clear();
      const std::size_t total = std::size_t{variant.threads()} * 3 * 2 * 2;
      auto memory = device.allocate<std::uint32_t>(total + 64);
      const auto code = compile_ir(b.module(), variant);
      device.chunk = 5;
      CHECK(!device.launch(*code, variant, {3, 2, 2}, Params().add(memory.data())));
      for (std::size_t i = 0; i < total; ++i) REQUIRE(memory[i] == 3 * i + 1);
      for (std::size_t i = total; i < total + 64; ++i) REQUIRE(memory[i] == 0);
    }
  }
}

}  // namespace
}  // namespace quern::cpu::test
