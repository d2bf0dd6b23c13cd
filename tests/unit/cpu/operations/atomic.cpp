// SPDX-License-Identifier: Apache-2.0
// Compares atomics with the same operations performed one lane after another.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "cpu/emit/operations/context.hpp"
#include "harness.hpp"
#include "narrow.hpp"

namespace quern::cpu::emit::testing {
namespace {

using ir::AtomicOp;
using ir::Op;
using ir::Space;
using ir::Type;

constexpr std::size_t kBytes = 4096;
constexpr std::uint32_t kMasks[] = {0xffffffffu, 0x00000001u, 0x80000000u, 0x5a5a1234u};

struct Memory {
  alignas(64) std::array<std::uint8_t, kBytes> bytes{};
  Surroundings around() {
    Surroundings made;
    made.launch.window_base = reinterpret_cast<std::byte*>(bytes.data());
    made.launch.window_bytes = kBytes;
    made.worker.shared_base = made.launch.window_base;
    return made;
  }
};

std::int64_t number(std::uint64_t value, unsigned width) {
  return static_cast<std::int64_t>(value << (64 - width)) >> (64 - width);
}

std::uint64_t apply_real(AtomicOp op, Type type, std::uint64_t old, std::uint64_t operand) {
  const auto value = [&](std::uint64_t bits) {
    return type == Type::f32 ? f32(bits) : type == Type::f64 ? f64(bits) : narrow_value(type, bits);
  };
  const double a = value(old);
  const double b = value(operand);
  if (op == AtomicOp::fmin) return std::isnan(a) || b < a || (a == b && std::signbit(b)) ? operand : old;
  if (op == AtomicOp::fmax) return std::isnan(a) || b > a || (a == b && !std::signbit(b)) ? operand : old;
  if (type == Type::f32) return bits_of(f32(old) + f32(operand));
  return type == Type::f64 ? bits_of(a + b) : narrow_exact(type, Op::fadd, a, b, 0);
}

std::uint64_t apply(AtomicOp op, Type type, std::uint64_t old, std::uint64_t operand, std::uint64_t second) {
  const unsigned width = ir::bit_size(type);
  const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  switch (op) {
    case AtomicOp::add:
      return (old + operand) & mask;
    case AtomicOp::and_:
      return old & operand;
    case AtomicOp::or_:
      return old | operand;
    case AtomicOp::xor_:
      return old ^ operand;
    case AtomicOp::exch:
      return operand;
    case AtomicOp::cas:
      return old == operand ? second : old;
    case AtomicOp::smin:
      return number(operand, width) < number(old, width) ? operand : old;
    case AtomicOp::smax:
      return number(operand, width) > number(old, width) ? operand : old;
    case AtomicOp::umin:
      return std::min(old, operand);
    case AtomicOp::umax:
      return std::max(old, operand);
    case AtomicOp::inc:
      return old >= operand ? 0 : old + 1;
    case AtomicOp::dec:
      return old == 0 || old > operand ? operand : old - 1;
    default:
      return apply_real(op, type, old, operand);
  }
}

std::uint64_t read(const Memory& memory, std::size_t at, Type type) {
  std::uint64_t value = 0;
  std::memcpy(&value, memory.bytes.data() + at, ir::byte_size(type));
  return value;
}

struct Setting {
  AtomicOp op;
  Type type;
  Space space;
  bool one_address;
  bool unused;
  bool one_operand = false;
  ir::Scope scope = ir::Scope::gpu;
  bool alone = false;
  bool meet = false;  ///< all lanes access one address, which is known only at run time
  /// not 0: each lane accesses the element after that of the lane before it, from this byte on
  std::size_t consecutive_from = 0;
  unsigned gathered_rounds = 0;  ///< not 0: the worker gathers the operations of so many rounds
};

std::uint64_t operand_of(const Setting& setting, std::size_t lane) {
  const bool is_real =
      setting.op == AtomicOp::fadd || setting.op == AtomicOp::fmin || setting.op == AtomicOp::fmax;
  const double value = (static_cast<double>(lane * 7 % 32) - 12) * 0.5;
  if (is_real && setting.type == Type::f32) return bits_of(static_cast<float>(value));
  if (is_real && setting.type == Type::f64) return bits_of(value);
  if (is_real) return round_narrow(setting.type, value);
  if (setting.op == AtomicOp::cas || setting.op == AtomicOp::inc || setting.op == AtomicOp::dec)
    return lane % 5 + 3;
  const unsigned width = ir::bit_size(setting.type);
  return (0x9e3779b97f4a7c15u * (lane + 1)) &
         (width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1);
}

/// True if the operation is gathered: not if the lanes have consecutive addresses and all run.
bool needs_window(const Setting& setting, bool full) { return setting.consecutive_from == 0 || !full; }

std::size_t place_of(const Setting& setting, std::size_t lane) {
  if (setting.one_address || setting.meet) return 64;
  if (setting.consecutive_from != 0) return setting.consecutive_from + lane * ir::byte_size(setting.type);
  return 64 + lane % 6 * 8;  // some lanes have equal addresses
}

analysis::LanePattern pattern_of_address(const Setting& setting) {
  if (setting.one_address) return uniform();
  if (setting.consecutive_from == 0) return {.kind = analysis::LanePatternKind::varying};
  analysis::LaneOffsets offsets{};
  for (std::size_t lane = 0; lane < 32; ++lane)
    offsets[lane] = static_cast<std::int64_t>(lane * ir::byte_size(setting.type));
  return affine(offsets);
}

void check(const Setting& setting) {
  Operation operation{.op = Op::atomic, .type = setting.type};
  operation.attr = {.space = setting.space, .atomic = setting.op, .unused_result = setting.unused};
  operation.attr.scope = setting.scope;
  operation.attr.gathers = setting.gathered_rounds != 0 ? 1 : 0;
  operation.inputs = {
      {Type::i64, pattern_of_address(setting)},
      {setting.type,
       setting.one_operand ? uniform() : analysis::LanePattern{.kind = analysis::LanePatternKind::varying}}};
  if (setting.op == AtomicOp::cas) operation.inputs.push_back({setting.type});
  for (const Isa isa : {isas().front(), isas().back()})
    for (const bool full : {true, false}) {
      const Compiled code = compile(operation, {.isa = isa, .full = full, .alone = setting.alone});
      for (const std::uint32_t mask : kMasks) {
        if (full && mask != 0xffffffffu) continue;
        Memory memory;
        std::vector<Lanes> inputs(operation.inputs.size());
        std::array<std::size_t, 32> places{};
        for (std::size_t lane = 0; lane < 32; ++lane) {
          places[lane] = place_of(setting, lane);
          inputs[0][lane] =
              places[lane] +
              (setting.space == Space::shared ? 0 : reinterpret_cast<std::uint64_t>(memory.bytes.data()));
          inputs[1][lane] = operand_of(setting, setting.one_operand ? 0 : lane);
          if (setting.op == AtomicOp::cas) inputs[2][lane] = lane % 5 + 4;
        }
        const std::uint64_t start = setting.op == AtomicOp::cas ? 3 : 5;
        for (std::size_t at = 0; at < kBytes; at += 8)
          std::memcpy(memory.bytes.data() + at, &start, ir::byte_size(setting.type));
        Memory expected = memory;
        Lanes old{};
        std::vector<Lanes> got;
        Surroundings around = memory.around();
        for (unsigned round = 0; round < std::max(1u, setting.gathered_rounds); ++round) {
          for (std::size_t lane = 0; lane < 32; ++lane) {
            if ((mask >> lane & 1) == 0) continue;
            old[lane] = read(expected, places[lane], setting.type);
            const std::uint64_t next =
                apply(setting.op, setting.type, old[lane], inputs[1][lane], inputs.back()[lane]);
            std::memcpy(expected.bytes.data() + places[lane], &next, ir::byte_size(setting.type));
          }
          got = code.run(inputs, mask, around);
        }
        // The first round opens the window, and the later ones are gathered.
        const unsigned rounds = setting.gathered_rounds;
        if (rounds != 0 && needs_window(setting, full)) CHECK(around.worker.pending[0].hits == rounds - 1);
        apply_all_pending(around.worker);
        bool good = memory.bytes == expected.bytes;
        for (std::size_t lane = 0; lane < 32 && !setting.unused; ++lane)
          good = good && ((mask >> lane & 1) == 0 || got[0][lane] == old[lane]);
        CHECK_MESSAGE(good, "op ", static_cast<int>(setting.op), " ", ir::name(setting.type), " ",
                      name_of(isa), full ? " full" : " masked", setting.one_address ? " one address" : "",
                      setting.alone ? " alone" : "", setting.unused ? " unused" : "",
                      setting.space == Space::shared ? " shared " : " ", mask);
      }
    }
}

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

TEST_CASE("lanes that meet at one place when the kernel runs") {
  for (const AtomicOp op :
       {AtomicOp::add, AtomicOp::xor_, AtomicOp::and_, AtomicOp::umax, AtomicOp::smin, AtomicOp::exch})
    for (const Type type : {Type::i32, Type::i64})
      for (const bool one_operand : {false, true})
        for (const bool unused : {false, true})
          check({op, type, Space::global, false, unused, one_operand, ir::Scope::gpu, false, true});
}

TEST_CASE("lanes with consecutive addresses, aligned to 16 bytes or not") {
  for (const AtomicOp op :
       {AtomicOp::add, AtomicOp::and_, AtomicOp::or_, AtomicOp::xor_, AtomicOp::exch, AtomicOp::cas,
        AtomicOp::smin, AtomicOp::smax, AtomicOp::umin, AtomicOp::umax, AtomicOp::inc, AtomicOp::dec})
    for (const Type type : {Type::i32, Type::i64})
      for (const std::size_t from : {std::size_t{64}, std::size_t{64} + ir::byte_size(type)})
        for (const bool unused : {false, true})
          for (const bool alone : {false, true})
            check({.op = op,
                   .type = type,
                   .space = alone && unused ? Space::shared : Space::global,
                   .unused = unused,
                   .alone = alone,
                   .consecutive_from = from});
  for (const Type type : {Type::f32, Type::f64})
    for (const bool unused : {false, true})
      check({.op = AtomicOp::fadd,
             .type = type,
             .space = Space::global,
             .unused = unused,
             .scope = ir::Scope::sys,
             .consecutive_from = 128});
}

TEST_CASE("compare and swap of lanes that expect one value at one address") {
  for (const Type type : {Type::i32, Type::i64})
    for (const bool unused : {false, true})
      for (const bool alone : {false, true})
        check({.op = AtomicOp::cas,
               .type = type,
               .space = Space::global,
               .one_address = true,
               .unused = unused,
               .one_operand = true,
               .alone = alone});
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

TEST_CASE("gathered updates give the same values as those made one after the other") {
  for (const AtomicOp op : {AtomicOp::add, AtomicOp::and_, AtomicOp::or_, AtomicOp::xor_, AtomicOp::smin,
                            AtomicOp::smax, AtomicOp::umin, AtomicOp::umax})
    for (const Type type : {Type::i32, Type::i64})
      for (const bool one_address : {false, true})
        for (const std::size_t from : {std::size_t{0}, std::size_t{64}}) {
          if (one_address && from != 0) continue;
          check({.op = op,
                 .type = type,
                 .space = Space::global,
                 .one_address = one_address,
                 .unused = true,
                 .consecutive_from = from,
                 .gathered_rounds = 3});
        }
}

TEST_CASE("gathered sums of floats at one address") {
  for (const Type type : {Type::f32, Type::f64})
    check({.op = AtomicOp::fadd,
           .type = type,
           .space = Space::global,
           .one_address = true,
           .unused = true,
           .gathered_rounds = 3});
}

TEST_CASE("accesses after gathered updates see them") {
  struct Case {
    Operation access;
    bool applies;  ///< it accesses the address, or is ordered after all updates
  };
  const auto load = [](std::uint64_t imm, bool all) {
    return Operation{.op = Op::load,
                     .type = Type::i32,
                     .attr = {.space = Space::global, .settles = 1, .settles_all = all},
                     .imm = imm,
                     .inputs = {{Type::i64}}};
  };
  const Operation update{.op = Op::atomic,
                         .type = Type::i32,
                         .attr = {.space = Space::global,
                                  .atomic = AtomicOp::add,
                                  .scope = ir::Scope::gpu,
                                  .unused_result = true,
                                  .gathers = 1},
                         .inputs = {{Type::i64}, {Type::i32}}};
  for (const Isa isa : {isas().front(), isas().back()})
    for (const bool full : {true, false})
      for (const bool one : {true, false})
        for (const auto& [access, applies] :
             {Case{load(0, false), true}, Case{load(8192, false), false}, Case{load(8192, true), true}}) {
          std::vector<std::uint8_t> bytes(3 * kBytes);
          Surroundings around;
          around.launch.window_base = reinterpret_cast<std::byte*>(bytes.data());
          around.launch.window_bytes = bytes.size();
          around.worker.shared_base = around.launch.window_base;
          Lanes addresses{};
          for (std::size_t lane = 0; lane < 32; ++lane)
            addresses[lane] = reinterpret_cast<std::uint64_t>(bytes.data()) + 64 + (one ? 0 : lane * 8);
          Operation loaded = access;
          if (one) loaded.inputs[0].pattern = uniform();
          const Machine machine{.isa = isa, .full = full};
          const Compiled add = compile(update, machine);
          for (int round = 0; round < 3; ++round) add.run({addresses, filled(1)}, 0xffffffffu, around);
          const Lanes got = compile(loaded, machine).run({addresses}, 0xffffffffu, around)[0];
          std::uint32_t now = 0;
          std::memcpy(&now, bytes.data() + 64, 4);
          const std::uint32_t sum = one ? 96 : 3, first = one ? 32 : 1;
          CHECK(now == (applies ? sum : first));
          if (loaded.imm == 0) CHECK(got[0] == sum);
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
