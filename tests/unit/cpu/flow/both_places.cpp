// SPDX-License-Identifier: Apache-2.0
// Loads from one of two places of a constant variable.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

#include "cpu/compiler/passes.hpp"
#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Icmp;
using ir::Op;
using ir::Space;
using ir::Type;
using ir::Value;

constexpr std::uint32_t kThreads = 64, kWords = 32;  ///< of the table

enum class Case {
  bit_of_index,
  two_elements,
  elements_elsewhere,  ///< the elements are taken in another block
  comparison,
  chosen_number,
  // The rest stays one load.
  three_places,
  two_bits,        ///< bits of two numbers
  outside,         ///< the second place is outside of the variable
  partly_outside,  ///< only its last byte is
  misaligned,      ///< the variable may be
  writable,
  of_shared
};
constexpr Case kAll[] = {Case::bit_of_index,   Case::two_elements, Case::elements_elsewhere, Case::comparison,
                         Case::chosen_number,  Case::three_places, Case::two_bits,           Case::outside,
                         Case::partly_outside, Case::misaligned,   Case::writable,           Case::of_shared};

bool is_replaced(Case which) { return which < Case::three_places; }
bool has_two_elements(Case which) { return which == Case::two_elements || which == Case::elements_elsewhere; }

/// The byte of the table that a thread reads.
std::uint32_t place(Case which, std::uint32_t thread) {
  const std::uint32_t first = has_two_elements(which) ? 8 : 12, apart = 64;
  switch (which) {
    case Case::comparison:
      return first + (thread < 20 ? apart : 0);
    case Case::chosen_number:
      return first + (thread < 20 ? 36 : 8);
    case Case::three_places:
      return first + (thread & 3) * 32;
    case Case::two_bits:
      return first + (thread & 1) * 64 + ((thread >> 1) & 1) * 32;
    case Case::misaligned:
      return first + (thread & 1) * 64;
    default:
      return first + (thread & 1) * apart;
  }
}

ir::Module read_table(Case which) {
  IrBuilder b;
  const std::uint32_t bytes = which == Case::outside ? 64 : which == Case::partly_outside ? 79 : kWords * 4;
  const bool is_shared = which == Case::of_shared;
  const auto table = b.declare(
      {"table", is_shared ? Space::shared : Space::global, bytes, which == Case::misaligned ? 2u : 8u, 0});
  const auto later = b.block();
  const Value out = b.param(Type::i64), filled = b.param(Type::i64), x = b.tid();
  const Value base = is_shared ? b.i64(0) : b.symbol(table);
  if (is_shared) {
    for (std::uint32_t word = 0; word < kWords; word += 1)
      b.store(b.i64(word * 4), b.load(Type::i32, filled, Space::global, word * 4), Space::shared);
    b.barrier();
  }
  const Value few = b.icmp(Icmp::ult, x, b.i32(20));
  const auto bit = [&](int at) { return b.and_(b.shl(x, at), b.i32(std::int64_t{1} << at)); };
  Value offset = ir::kNone;
  if (which == Case::comparison)
    offset = b.shl(b.zext(Type::i64, few), 6);
  else if (which == Case::chosen_number)
    offset = b.select(few, b.i64(36), b.i64(8));
  else if (which == Case::three_places)
    offset = b.zext(Type::i64, b.shl(b.and_(x, b.i32(3)), 5));
  else if (which == Case::two_bits)
    offset = b.zext(Type::i64, b.add(bit(6), b.shl(b.and_(b.lshr(x, 1), b.i32(1)), 5)));
  else
    offset = b.mul(b.zext(Type::i64, bit(3)), b.i64(8));
  const std::int64_t first = has_two_elements(which) ? 8 : 12;
  const Value load = b.load(Type::i32, b.add(b.add(base, b.i64(4)), offset),
                            is_shared ? Space::shared : Space::global, first - 4);
  b.inst(load).attr.invariant = which != Case::writable && !is_shared;
  Value result = load;
  if (which == Case::elements_elsewhere) {
    b.br(later);
    b.at(later);
  }
  if (has_two_elements(which)) {
    b.inst(load).attr.count = 2;
    b.inst(load).attr.alignment = 8;
    const Value low = b.op(Op::extract, Type::i32, {load}, 0), high = b.op(Op::extract, Type::i32, {load}, 1);
    result = b.add(low, b.mul(high, b.i32(3)));
  }
  b.store(b.add(out, b.shl(b.zext(Type::i64, x), 2)), result);
  if (which != Case::elements_elsewhere) {
    b.br(later);
    b.at(later);
  }
  b.ret();
  ir::Module module = b.module();
  if (is_shared) module.static_shared_bytes = bytes;
  return module;
}

TEST_CASE("two places of a constant variable are both loaded if they lie in it") {
  for (const Case which : kAll) {
    CAPTURE(static_cast<int>(which));
    Specialisation specialisation;
    specialisation.block = {kThreads, 1, 1};
    Compilation compilation(read_table(which), specialisation);
    REQUIRE(run_passes(compilation, Form::checked, Form::cut));
    const ir::Function& function = *compilation.plans[0].function;
    int choices = 0, at_symbol = 0;
    for (const ir::Block& block : function.blocks)
      for (const Value value : block.insts) {
        const ir::Inst& inst = function[value];
        if (inst.op == Op::load && function[inst.args[0]].op == Op::symbol) ++at_symbol;
        if (inst.op == Op::select && inst.type == Type::i32) ++choices;
      }
    CHECK(at_symbol == (is_replaced(which) ? 2 : 0));
    CHECK(choices == (is_replaced(which) ? has_two_elements(which) ? 2 : 1 : 0));
  }
}

TEST_CASE("a choice between two places gives each lane its own") {
  TestDevice device;
  for (const Case which : kAll) {
    CAPTURE(static_cast<int>(which));
    const ir::Module module = read_table(which);
    for (const Specialisation& variant : variants({kThreads, 1, 1})) {
      CAPTURE(name(variant));
      const auto code = compile_ir(module, variant);
      device.clear();
      auto out = device.allocate<std::uint32_t>(kThreads);
      auto table = device.allocate<std::uint32_t>(kWords);
      for (std::uint32_t i = 0; i < kWords; ++i) table[i] = i * 2654435761u;
      device.symbols = {reinterpret_cast<std::uint64_t>(table.data())};
      REQUIRE(!device.launch(*code, variant, {1, 1, 1}, Params().add(out.data()).add(table.data())));
      for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
        CAPTURE(thread);
        const std::uint32_t word = place(which, thread) / 4;
        REQUIRE(out[thread] == table[word] + (has_two_elements(which) ? table[word + 1] * 3 : 0));
      }
    }
  }
}

}  // namespace
}  // namespace quern::cpu::test
