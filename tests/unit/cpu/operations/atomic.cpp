// SPDX-License-Identifier: Apache-2.0
// Compares atomics with the same operations performed one lane after another.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "atomic_check.hpp"
#include "cpu/emit/operations/context.hpp"
#include "narrow.hpp"

namespace quern::cpu::emit::testing {
namespace {

using ir::AtomicOp;
using ir::Op;
using ir::Space;
using ir::Type;

}  // namespace

TEST_CASE("integer atomics take the lanes one after the other, lowest first") {
  for (const AtomicOp op :
       {AtomicOp::add, AtomicOp::and_, AtomicOp::or_, AtomicOp::xor_, AtomicOp::exch, AtomicOp::cas,
        AtomicOp::smin, AtomicOp::smax, AtomicOp::umin, AtomicOp::umax, AtomicOp::inc, AtomicOp::dec})
    for (const Type type : {Type::i32, Type::i64})
      for (const Space space : {Space::global, Space::shared})
        for (const bool one_address : {false, true})
          for (const bool unused : {false, true}) check({op, type, space, one_address, unused});
}

TEST_CASE("an atomic with one operand for all lanes on one address") {
  for (const AtomicOp op : {AtomicOp::add, AtomicOp::xor_, AtomicOp::umax, AtomicOp::smin, AtomicOp::or_})
    for (const Space space : {Space::generic, Space::shared})
      for (const bool unused : {false, true}) check({op, Type::i32, space, true, unused, true});
}

TEST_CASE("atomics without a locked instruction do the same") {
  for (const AtomicOp op :
       {AtomicOp::add, AtomicOp::and_, AtomicOp::or_, AtomicOp::xor_, AtomicOp::exch, AtomicOp::cas,
        AtomicOp::smin, AtomicOp::smax, AtomicOp::umin, AtomicOp::umax, AtomicOp::inc, AtomicOp::dec})
    for (const bool unused : {false, true}) {
      check({op, Type::i32, Space::global, false, unused, false, ir::Scope::gpu, true});
      check({op, Type::i64, Space::generic, true, unused, false, ir::Scope::cta, false});
    }
  for (const bool unused : {false, true})
    for (const Type type : {Type::f16, Type::f32, Type::f64}) {
      check({AtomicOp::fadd, type, Space::global, false, unused, false, ir::Scope::gpu, true});
      check({AtomicOp::fadd, type, Space::global, true, unused, false, ir::Scope::sys, true});
    }
}

// Lane 3 is the first that changes the value, 7, so the lanes behind it fail.
TEST_CASE("compare and swap at one address: the lanes before the first change succeed") {
  const Operation operation{
      .op = Op::atomic,
      .type = Type::i32,
      .attr = {.space = Space::global, .atomic = AtomicOp::cas, .scope = ir::Scope::gpu},
      .inputs = {{Type::i64, uniform()}, {Type::i32}, {Type::i32}}};
  for (const std::uint64_t start : {std::uint64_t{7}, std::uint64_t{8}}) {
    Memory memory;
    std::memcpy(memory.bytes.data() + 64, &start, 4);
    Lanes next = filled(7);
    for (std::size_t lane = 3; lane < 32; ++lane) next[lane] = 100 + lane;
    const Lanes address = filled(reinterpret_cast<std::uint64_t>(memory.bytes.data()) + 64);
    const Lanes old = compile(operation, {.isa = isas().back()})
                          .run({address, filled(7), next}, kMasks[0], memory.around())[0];
    for (std::size_t lane = 0; lane < 32; ++lane)
      CHECK(old[lane] == (start == 8 ? 8u : lane <= 3 ? 7u : 103u));
    CHECK(read(memory, 64, Type::i32) == (start == 8 ? 8u : 103u));
  }
}

TEST_CASE("a locked instruction only where others may be at the place") {
  Operation operation{.op = Op::atomic,
                      .type = Type::i32,
                      .attr = {.space = Space::global, .atomic = AtomicOp::add},
                      .inputs = {{Type::i64}, {Type::i32}}};
  const auto locked = [&](ir::Scope scope, bool alone) {
    operation.attr.scope = scope;
    return assembly(operation, {.isa = isas().back(), .alone = alone}).find("lock") != std::string::npos;
  };
  CHECK(locked(ir::Scope::gpu, false));
  CHECK_FALSE(locked(ir::Scope::gpu, true));
  CHECK(locked(ir::Scope::sys, true));  // the host may access it
  CHECK_FALSE(locked(ir::Scope::cta, false));
}

TEST_CASE("16-bit compare and swap") { check({AtomicOp::cas, Type::i16, Space::global, false, false}); }

TEST_CASE("floating-point atomics of every format") {
  for (const Type type : {Type::f16, Type::bf16, Type::f32, Type::f64})
    for (const AtomicOp op : {AtomicOp::fadd, AtomicOp::fmin, AtomicOp::fmax}) {
      if (op != AtomicOp::fadd && ir::bit_size(type) > 16) continue;  // PTX has no such operation
      for (const Space space : {Space::global, Space::shared})
        for (const bool unused : {false, true}) {
          check({op, type, space, false, unused});
          check({op, type, space, true, unused});
        }
    }
}

TEST_CASE("an atomic sum of 16-bit floats in the middle between two becomes the even one") {
  for (const Type type : {Type::f16, Type::bf16}) {
    const Compiled code = compile({.op = Op::atomic,
                                   .type = type,
                                   .attr = {.space = Space::global, .atomic = AtomicOp::fadd},
                                   .inputs = {{Type::i64}, {type}}},
                                  {.isa = isas().back()});
    // From there on, neighbours are two apart.
    const double first = type == Type::f16 ? 2048 : 256;
    Memory memory;
    Lanes addresses{}, ones{};
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const std::uint64_t before = round_narrow(type, first + 2.0 * static_cast<double>(lane));
      std::memcpy(memory.bytes.data() + 2 * lane, &before, 2);
      addresses[lane] = reinterpret_cast<std::uint64_t>(memory.bytes.data()) + 2 * lane;
      ones[lane] = round_narrow(type, 1);
    }
    code.run({addresses, ones}, 0xffffffffu, memory.around());
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const double even = first + 4.0 * static_cast<double>((lane + 1) / 2);
      CHECK(read(memory, 2 * lane, type) == round_narrow(type, even));
    }
  }
}

TEST_CASE("a reduction of floats adds the lanes in order, then the memory") {
  const Operation operation{.op = Op::atomic,
                            .type = Type::f32,
                            .attr = {.space = Space::global, .atomic = AtomicOp::fadd, .unused_result = true},
                            .inputs = {{Type::i64, uniform()}, {Type::f32}}};
  Lanes values{};
  float sum = -0.0f;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const float value = std::ldexp(1.0f / 3.0f, static_cast<int>(lane * 11 % 32));
    values[lane] = bits_of(value);
    sum += value;
  }
  for (const Isa isa : isas()) {
    Memory memory;
    Lanes address{reinterpret_cast<std::uint64_t>(memory.bytes.data())};
    compile(operation, {.isa = isa}).run({address, values}, 0xffffffffu, memory.around());
    CHECK(read(memory, 0, Type::f32) == bits_of(sum));
  }
}

TEST_CASE("global atomics of several threads lose nothing") {
  const Operation each{.op = Op::atomic,
                       .type = Type::f32,
                       .attr = {.space = Space::global, .atomic = AtomicOp::fadd},
                       .inputs = {{Type::i64}, {Type::f32}}};
  Operation reduced{.op = Op::atomic,
                    .type = Type::i32,
                    .attr = {.space = Space::global, .atomic = AtomicOp::add, .unused_result = true},
                    .inputs = {{Type::i64, uniform()}, {Type::i32}}};
  const Compiled add_floats = compile(each, {.isa = isas().back()});
  const Compiled add_integers = compile(reduced, {.isa = isas().back()});
  Memory memory;
  const auto work = [&] {
    Lanes floats{};
    Lanes integers{};
    Lanes ones{};
    Lanes numbers{};
    for (std::size_t lane = 0; lane < 32; ++lane) {
      floats[lane] = reinterpret_cast<std::uint64_t>(memory.bytes.data());
      integers[lane] = floats[lane] + 8;
      ones[lane] = bits_of(1.0f);
      numbers[lane] = lane;
    }
    for (int round = 0; round < 1000; ++round) {
      add_floats.run({floats, ones}, 0xffffffffu, memory.around());
      add_integers.run({integers, numbers}, 0xffffffffu, memory.around());
    }
  };
  std::thread one(work);
  std::thread two(work);
  one.join();
  two.join();
  CHECK(f32(read(memory, 0, Type::f32)) == 64000.0f);
  CHECK(read(memory, 8, Type::i32) == 2000 * 496);
}

// The mbarrier has 20 bits for the expected count and 20 bits for the pending count; the phase is its last
// bit (lower/async.cpp).
TEST_CASE("several arrivals at a barrier object count as many, and the last one ends its phase") {
  struct Object {
    std::uint64_t pending, expected, phase;
    std::uint64_t bits() const { return phase << 63 | expected << 20 | pending; }
  };
  for (const AtomicOp op : {AtomicOp::arrive, AtomicOp::arrive_drop}) {
    const Compiled code = compile({.op = Op::atomic,
                                   .type = Type::i64,
                                   .attr = {.space = Space::shared, .atomic = op},
                                   .inputs = {{Type::i64}, {Type::i64}}},
                                  {.isa = isas().back(), .full = false});
    for (const std::uint64_t count : {1u, 3u, 5u}) {
      Object object{20, 20, 0};
      Memory memory;
      const std::uint64_t start = object.bits();
      std::memcpy(memory.bytes.data() + 64, &start, 8);
      Lanes old{};
      for (std::size_t lane = 0; lane < 4; ++lane) {
        old[lane] = object.bits();
        object.pending -= count;
        if (op == AtomicOp::arrive_drop) object.expected -= count;
        if (object.pending == 0) object.phase ^= 1, object.pending = object.expected;
      }
      const Lanes got = code.run({filled(64), filled(count)}, 0xfu, memory.around())[0];
      for (std::size_t lane = 0; lane < 4; ++lane) CHECK(got[lane] == old[lane]);
      CHECK(read(memory, 64, Type::i64) == object.bits());
    }
  }
}

// The transaction bytes are in bits 40 to 61 of the object and of the operand.
TEST_CASE("a phase of a barrier object ends when neither arrivals nor bytes are waited for") {
  const Compiled code = compile({.op = Op::atomic,
                                 .type = Type::i64,
                                 .attr = {.space = Space::shared, .atomic = AtomicOp::arrive},
                                 .inputs = {{Type::i64}, {Type::i64}}},
                                {.isa = isas().back(), .full = false});
  const auto bytes = [](std::int64_t count) { return (static_cast<std::uint64_t>(count) & 0x3fffff) << 40; };
  constexpr std::uint64_t kTwo = 2 << 20, kPhase = std::uint64_t{1} << 63;
  struct Step {
    std::uint64_t operand, object;
  };
  const Step steps[] = {{bytes(-16), kTwo | 2 | bytes(-16)},  // before they are expected
                        {1, kTwo | 1 | bytes(-16)},
                        {bytes(48), kTwo | 1 | bytes(32)},
                        {1, kTwo | bytes(32)},
                        {bytes(-31), kTwo | bytes(1)},
                        {bytes(-1), kPhase | kTwo | 2},
                        {bytes(16), kPhase | kTwo | 2 | bytes(16)},
                        {2, kPhase | kTwo | bytes(16)},
                        {bytes(-16), kTwo | 2}};
  Memory memory;
  const std::uint64_t start = kTwo | 2;
  std::memcpy(memory.bytes.data() + 64, &start, 8);
  for (const Step& step : steps) {
    CAPTURE(step.operand);
    code.run({filled(64), filled(step.operand)}, 1u, memory.around());
    CHECK(read(memory, 64, Type::i64) == step.object);
  }
}

TEST_CASE("atomics on spaces without them are refused") {
  ir::Inst inst{.op = Op::atomic, .type = Type::i32};
  for (const Space space : {Space::local, Space::constant, Space::param}) {
    inst.attr.space = space;
    CHECK_FALSE(can_emit(inst));
  }
  inst.attr.space = Space::shared;
  CHECK(can_emit(inst));
  inst.attr.atomic = AtomicOp::fadd;
  CHECK_FALSE(can_emit(inst));  // of integers
}

}  // namespace quern::cpu::emit::testing
