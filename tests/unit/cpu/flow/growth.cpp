// SPDX-License-Identifier: Apache-2.0
// The amount of LLVM IR for a kernel grows linearly: four times the branches or loops give four times the IR.
#include <doctest/doctest.h>

#include "cpu/compiler/lowering.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::emit {
namespace {

using test::IrBuilder;

/// A kernel's data: its value, and the address to which it is stored.
struct Data {
  IrBuilder& b;
  ir::Value address;
  ir::Value value;
};

ir::Module kernel(unsigned count, void (*part)(Data&, unsigned)) {
  IrBuilder b;
  const ir::Value out = b.param(ir::Type::i64);
  const ir::Value address = b.add(out, b.shl(b.zext(ir::Type::i64, b.global_index()), 2));
  Data data{b, address, b.load(ir::Type::i32, address)};
  for (unsigned i = 0; i < count; ++i) part(data, i);
  b.store(address, data.value);
  b.ret();
  return b.module();
}

/// Lanes diverge by their values, and reconverge.
void branch(Data& data, unsigned number) {
  IrBuilder& b = data.b;
  const auto from = b.here(), arm = b.block(), join = b.block();
  b.cond_br(b.icmp(ir::Icmp::slt, data.value, b.i32(static_cast<int>(number))), arm, join);
  b.at(arm);
  const ir::Value changed = b.mul(b.add(data.value, b.i32(3)), data.value);
  b.br(join);
  b.at(join);
  data.value = b.phi(ir::Type::i32, {{from, data.value}, {arm, changed}});
}

/// Each lane iterates until its own value is small.
void loop(Data& data, unsigned number) {
  IrBuilder& b = data.b;
  const auto from = b.here(), round = b.block(), behind = b.block();
  b.br(round);
  b.at(round);
  const ir::Value value = b.phi(ir::Type::i32);
  const ir::Value next = b.lshr(b.add(value, b.i32(static_cast<int>(number))), 1);
  b.incoming(value, from, data.value);
  b.incoming(value, round, next);
  b.cond_br(b.icmp(ir::Icmp::ugt, next, b.i32(1000)), round, behind);
  b.at(behind);
  data.value = b.phi(ir::Type::i32, {{round, next}});
}

std::size_t size_of(ir::Module module, std::uint8_t opt_level) {
  const Specialisation specialisation{.block = {64, 1, 1}, .isa = Isa::avx2, .opt_level = opt_level};
  const auto text = stage_text(std::move(module), specialisation, Stage::llvm);
  REQUIRE(text);
  return text->size();
}

TEST_CASE("code grows with a kernel's branches and loops, not with the square of them") {
  for (auto* part : {branch, loop})
    for (const std::uint8_t opt_level : {kDebugLevel, kQuickLevel, kGoodLevel}) {
      CAPTURE(part == loop);
      CAPTURE(opt_level);
      const std::size_t some = size_of(kernel(25, part), opt_level);
      const std::size_t many = size_of(kernel(100, part), opt_level);
      CHECK(many < 5 * some);
    }
}

}  // namespace
}  // namespace quern::cpu::emit
