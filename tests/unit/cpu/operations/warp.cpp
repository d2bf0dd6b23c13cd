// SPDX-License-Identifier: Apache-2.0
// The references follow the pseudocode of the PTX ISA for shfl.sync, and its text for vote.sync and
// match.sync.
#include <doctest/doctest.h>

#include <algorithm>

#include "harness.hpp"

namespace quern::cpu::emit::testing {
namespace {

using ir::Op;
using ir::ShuffleMode;
using ir::Type;
using ir::VoteMode;

constexpr std::uint32_t kMasks[] = {0xffffffffu, 0x00000001u, 0x80000000u, 0x0000ffffu, 0x5a5a1234u};

struct Shuffled {
  int lane;
  bool valid;
};

Shuffled reference_shuffle(ShuffleMode mode, int lane, std::uint64_t b, std::uint64_t c) {
  const int bval = b & 0x1f;
  const int cval = c & 0x1f;
  const int mask = c >> 8 & 0x1f;
  const int max_lane = (lane & mask) | (cval & ~mask);
  const int min_lane = lane & mask;
  int j = 0;
  bool pval = false;
  switch (mode) {
    case ShuffleMode::up:
      j = lane - bval;
      pval = j >= max_lane;
      break;
    case ShuffleMode::down:
      j = lane + bval;
      pval = j <= max_lane;
      break;
    case ShuffleMode::bfly:
      j = lane ^ bval;
      pval = j <= max_lane;
      break;
    case ShuffleMode::idx:
      j = min_lane | (bval & ~mask);
      pval = j <= max_lane;
      break;
  }
  return {pval ? j : lane, pval};
}

Lanes sample() {
  Lanes lanes{};
  for (std::size_t lane = 0; lane < 32; ++lane) lanes[lane] = (lane + 1) * 0x01010101u;
  return lanes;
}

Operation shuffle(Op op, ShuffleMode mode, Input b, Input c) {
  return {.op = op,
          .type = op == Op::shuffle ? Type::i32 : Type::i1,
          .imm = static_cast<std::uint64_t>(mode),
          .inputs = {{Type::i32}, b, c, {Type::i32, uniform()}}};
}

void check_shuffle(const Operation& operation, const Lanes& b, const Lanes& c,
                   const std::vector<Isa>& on = isas()) {
  for (const Isa isa : on) {
    const Lanes got = compile(operation, {.isa = isa}).run({sample(), b, c, filled(0xffffffffu)})[0];
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const std::uint64_t own_b = operation.inputs[1].pattern.scalar() ? b[0] : b[lane];
      const Shuffled from =
          reference_shuffle(static_cast<ShuffleMode>(operation.imm), static_cast<int>(lane), own_b, c[0]);
      const std::uint64_t want =
          operation.op == Op::shuffle ? sample()[static_cast<std::size_t>(from.lane)] : from.valid;
      CHECK_MESSAGE(got[lane] == want, "mode ", operation.imm, " b ", own_b, " c ", c[0], " lane ", lane, " ",
                    name_of(isa));
    }
  }
}

constexpr ShuffleMode kModes[] = {ShuffleMode::up, ShuffleMode::down, ShuffleMode::bfly, ShuffleMode::idx};
/// The clamp and segment operands that CUDA's intrinsics use for widths of 32, 16, 8 (up: clamp 0), and
/// unusual ones.
constexpr std::uint64_t kClamps[] = {0x1f, 0x00, 0x101f, 0x1000, 0x181f, 0x1800, 0x1f1f, 0x0507};

}  // namespace

TEST_CASE("shuffles with constant operands, over every mode, segment and clamp") {
  for (const ShuffleMode mode : kModes)
    for (const std::uint64_t c : kClamps)
      for (const std::uint64_t b : {0ull, 1ull, 5ull, 16ull, 31ull, 32ull, 33ull})
        for (const Op op : {Op::shuffle, Op::shuffle_valid})
          check_shuffle(shuffle(op, mode, {Type::i32, uniform_constant(b)}, {Type::i32, uniform_constant(c)}),
                        filled(b), filled(c), {isas()[b % isas().size()]});
}

TEST_CASE("shuffles with operands known at run time, the same for all lanes or not") {
  Lanes each{};
  for (std::size_t lane = 0; lane < 32; ++lane) each[lane] = lane * 13 % 40;
  for (const ShuffleMode mode : kModes)
    for (const std::uint64_t c : kClamps)
      for (const Op op : {Op::shuffle, Op::shuffle_valid}) {
        check_shuffle(shuffle(op, mode, {Type::i32, uniform()}, {Type::i32, uniform()}), filled(7),
                      filled(c));
        check_shuffle(shuffle(op, mode, {Type::i32}, {Type::i32, uniform_constant(c)}), each, filled(c));
      }
}

TEST_CASE("a shuffle from one lane to all is a broadcast") {
  const Operation operation =
      shuffle(Op::shuffle, ShuffleMode::idx, {Type::i32, uniform()}, {Type::i32, uniform_constant(31)});
  for (const std::uint64_t from : {0ull, 9ull, 31ull, 33ull})
    check_shuffle(operation, filled(from), filled(31));
}

TEST_CASE("a shuffle of a uniform value is that value") {
  Operation operation = shuffle(Op::shuffle, ShuffleMode::down, {Type::i32, uniform_constant(4)},
                                {Type::i32, uniform_constant(31)});
  operation.inputs[0].pattern = uniform();
  operation.result = uniform();
  CHECK(compile(operation, {.isa = isas().back()}).run({filled(77), filled(4), filled(31), filled(~0u)})[0] ==
        filled(77));
}

TEST_CASE("votes count the running lanes of the membermask") {
  Lanes some{};
  for (std::size_t lane = 0; lane < 32; ++lane) some[lane] = lane % 3 == 0;
  for (const VoteMode mode : {VoteMode::all, VoteMode::any, VoteMode::uni, VoteMode::ballot})
    for (const Isa isa : isas())
      for (const bool full : {true, false})
        for (const bool own_members : {false, true}) {
          Operation operation{.op = Op::vote,
                              .type = mode == VoteMode::ballot ? Type::i32 : Type::i1,
                              .imm = static_cast<std::uint64_t>(mode),
                              .inputs = {{Type::i1}, {Type::i32}}};
          if (!own_members) operation.inputs[1].pattern = uniform();
          if (!own_members) operation.result = uniform();
          const Compiled code = compile(operation, {.isa = isa, .full = full});
          for (const std::uint32_t mask : kMasks) {
            if (full && mask != 0xffffffffu) continue;
            for (const Lanes& votes : {some, filled(0), filled(1)}) {
              Lanes members = filled(0xffffffffu);
              for (std::size_t lane = 0; lane < 32 && own_members; ++lane)
                members[lane] = lane % 2 == 0 ? 0x55555555u : 0xaaaaaaaau;
              const Lanes got = code.run({votes, members}, mask)[0];
              for (std::size_t lane = 0; lane < 32; ++lane) {
                if ((mask >> lane & 1) == 0) continue;
                std::uint32_t yes = 0;
                const std::uint32_t voters = mask & static_cast<std::uint32_t>(members[lane]);
                for (unsigned other = 0; other < 32; ++other)
                  yes |= static_cast<std::uint32_t>(votes[other]) << other;
                yes &= voters;
                const std::uint64_t want = mode == VoteMode::all   ? yes == voters
                                           : mode == VoteMode::any ? yes != 0
                                           : mode == VoteMode::uni ? yes == voters || yes == 0
                                                                   : yes;
                CHECK(got[lane] == want);
              }
            }
          }
        }
}

TEST_CASE("a vote on a uniform predicate") {
  const Operation operation{.op = Op::vote,
                            .type = Type::i32,
                            .imm = static_cast<std::uint64_t>(VoteMode::ballot),
                            .inputs = {{Type::i1, uniform()}, {Type::i32, uniform()}},
                            .result = uniform()};
  const Compiled code = compile(operation, {.isa = isas().back(), .full = false});
  CHECK(code.run({filled(1), filled(0xffff00ffu)}, 0x0ff0ffffu)[0][0] == 0x0ff000ffu);
  CHECK(code.run({filled(0), filled(0xffff00ffu)}, 0x0ff0ffffu)[0][0] == 0);
}

TEST_CASE("match finds the lanes with the same value") {
  for (const Type type : {Type::i32, Type::i64})
    for (const Isa isa : isas()) {
      const Compiled any = compile({.op = Op::match_any, .inputs = {{type}, {Type::i32, uniform()}}},
                                   {.isa = isa, .full = false});
      const Compiled all =
          compile({.op = Op::match_all, .inputs = {{type}, {Type::i32, uniform()}}, .result = uniform()},
                  {.isa = isa, .full = false});
      Lanes values{};
      for (std::size_t lane = 0; lane < 32; ++lane)
        values[lane] = type == Type::i64 ? (lane % 5) << 40 : lane % 5;
      for (const std::uint32_t mask : kMasks) {
        const Lanes got = any.run({values, filled(0xffffffffu)}, mask)[0];
        for (std::size_t lane = 0; lane < 32; ++lane) {
          std::uint32_t same = 0;
          for (std::size_t other = 0; other < 32; ++other)
            same |= static_cast<std::uint32_t>(values[other] == values[lane]) << other;
          if ((mask >> lane & 1) != 0) CHECK(got[lane] == (same & mask));
        }
        CHECK(all.run({filled(9), filled(0xffffffffu)}, mask)[0][0] == mask);
        CHECK(all.run({values, filled(0xffffffffu)}, mask)[0][0] == ((mask & (mask - 1)) == 0 ? mask : 0));
      }
    }
}

TEST_CASE("reductions take the running lanes of the membermask together") {
  using ir::ReduceMode;
  Lanes values{};
  for (std::size_t lane = 0; lane < 32; ++lane)
    values[lane] = (lane * 2654435761u ^ 0x80000000u) & 0xffffffffu;
  const auto combine = [](ReduceMode mode, std::uint32_t a, std::uint32_t b) {
    const bool less = static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b);
    switch (mode) {
      case ReduceMode::add:
        return a + b;
      case ReduceMode::smin:
        return less ? a : b;
      case ReduceMode::smax:
        return less ? b : a;
      case ReduceMode::umin:
        return std::min(a, b);
      case ReduceMode::umax:
        return std::max(a, b);
      case ReduceMode::and_:
        return a & b;
      case ReduceMode::or_:
        return a | b;
      case ReduceMode::xor_:
        break;
    }
    return a ^ b;
  };
  for (unsigned number = 0; number < 8; ++number)
    for (const Isa isa : isas())
      for (const bool full : {true, false})
        for (const bool own_members : {false, true}) {
          Operation operation{.op = Op::reduce, .imm = number, .inputs = {{Type::i32}, {Type::i32}}};
          if (!own_members) operation.inputs[1].pattern = uniform();
          if (!own_members) operation.result = uniform();
          const Compiled code = compile(operation, {.isa = isa, .full = full});
          for (const std::uint32_t mask : kMasks) {
            if (full && mask != 0xffffffffu) continue;
            Lanes members = filled(0xffffffffu);
            for (std::size_t lane = 0; lane < 32 && own_members; ++lane)
              members[lane] = lane % 2 == 0 ? 0x55555555u : 0xaaaaaaaau;
            const Lanes got = code.run({values, members}, mask)[0];
            for (std::size_t lane = 0; lane < 32; ++lane) {
              if ((mask >> lane & 1) == 0) continue;
              auto want = static_cast<std::uint32_t>(values[lane]);
              for (std::size_t other = 0; other < 32; ++other)
                if (other != lane && (mask & members[lane]) >> other & 1)
                  want = combine(static_cast<ReduceMode>(number), want,
                                 static_cast<std::uint32_t>(values[other]));
              CAPTURE(number);
              CHECK(got[lane] == want);
            }
          }
        }
}

TEST_CASE("activemask is the running lanes") {
  const Compiled code =
      compile({.op = Op::activemask, .result = uniform()}, {.isa = isas().back(), .full = false});
  CHECK(code.run({}, 0x00f0000fu)[0][3] == 0x00f0000fu);
}

}  // namespace quern::cpu::emit::testing
