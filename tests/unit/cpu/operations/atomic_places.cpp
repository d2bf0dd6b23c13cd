// SPDX-License-Identifier: Apache-2.0
// Atomics of lanes with related addresses, and gathered ones.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "atomic_check.hpp"

namespace quern::cpu::emit::testing {
namespace {

using ir::AtomicOp;
using ir::Op;
using ir::Space;
using ir::Type;

}  // namespace

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
      for (const bool unused : {false, true})
        for (const bool alone : {false, true})
          check({.op = op,
                 .type = type,
                 .space = alone && unused ? Space::shared : Space::global,
                 .unused = unused,
                 .alone = alone,
                 .consecutive_from = {64, 64 + ir::byte_size(type)}});
  for (const Type type : {Type::f32, Type::f64})
    for (const bool unused : {false, true})
      check({.op = AtomicOp::fadd,
             .type = type,
             .space = Space::global,
             .unused = unused,
             .scope = ir::Scope::sys,
             .consecutive_from = {128}});
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

TEST_CASE("gathered updates give the same values as those made one after the other") {
  for (const AtomicOp op : {AtomicOp::add, AtomicOp::and_, AtomicOp::or_, AtomicOp::xor_, AtomicOp::smin,
                            AtomicOp::smax, AtomicOp::umin, AtomicOp::umax})
    for (const Type type : {Type::i32, Type::i64})
      for (const bool one_address : {false, true})
        for (const auto& from : {std::vector<std::size_t>{}, std::vector<std::size_t>{64}})
          for (const bool same_places : {false, true}) {
            if (one_address && !from.empty()) continue;
            check({.op = op,
                   .type = type,
                   .space = Space::global,
                   .one_address = one_address,
                   .unused = true,
                   .consecutive_from = from,
                   .gathered_rounds = 3,
                   .same_places = same_places});
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

TEST_CASE("neighbours are gathered where the window contains all of them") {
  struct Case {
    std::int64_t from;  ///< of the warp's first byte behind the window's
    bool gathered;
  };
  constexpr std::int64_t kEnd = kBytes, kWarp = 128;
  analysis::LaneOffsets offsets{};
  for (std::size_t lane = 0; lane < 32; ++lane) offsets[lane] = static_cast<std::int64_t>(lane * 4);
  const Operation update{.op = Op::atomic,
                         .type = Type::i32,
                         .attr = {.space = Space::global,
                                  .atomic = AtomicOp::add,
                                  .scope = ir::Scope::gpu,
                                  .unused_result = true,
                                  .gathers = 1,
                                  .same_places = true},
                         .inputs = {{Type::i64, affine(offsets)}, {Type::i32}}};
  for (const Isa isa : {isas().front(), isas().back()}) {
    const Compiled add = compile(update, {.isa = isa, .full = true});
    for (const auto& [from, gathered] :
         {Case{0, true}, Case{kEnd - kWarp, true}, Case{kEnd - kWarp / 2, false}, Case{kEnd, false},
          Case{-kWarp / 2, false}, Case{-kWarp, false}}) {
      CAPTURE(from);
      std::vector<std::uint8_t> bytes(3 * kBytes);
      Surroundings around;
      around.launch.window_base = reinterpret_cast<std::byte*>(bytes.data());
      around.launch.window_bytes = bytes.size();
      around.worker.shared_base = around.launch.window_base + kBytes;  // where the window begins
      const auto run_at = [&](std::int64_t at) {
        Lanes addresses{};
        for (std::size_t lane = 0; lane < 32; ++lane)
          addresses[lane] = reinterpret_cast<std::uint64_t>(bytes.data()) +
                            static_cast<std::uint64_t>(kEnd + at) + lane * 4;
        add.run({addresses, filled(1)}, 0xffffffffu, around);
      };
      const auto are_all = [&](std::uint32_t value) {
        bool same = true;
        for (std::int64_t lane = 0; lane < 32; ++lane) {
          std::uint32_t now = 0;
          std::memcpy(&now, bytes.data() + kEnd + from + lane * 4, 4);
          same = same && now == value;
        }
        return same;
      };
      run_at(1024);  // opens the window
      run_at(from);
      CHECK(are_all(gathered ? 0 : 1));
      apply_all_pending(around.worker);
      CHECK(are_all(1));
    }
  }
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

}  // namespace quern::cpu::emit::testing
