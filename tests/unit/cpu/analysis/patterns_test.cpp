// SPDX-License-Identifier: Apache-2.0
// Patterns of address computations that are typical of kernels.
#include <bit>

#include "testing.hpp"

using namespace quern::cpu;
using analysis::Assumption;
using analysis::LanePatternKind;
using test::analysed;
using test::block_of;
using test::IrBuilder;
using test::is_strided;

TEST_CASE("the address of x[i] in saxpy is a base plus four bytes a lane, without assumptions") {
  for (const std::uint32_t threads : {256u, 96u, 100u, 1000u, 33u}) {
    IrBuilder b;
    const auto x = b.param(ir::Type::i64);
    const auto n = b.param(ir::Type::i32);
    const auto i = b.global_index();
    const auto body = b.block();
    const auto end = b.block();
    b.cond_br(b.icmp(ir::Icmp::slt, i, n), body, end);
    b.at(body);
    const auto wide = b.sext(ir::Type::i64, i);
    const auto address = b.add(x, b.shl(wide, 2));
    const auto value = b.load(ir::Type::f32, address);
    b.store(address, b.fadd(value, value));
    b.br(end);
    b.at(end).ret();
    const analysis::Analysis a = analysed(b, block_of(threads));
    CHECK(is_strided(a.patterns[i], 1));
    CHECK(is_strided(a.patterns[wide], 1));
    CHECK(is_strided(a.patterns[address], 4));
    CHECK(!a.assumed[wide]);
    CHECK(a.patterns[value].kind == LanePatternKind::varying);
    CHECK(a.divergent_branch[0]);
    CHECK(a.divergent_control[body]);
    CHECK(a.patterns[n].kind == LanePatternKind::uniform);
  }
}

TEST_CASE("rows of a 16x16 tile: two per warp, and row * N + k has a runtime coefficient") {
  IrBuilder b;
  const auto n = b.param(ir::Type::i32);
  const auto k = b.param(ir::Type::i32);
  const auto matrix = b.param(ir::Type::i64);
  const auto tx = b.tid(0);
  const auto ty = b.tid(1);
  const auto column = b.global_index(0);
  const auto row = b.global_index(1);
  const auto index = b.add(b.mul(row, n), k);
  const auto wide = b.sext(ir::Type::i64, index);
  const auto address = b.add(matrix, b.mul(wide, b.i64(4)));
  b.ret();
  SUBCASE("safe: an offset from the base") {
    const analysis::Analysis a = analysed(b, block_of(16, 16));
    CHECK(a.patterns[tx].constant == 0u);
    CHECK(a.patterns[tx].terms[0].offsets[17] == 1);
    CHECK(a.patterns[ty].terms[0].offsets[15] == 0);
    CHECK(a.patterns[ty].terms[0].offsets[16] == 1);
    CHECK(a.patterns[ty].base_align == 2);
    CHECK(a.patterns[column].base_align == 16);
    CHECK(a.patterns[column].exact);
    CHECK(a.patterns[row].exact);
    REQUIRE(a.patterns[index].kind == LanePatternKind::affine);
    CHECK(a.patterns[index].terms[0].coefficient == n);
    CHECK(a.patterns[wide].kind == LanePatternKind::offset32);
    CHECK(a.patterns[wide].index == index);
    REQUIRE(a.patterns[address].kind == LanePatternKind::offset32);
    CHECK(a.patterns[address].scale == 4);
    CHECK(!a.assumed[wide]);
  }
  SUBCASE("optimistic: affine, and marked") {
    const analysis::Analysis a = analysed(b, block_of(16, 16), Assumption::optimistic);
    REQUIRE(a.patterns[address].kind == LanePatternKind::affine);
    CHECK(a.patterns[address].terms[0].coefficient == n);
    CHECK(a.patterns[address].terms[0].sign_extend);
    CHECK(a.patterns[address].terms[0].offsets[31] == 4);
    CHECK(a.assumed[wide]);
    CHECK(!a.assumed[address]);
  }
}

TEST_CASE("a divergent loop keeps its counter uniform inside, and varying after it") {
  IrBuilder b;  // mandelbrot: while (z < 4 && i < 1000) ...
  const auto out = b.param(ir::Type::i64);
  const auto i0 = b.global_index();
  const auto zero = b.i32(0);
  const auto limit = b.i32(1000);
  const auto one = b.i32(1);
  const auto c = b.op(ir::Op::s_to_f, ir::Type::f32, {i0});
  const auto head = b.block(), body = b.block(), latch = b.block(), after = b.block();
  b.br(head);
  b.at(head);
  const auto i = b.phi(ir::Type::i32);
  const auto z = b.phi(ir::Type::f32);
  b.cond_br(b.icmp(ir::Icmp::slt, i, limit), body, after);
  b.at(body);
  b.cond_br(b.fcmp(ir::Fcmp::olt, z, b.constant(ir::Type::f32, 0x40800000)), latch, after);
  b.at(latch);
  const auto next = b.add(i, one);
  const auto z_next = b.ffma(z, z, c);
  b.br(head);
  b.at(after);
  const auto result = b.phi(ir::Type::i32, {{head, i}, {body, i}});
  b.store(b.add(out, b.shl(b.sext(ir::Type::i64, i0), 2)), result);
  b.ret();
  b.incoming(i, 0, zero);
  b.incoming(i, latch, next);
  b.incoming(z, 0, c);
  b.incoming(z, latch, z_next);
  const analysis::Analysis a = analysed(b, block_of(256));
  REQUIRE(a.loops.size() == 1);
  CHECK(a.loops[0].divergent);
  CHECK(a.patterns[i].kind == LanePatternKind::uniform);
  CHECK(a.patterns[i].min == 0);
  CHECK(a.patterns[i].max == 1000);
  CHECK(a.patterns[z].kind == LanePatternKind::varying);
  CHECK(a.patterns[result].kind == LanePatternKind::varying);
  CHECK(!a.divergent_branch[head]);
  CHECK(a.divergent_branch[body]);
  CHECK(a.divergent_control[head]);
  CHECK(!a.divergent_control[after]);
  CHECK(a.order == std::vector<ir::BlockId>{0, head, body, latch, after});
}

/// A loop in steps of the block as NVRTC unrolls it: first the iterations that are left over, then four at a
/// time. `left` computes their number from the index and the bound. Returns the phi between the two loops.
template <class Left>
ir::Value unrolled_loop(IrBuilder& b, const Left& left) {
  const auto n = b.param(ir::Type::i32);
  const auto first = b.tid(), zero = b.i32(0), step = b.i32(256), one = b.i32(1);
  const auto count = left(b, first, n);
  const auto rest = b.block(), again = b.block(), end = b.block(), main = b.block();
  b.cond_br(b.icmp(ir::Icmp::eq, count, zero), main, rest);
  b.at(rest);
  const auto i = b.phi(ir::Type::i32), k = b.phi(ir::Type::i32);
  const auto next_i = b.add(i, step), next_k = b.sub(k, one);
  b.cond_br(b.icmp(ir::Icmp::ne, next_k, zero), again, end);
  b.at(again).br(rest);
  b.at(end);
  const auto last = b.phi(ir::Type::i32, {{rest, next_i}});
  b.br(main);
  b.incoming(i, 0, first);
  b.incoming(i, again, next_i);
  b.incoming(k, 0, count);
  b.incoming(k, again, next_k);
  b.at(main);
  const auto start = b.phi(ir::Type::i32, {{0, first}, {end, last}});
  b.ret();
  return start;
}

TEST_CASE("lanes are assumed to leave a loop together if its iterations follow from indices and bounds") {
  IrBuilder regular;
  const auto start = unrolled_loop(regular, [](IrBuilder& b, ir::Value index, ir::Value n) {
    return b.and_(b.add(b.lshr(b.sub(n, index), 8), b.i32(1)), b.i32(3));
  });
  const analysis::Analysis full = analysed(regular, block_of(256), Assumption::optimistic);
  CHECK(test::is_strided(full.patterns[start], 1));
  CHECK(full.together[start]);
  const analysis::Analysis safe = analysed(regular, block_of(256), Assumption::safe);
  CHECK(safe.patterns[start].kind == LanePatternKind::varying);
  CHECK(!safe.together[start]);
}

TEST_CASE("lanes are not assumed to leave a loop together if its iterations depend on data or on the lane") {
  IrBuilder by_data, by_lane;
  const auto loaded = unrolled_loop(by_data, [](IrBuilder& b, ir::Value index, ir::Value) {
    const auto list = b.param(ir::Type::i64);
    return b.load(ir::Type::i32, b.add(list, b.shl(b.zext(ir::Type::i64, index), 2)));
  });
  const auto known = unrolled_loop(
      by_lane, [](IrBuilder& b, ir::Value index, ir::Value) { return b.and_(index, b.i32(3)); });
  for (const auto& [program, start] : {std::pair{&by_data, loaded}, std::pair{&by_lane, known}}) {
    const analysis::Analysis full = analysed(*program, block_of(256), Assumption::optimistic);
    CHECK(full.patterns[start].kind == LanePatternKind::varying);
    CHECK(!full.together[start]);
  }
}

TEST_CASE("a shuffle reduction: lane and warp of a thread are known patterns") {
  IrBuilder b;
  const auto tid = b.tid();
  const auto lane = b.and_(tid, b.i32(31));
  const auto warp = b.lshr(tid, 5);
  const auto first = b.icmp(ir::Icmp::eq, lane, b.i32(0));
  const auto low = b.or_(b.shl(tid, 2), b.i32(3));
  b.ret();
  const analysis::Analysis a = analysed(b, block_of(256));
  CHECK(is_strided(a.patterns[lane], 1));
  CHECK(a.patterns[lane].constant == 0u);
  CHECK(a.patterns[warp].kind == LanePatternKind::uniform);
  CHECK(a.patterns[warp].max == 7);
  CHECK(a.patterns[first].kind == LanePatternKind::varying);
  CHECK(is_strided(a.patterns[low], 4));
}

TEST_CASE("tid is affine exactly where every warp of the block has the same pattern") {
  for (const std::array<std::uint32_t, 3> block : {std::array<std::uint32_t, 3>{16, 16, 1},
                                                   {8, 8, 4},
                                                   {4, 2, 64},
                                                   {64, 4, 1},
                                                   {100, 2, 1},
                                                   {7, 5, 3},
                                                   {1, 33, 1},
                                                   {2, 3, 5},
                                                   {12, 12, 1},
                                                   {24, 4, 1},
                                                   {1, 1, 64}}) {
    CAPTURE(block);
    IrBuilder b;
    const std::array<ir::Value, 3> tid = {b.tid(0), b.tid(1), b.tid(2)};
    b.ret();
    const analysis::Analysis a = analysed(b, block_of(block[0], block[1], block[2]));
    const std::uint32_t threads = block[0] * block[1] * block[2];
    for (std::size_t d = 0; d < 3; ++d) {
      CAPTURE(d);
      const auto index = [&](std::uint32_t thread) -> std::int64_t {
        if (d == 0) return thread % block[0];
        return d == 1 ? thread / block[0] % block[1] : thread / block[0] / block[1];
      };
      bool same = true;
      bool flat = true;
      for (std::uint32_t thread = 0; thread < threads; ++thread) {
        const std::int64_t difference = index(thread) - index(thread / 32 * 32);
        same &= difference == index(thread % 32) - index(0);
        flat &= difference == 0;
      }
      const LanePatternKind expected = flat   ? LanePatternKind::uniform
                                       : same ? LanePatternKind::affine
                                              : LanePatternKind::varying;
      CHECK(a.patterns[tid[d]].kind == expected);
      CHECK(a.patterns[tid[d]].max == block[d] - 1);
    }
  }
}

TEST_CASE("an order of two values with equal steps is the warp's where neither wraps") {
  IrBuilder b;
  const auto x = b.param(ir::Type::i32);
  const auto tid = b.tid();
  const auto low = b.add(tid, b.i32(-5));  // negative in some lanes of one warp
  const auto high = b.add(tid, b.i32(-3));
  const auto far = b.add(tid, x);  // may wrap between two lanes
  const auto farther = b.add(far, b.i32(1));
  const auto above = b.add(tid, b.i32(7));
  const auto signed_order = b.icmp(ir::Icmp::slt, low, high);
  const auto unsigned_order = b.icmp(ir::Icmp::ult, low, high);
  const auto natural = b.icmp(ir::Icmp::ult, tid, above);
  const auto signed_wrap = b.icmp(ir::Icmp::slt, far, farther);
  const auto unsigned_wrap = b.icmp(ir::Icmp::ult, far, farther);
  const auto equal = b.icmp(ir::Icmp::eq, far, farther);
  b.ret();
  const analysis::Analysis a = analysed(b, block_of(32));
  CHECK(a.patterns[signed_order].kind == LanePatternKind::uniform);
  CHECK(a.patterns[natural].kind == LanePatternKind::uniform);
  CHECK(a.patterns[equal].kind == LanePatternKind::uniform);
  CHECK(a.patterns[unsigned_order].kind == LanePatternKind::varying);
  CHECK(a.patterns[signed_wrap].kind == LanePatternKind::varying);
  CHECK(a.patterns[unsigned_wrap].kind == LanePatternKind::varying);
}

TEST_CASE("a comparison with a bound between the warps is the same in every lane of a warp") {
  IrBuilder b;
  const auto n = b.param(ir::Type::i32);
  const auto tid = b.tid();
  const auto rows = b.shl(n, 5);
  const auto compared = [&](ir::Icmp how, std::int64_t bound) { return b.icmp(how, tid, b.i32(bound)); };
  const auto below = compared(ir::Icmp::slt, 64);
  const auto at_most = compared(ir::Icmp::ule, 63);
  const auto above = compared(ir::Icmp::sgt, 31);
  const auto exchanged = b.icmp(ir::Icmp::ule, b.i32(128), tid);
  const auto by_parameter = b.icmp(ir::Icmp::slt, tid, rows);
  const auto inside = compared(ir::Icmp::slt, 65);
  const auto inside_too = compared(ir::Icmp::sle, 64);
  const auto one_lane = compared(ir::Icmp::eq, 64);
  const auto any_bound = b.icmp(ir::Icmp::slt, tid, n);
  const auto even = b.icmp(ir::Icmp::eq, b.shl(tid, 1), b.i32(65));
  const auto beyond_tile = b.icmp(ir::Icmp::ult, b.and_(tid, b.i32(~31)), b.i32(70));
  b.ret();
  const analysis::Analysis a = analysed(b, block_of(256));
  for (const auto value : {below, at_most, above, exchanged, by_parameter, beyond_tile})
    CHECK(a.patterns[value].kind == LanePatternKind::uniform);
  for (const auto value : {inside, inside_too, one_lane, any_bound, even})
    CHECK(a.patterns[value].kind == LanePatternKind::varying);
  const analysis::Analysis narrow = analysed(b, block_of(16, 16));  // tid.x repeats in a warp
  CHECK(narrow.patterns[any_bound].kind == LanePatternKind::varying);
}

TEST_CASE("what a lane's own bit chooses is the lane's own") {
  IrBuilder b;
  const auto x = b.param(ir::Type::i32);
  const auto y = b.param(ir::Type::i32);
  const auto odd = b.trunc(ir::Type::i1, b.add(b.tid(), x));
  const auto of_lane = b.select(odd, x, y);
  const auto of_warp = b.select(b.icmp(ir::Icmp::slt, x, y), x, y);
  b.ret();
  const analysis::Analysis a = analysed(b, block_of(32));
  CHECK(a.patterns[of_lane].kind == LanePatternKind::varying);
  CHECK(a.patterns[of_warp].kind == LanePatternKind::uniform);
}

namespace {

/// The variable i of: i = 0; do next = step(i) while ((i = next) < limit).
template <typename Step>
ir::Value counted_by(IrBuilder& b, ir::Value limit, const Step& step) {
  const auto zero = b.i32(0);
  const auto loop = b.block(), after = b.block();
  b.br(loop);
  b.at(loop);
  const auto i = b.phi(ir::Type::i32);
  const auto next = step(i);
  b.cond_br(b.icmp(ir::Icmp::slt, next, limit), loop, after);
  b.at(after).ret();
  b.incoming(i, 0, zero);
  b.incoming(i, loop, next);
  return i;
}

}  // namespace

TEST_CASE("a counter is bounded by its test where no step can wrap") {
  for (const int step : {1, 2}) {
    CAPTURE(step);
    IrBuilder b;
    const auto n = b.param(ir::Type::i32);
    const auto i = counted_by(b, n, [&](ir::Value at) { return b.add(at, b.i32(step)); });
    const analysis::Analysis a = analysed(b, block_of(32));
    // `next` is below 2^31 - 1 while the loop continues, so adding one stays below 2^31, but adding two may
    // not.
    CHECK(a.patterns[i].min == (step == 1 ? 0 : INT32_MIN));
    CHECK(a.patterns[i].max == (step == 1 ? INT32_MAX - 1 : INT32_MAX));
  }
}

TEST_CASE("a number that is none of the loop's is no counter") {
  IrBuilder b;
  const auto n = b.param(ir::Type::i32);
  const auto limit = b.i32(100);
  const auto i = counted_by(b, limit, [&](ir::Value) { return b.add(b.i32(5), n); });
  CHECK(analysed(b, block_of(32)).patterns[i].min == INT32_MIN);
}

TEST_CASE("what may be negative is not widened without its sign") {
  IrBuilder b;
  const auto n = b.param(ir::Type::i32);
  const auto before = b.add(b.global_index(), b.i32(-5));
  const auto with_sign = b.sext(ir::Type::i64, before);
  const auto without = b.zext(ir::Type::i64, before);
  const auto rows = b.zext(ir::Type::i64, b.mul(b.tid(1), n));
  b.ret();
  const analysis::Analysis safe = analysed(b, block_of(64));
  CHECK(is_strided(safe.patterns[with_sign], 1));
  CHECK(safe.patterns[without].kind == LanePatternKind::offset32);
  CHECK(!safe.patterns[without].index_signed);
  const analysis::Analysis optimistic = analysed(b, block_of(16, 16), Assumption::optimistic);
  REQUIRE(optimistic.patterns[rows].kind == LanePatternKind::affine);
  REQUIRE(optimistic.patterns[rows].terms.size() == 1);
  CHECK(optimistic.patterns[rows].terms[0].coefficient == n);
  CHECK(!optimistic.patterns[rows].terms[0].sign_extend);
  CHECK(optimistic.assumed[rows]);
}

TEST_CASE(
    "a grid-stride loop keeps its index affine, and its widening needs no assumption where blocks are whole "
    "warps") {
  IrBuilder b;
  const auto n = b.param(ir::Type::i32);
  const auto data = b.param(ir::Type::i64);
  const auto start = b.global_index();
  const auto stride = b.mul(b.ntid(), b.nctaid());
  const auto head = b.block(), body = b.block(), after = b.block();
  b.br(head);
  b.at(head);
  const auto i = b.phi(ir::Type::i32);
  b.cond_br(b.icmp(ir::Icmp::slt, i, n), body, after);
  b.at(body);
  const auto wide = b.sext(ir::Type::i64, i);
  const auto address = b.add(data, b.mul(wide, b.i64(8)));
  b.store(address, b.load(ir::Type::f64, address));
  const auto next = b.add(i, stride);
  b.br(head);
  b.at(after).ret();
  b.incoming(i, 0, start);
  b.incoming(i, body, next);
  SUBCASE("256 threads: the base is a multiple of 32") {
    const analysis::Analysis a = analysed(b, block_of(256));
    CHECK(is_strided(a.patterns[i], 1));
    CHECK(a.patterns[i].base_align == 32);
    CHECK(is_strided(a.patterns[address], 8));
    CHECK(a.loops[0].divergent);
  }
  SUBCASE("100 threads: i may wrap between the lanes of a warp") {
    const analysis::Analysis a = analysed(b, block_of(100));
    CHECK(is_strided(a.patterns[i], 1));
    CHECK(a.patterns[wide].kind == LanePatternKind::offset32);
    const analysis::Analysis optimistic = analysed(b, block_of(100), Assumption::optimistic);
    CHECK(is_strided(optimistic.patterns[address], 8));
    CHECK(optimistic.assumed[wide]);
  }
}

TEST_CASE("a loop over a row keeps a pointer that advances affine, and its end test uniform") {
  IrBuilder b;  // for (p = row; p != end; p += 4 * 32), strength-reduced
  const auto base = b.param(ir::Type::i64);
  const auto bytes = b.param(ir::Type::i64);
  const auto first = b.add(base, b.shl(b.zext(ir::Type::i64, b.tid()), 2));
  const auto last = b.add(first, bytes);
  const auto step = b.i64(128);
  const auto head = b.block(), after = b.block();
  b.br(head);
  b.at(head);
  const auto p = b.phi(ir::Type::i64);
  b.load(ir::Type::f32, p);
  const auto next = b.add(p, step);
  const auto more = b.icmp(ir::Icmp::ne, next, last);
  b.cond_br(more, head, after);
  b.at(after).ret();
  b.incoming(p, 0, first);
  b.incoming(p, head, next);
  const analysis::Analysis a = analysed(b, block_of(128));
  CHECK(is_strided(a.patterns[p], 4));
  CHECK(a.patterns[more].kind == LanePatternKind::uniform);
  CHECK(!a.loops[0].divergent);
}

TEST_CASE("a gather with 32-bit indices is an offset from a uniform base, also in a loop over columns") {
  IrBuilder b;
  const auto data = b.param(ir::Type::i64);
  const auto indices = b.param(ir::Type::i64);
  const auto where = b.add(indices, b.shl(b.sext(ir::Type::i64, b.global_index()), 2));
  const auto index = b.load(ir::Type::i32, where);
  const auto address = b.add(data, b.mul(b.sext(ir::Type::i64, index), b.i64(4)));
  const auto step = b.i64(64);
  const auto zero = b.i32(0);
  const auto limit = b.i32(10);
  const auto head = b.block(), after = b.block();
  b.br(head);
  b.at(head);
  const auto p = b.phi(ir::Type::i64);
  const auto k = b.phi(ir::Type::i32);
  b.load(ir::Type::f32, p);
  const auto next = b.add(p, step);
  const auto k_next = b.add(k, b.i32(1));
  b.cond_br(b.icmp(ir::Icmp::ult, k_next, limit), head, after);
  b.at(after).ret();
  b.incoming(p, 0, address);
  b.incoming(p, head, next);
  b.incoming(k, 0, zero);
  b.incoming(k, head, k_next);
  const analysis::Analysis a = analysed(b, block_of(64));
  REQUIRE(a.patterns[p].kind == LanePatternKind::offset32);
  CHECK(a.patterns[p].index == index);
  CHECK(a.patterns[p].scale == 4);
  CHECK(a.patterns[p].index_signed);
  CHECK(a.patterns[k].min == 0);
  CHECK(a.patterns[k].max == 9);
  CHECK(a.patterns[k_next].max == 10);
}

TEST_CASE(
    "a triangular loop, as long as the lane says, leaves its counter uniform and what it counts to varying") {
  IrBuilder b;
  const auto tid = b.tid();
  const auto zero = b.i32(0);
  const auto head = b.block(), body = b.block(), after = b.block();
  b.br(head);
  b.at(head);
  const auto i = b.phi(ir::Type::i32);
  b.cond_br(b.icmp(ir::Icmp::slt, i, tid), body, after);
  b.at(body);
  const auto next = b.add(i, b.i32(1));
  b.br(head);
  b.at(after);
  const auto count = b.phi(ir::Type::i32, {{head, i}});
  b.ret();
  b.incoming(i, 0, zero);
  b.incoming(i, body, next);
  const analysis::Analysis a = analysed(b, block_of(64));
  CHECK(a.patterns[i].kind == LanePatternKind::uniform);
  CHECK(a.patterns[i].max == 63);
  CHECK(a.patterns[count].kind == LanePatternKind::varying);
  CHECK(a.loops[0].divergent);
}

TEST_CASE("shared memory addressed with 32 bits widens without an assumption") {
  IrBuilder b;
  const auto tile = b.symbol(b.declare({"tile", ir::Space::shared, 1024, 16, 0}));
  const auto offset = b.add(b.shl(b.tid(1), 6), b.shl(b.tid(0), 2));
  const auto address = b.zext(ir::Type::i64, b.add(b.trunc(ir::Type::i32, tile), offset));
  b.ret();
  const analysis::Analysis a = analysed(b, block_of(16, 16));
  REQUIRE(a.patterns[address].kind == LanePatternKind::affine);
  CHECK(a.patterns[address].terms[0].offsets[15] == 60);
  CHECK(a.patterns[address].terms[0].offsets[16] == 64);
  CHECK(!a.assumed[address]);
}

TEST_CASE("without the promise of a small grid a 32-bit index of uneven blocks may wrap") {
  IrBuilder b;
  const auto wide = b.sext(ir::Type::i64, b.global_index());
  b.ret();
  Specialisation large = block_of(100);
  large.small_grid = false;
  CHECK(analysed(b, large).patterns[wide].kind == LanePatternKind::offset32);
  CHECK(is_strided(analysed(b, block_of(100)).patterns[wide], 1));
}

TEST_CASE("a coefficient that was cut cannot be widened again") {
  IrBuilder b;
  const auto factor = b.param(ir::Type::i64);
  const auto product = b.mul(b.zext(ir::Type::i64, b.tid()), factor);
  const auto cut = b.trunc(ir::Type::i32, product);
  const auto again = b.sext(ir::Type::i64, cut);
  b.ret();
  const analysis::Analysis a = analysed(b, block_of(64), Assumption::optimistic);
  CHECK(a.patterns[cut].kind == LanePatternKind::affine);
  CHECK(!a.patterns[cut].exact);
  CHECK(a.patterns[again].kind == LanePatternKind::offset32);
}

TEST_CASE(
    "memory: one address gives one value, but not in local memory or where another thread may be waited "
    "for") {
  IrBuilder b;
  const auto pointer = b.param(ir::Type::i64);
  const auto plain = b.load(ir::Type::f32, pointer);
  const auto polled = b.load(ir::Type::i32, pointer);
  b.inst(polled).attr.is_volatile = true;
  const auto own = b.op(ir::Op::local_address, ir::Type::i64, {}, 16);
  const auto spilled = b.load(ir::Type::i32, own, ir::Space::local);
  ir::Attributes local;
  local.space = ir::Space::local;
  const auto escaped = b.op(ir::Op::to_generic, ir::Type::i64, {own}, 0, local);
  const auto through = b.load(ir::Type::i32, escaped, ir::Space::generic);
  const auto old = b.atomic(ir::AtomicOp::add, pointer, b.i32(1));
  ir::Attributes four;
  four.count = 4;
  const auto vector = b.op(ir::Op::load, ir::Type::f32, {pointer}, 0, four);
  const auto element = b.op(ir::Op::extract, ir::Type::f32, {vector}, 2);
  b.ret();
  const analysis::Analysis a = analysed(b, block_of(64));
  CHECK(a.patterns[plain].kind == LanePatternKind::uniform);
  CHECK(a.patterns[element].kind == LanePatternKind::uniform);
  for (const ir::Value value : {polled, spilled, escaped, through, old})
    CHECK(a.patterns[value].kind == LanePatternKind::varying);
}
