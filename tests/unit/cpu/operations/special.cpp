// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstring>
#include <numeric>

#include "cpu/emit/operations/context.hpp"
#include "harness.hpp"

namespace quern::cpu::emit::testing {
namespace {

using ir::Op;
using ir::Space;
using ir::Special;
using ir::Type;

std::uint64_t imm(Special which) { return static_cast<std::uint64_t>(which); }

}  // namespace

TEST_CASE("thread indices count x fastest in blocks of every shape") {
  const std::vector<std::array<std::uint32_t, 3>> blocks = {{32, 1, 1}, {256, 1, 1}, {16, 16, 1},
                                                            {8, 8, 4},  {10, 7, 3},  {1, 64, 1},
                                                            {1, 1, 64}, {5, 1, 9},   {33, 2, 1}};
  for (const auto& block : blocks)
    for (unsigned dimension = 0; dimension < 3; ++dimension) {
      const auto which = static_cast<Special>(imm(Special::tid_x) + dimension);
      const Compiled vector =
          compile({.op = Op::special, .imm = imm(which)}, {.isa = isas().back(), .block = block});
      const Compiled scalar = compile({.op = Op::special, .imm = imm(which), .result = affine({})},
                                      {.isa = isas().back(), .block = block});
      const unsigned threads = block[0] * block[1] * block[2];
      for (unsigned warp = 0; warp * 32 < threads; ++warp) {
        Surroundings around;
        around.warp = warp;
        const Lanes got = vector.run({}, 0xffffffffu, around)[0];
        for (unsigned lane = 0; lane < 32 && warp * 32 + lane < threads; ++lane) {
          const unsigned thread = warp * 32 + lane;
          const unsigned expected[] = {thread % block[0], thread / block[0] % block[1],
                                       thread / block[0] / block[1]};
          CHECK(got[lane] == expected[dimension]);
          if (lane == 0) CHECK(scalar.run({}, 0xffffffffu, around)[0][0] == expected[dimension]);
        }
      }
    }
}

TEST_CASE("lane masks and the lane's number") {
  const auto get = [](Special which) {
    return compile({.op = Op::special, .imm = imm(which)}, {.isa = isas().back()}).run({})[0];
  };
  for (std::uint64_t lane = 0; lane < 32; ++lane) {
    const std::uint64_t self = std::uint64_t{1} << lane;
    CHECK(get(Special::laneid)[lane] == lane);
    CHECK(get(Special::lanemask_eq)[lane] == self);
    CHECK(get(Special::lanemask_lt)[lane] == self - 1);
    CHECK(get(Special::lanemask_le)[lane] == self * 2 - 1);
    CHECK(get(Special::lanemask_gt)[lane] == (0xffffffffu & ~(self * 2 - 1)));
    CHECK(get(Special::lanemask_ge)[lane] == (0xffffffffu & ~(self - 1)));
  }
}

TEST_CASE("registers that are the same for a block come from the launch") {
  Surroundings around;
  around.ctaid[0] = 11, around.ctaid[1] = 12, around.ctaid[2] = 13;
  around.launch.grid[0] = 21, around.launch.grid[1] = 22, around.launch.grid[2] = 23;
  around.launch.grid_id = 0x123456789a;
  around.launch.sm_count = 5;
  around.launch.dynamic_shared_bytes = 1000;
  around.launch.total_shared_bytes = 3000;
  around.worker.worker_index = 3;
  around.warp = 2;
  const std::vector<std::pair<Special, std::uint64_t>> cases = {{Special::ntid_x, 48},
                                                                {Special::ntid_y, 3},
                                                                {Special::ntid_z, 1},
                                                                {Special::ctaid_x, 11},
                                                                {Special::ctaid_y, 12},
                                                                {Special::ctaid_z, 13},
                                                                {Special::nctaid_x, 21},
                                                                {Special::nctaid_y, 22},
                                                                {Special::nctaid_z, 23},
                                                                {Special::warpid, 2},
                                                                {Special::nwarpid, 5},
                                                                {Special::smid, 3},
                                                                {Special::nsmid, 5},
                                                                {Special::dynamic_smem_size, 1000},
                                                                {Special::total_smem_size, 3000}};
  for (const auto& [which, expected] : cases) {
    const Operation operation{.op = Op::special, .imm = imm(which), .result = uniform()};
    CHECK(compile(operation, {.isa = isas().back(), .block = {48, 3, 1}}).run({}, ~0u, around)[0][31] ==
          expected);
  }
  CHECK(compile({.op = Op::special, .type = Type::i64, .imm = imm(Special::gridid), .result = uniform()}, {})
            .run({}, ~0u, around)[0][0] == 0x123456789a);
}

TEST_CASE("clocks go forward") {
  for (const Special which : {Special::clock64, Special::globaltimer}) {
    const Compiled code =
        compile({.op = Op::special, .type = Type::i64, .imm = imm(which), .result = uniform()},
                {.isa = isas().back()});
    const std::uint64_t before = code.run({})[0][0];
    std::uint64_t after = before;
    for (int tries = 0; tries < 1000 && after == before; ++tries) after = code.run({})[0][0];
    CHECK(after > before);
  }
}

TEST_CASE("parameters are read at their offsets, aligned or not") {
  std::array<std::byte, 128> params{};
  for (std::size_t at = 0; at < params.size(); ++at) params[at] = static_cast<std::byte>(at * 3 + 1);
  Surroundings around;
  around.launch.params = params.data();
  for (const Type type : {Type::i8, Type::i16, Type::i32, Type::i64, Type::f16, Type::f32, Type::f64})
    for (const std::uint64_t offset : {0ull, 8ull, 13ull}) {
      std::uint64_t expected = 0;
      std::memcpy(&expected, params.data() + offset, ir::byte_size(type));
      const Operation operation{.op = Op::param, .type = type, .imm = offset, .result = uniform()};
      CHECK(compile(operation, {.isa = isas().back()}).run({}, ~0u, around)[0][5] == expected);
    }
}

TEST_CASE("constants of every type, and undefined registers are zero") {
  for (const Type type :
       {Type::i1, Type::i8, Type::i32, Type::i64, Type::f16, Type::bf16, Type::f32, Type::f64})
    for (const std::uint64_t bits : interesting(type)) {
      const std::uint64_t value = type == Type::i1 ? bits & 1 : bits;
      REQUIRE(compile({.op = Op::constant, .type = type, .imm = value, .result = uniform_constant(value)},
                      {.opt_level = 0})
                  .run({})[0][2] == value);
    }
  CHECK(compile({.op = Op::undef, .result = uniform()}, {}).run({})[0] == Lanes{});
}

TEST_CASE("symbols: window addresses from the table, shared ones by their offset") {
  const std::uint64_t table[] = {1000, 2000, 3000};
  Surroundings around;
  around.launch.symbols = table;
  const std::vector<ir::Symbol> symbols = {
      {.name = "a"}, {.name = "b"}, {.name = "s", .space = Space::shared, .shared_offset = 48}};
  for (const auto& [index, expected] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 1000}, {1, 2000}, {2, 48}}) {
    const Operation operation{
        .op = Op::symbol, .type = Type::i64, .imm = index, .result = uniform(), .symbols = symbols};
    CHECK(compile(operation, {}).run({}, ~0u, around)[0][0] == expected);
  }
}

TEST_CASE("addresses convert between their space and the generic one") {
  std::vector<std::byte> memory(1 << 16);
  Surroundings around;
  around.launch.window_base = memory.data();
  around.launch.window_bytes = memory.size();
  around.worker.shared_base = memory.data() + 4096;
  around.worker.local_base = memory.data() + 8192;
  around.worker.local_stride = 64;
  const auto base = reinterpret_cast<std::uint64_t>(memory.data());
  const auto convert = [&](Op op, Space space, const Lanes& lanes) {
    return compile({.op = op, .type = Type::i64, .attr = {.space = space}, .inputs = {{Type::i64}}},
                   {.isa = isas().back()})
        .run({lanes}, ~0u, around)[0];
  };
  Lanes offsets{};
  for (std::size_t lane = 0; lane < 32; ++lane) offsets[lane] = lane * 8 % 64;
  const Lanes shared = convert(Op::to_generic, Space::shared, offsets);
  const Lanes local = convert(Op::to_generic, Space::local, offsets);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    CHECK(shared[lane] == base + 4096 + offsets[lane]);
    CHECK(local[lane] == base + 8192 + lane * 64 + offsets[lane]);
  }
  CHECK(convert(Op::from_generic, Space::shared, shared) == offsets);
  CHECK(convert(Op::from_generic, Space::local, local) == offsets);
  CHECK(convert(Op::to_generic, Space::global, shared) == shared);
}

TEST_CASE("a generic address lies in one space") {
  std::vector<std::byte> memory(1 << 16);
  Surroundings around;
  around.launch.window_base = memory.data();
  around.launch.window_bytes = std::uint64_t{1} << 40;
  around.worker.shared_base = memory.data() + 4096 + engine::kGapBytes;
  around.worker.local_base = memory.data() + 8192;
  around.worker.local_stride = 64;
  const auto base = reinterpret_cast<std::uint64_t>(memory.data());
  const auto test = [&](Space space, std::uint64_t address) {
    const Lanes vector =
        compile({.op = Op::is_space, .type = Type::i1, .attr = {.space = space}, .inputs = {{Type::i64}}},
                {.isa = isas().back()})
            .run({filled(address)}, ~0u, around)[0];
    const Operation operation{.op = Op::is_space,
                              .type = Type::i1,
                              .attr = {.space = space},
                              .inputs = {{Type::i64, uniform()}},
                              .result = uniform()};
    const Lanes scalar = compile(operation, {.isa = isas().back()}).run({filled(address)}, ~0u, around)[0];
    CHECK(vector[3] == scalar[0]);
    return scalar[0] != 0;
  };
  const std::uint64_t shared = base + 4096 + engine::kGapBytes + 100;
  const std::uint64_t local = base + 8192 + 31 * 64;
  CHECK(test(Space::shared, shared));
  CHECK(test(Space::local, local));
  CHECK(test(Space::global, base + 16));
  for (const std::uint64_t other : {shared, local, std::uint64_t{16}})
    CHECK_FALSE(test(Space::global, other));
  CHECK_FALSE(test(Space::shared, local));
  CHECK_FALSE(test(Space::local, shared));
}

TEST_CASE("the address of a local variable is its offset") {
  CHECK(compile({.op = Op::local_address, .type = Type::i64, .imm = 24, .result = uniform()}, {})
            .run({})[0][9] == 24);
}

TEST_CASE("host calls are made for each running lane with its own arguments") {
  const Operation operation{.op = Op::host_call,
                            .type = Type::i32,
                            .imm = static_cast<std::uint64_t>(ir::HostCall::malloc),
                            .inputs = {{Type::i64}, {Type::i32, uniform()}}};
  Lanes lanes{};
  std::iota(lanes.begin(), lanes.end(), 1);
  for (const Isa isa : isas()) {
    const Lanes got = compile(operation, {.isa = isa, .full = false}).run({lanes, filled(7)}, 0xf00f)[0];
    for (std::size_t lane = 0; lane < 32; ++lane)
      CHECK(got[lane] == ((0xf00f >> lane & 1) != 0 ? 2 * 1000000 + lane * 10000 + (lane + 1) * 100 + 7 : 0));
  }
}

TEST_CASE("sleeping, fences and warp barriers return") {
  for (const ir::Scope scope : {ir::Scope::cta, ir::Scope::gpu, ir::Scope::sys})
    for (const ir::Semantics semantics : {ir::Semantics::acq_rel, ir::Semantics::sc})
      compile({.op = Op::fence, .type = Type::none, .attr = {.semantics = semantics, .scope = scope}}, {})
          .run({});
  compile({.op = Op::warp_sync, .type = Type::none, .inputs = {{Type::i32, uniform()}}}, {})
      .run({filled(~0u)});
  compile({.op = Op::nanosleep, .type = Type::none, .inputs = {{Type::i32}}}, {.full = false})
      .run({filled(1000)}, 0x10);
  compile({.op = Op::nanosleep, .type = Type::none, .inputs = {{Type::i32, uniform()}}}, {}).run({filled(0)});
}

TEST_CASE("what is not done is refused before it is emitted") {
  CHECK_FALSE(can_emit(Op::phi));
  CHECK_FALSE(can_emit(Op::barrier));
  CHECK(can_emit(Op::shuffle));
  CHECK_FALSE(can_emit(ir::Inst{.op = Op::fadd, .type = Type::f16, .attr = {.rounding = ir::Rounding::rz}}));
  CHECK_FALSE(
      can_emit(ir::Inst{.op = Op::f_to_f, .type = Type::f32, .attr = {.rounding = ir::Rounding::rna}}));
  CHECK_FALSE(can_emit(
      ir::Inst{.op = Op::approx, .type = Type::f64, .imm = static_cast<std::uint64_t>(ir::Approx::ex2)}));
  CHECK_FALSE(can_emit(ir::Inst{.op = Op::to_generic, .type = Type::i64, .attr = {.space = Space::param}}));
  CHECK_FALSE(can_emit(ir::Inst{.op = Op::store, .type = Type::none, .attr = {.space = Space::constant}}));
}

}  // namespace quern::cpu::emit::testing
