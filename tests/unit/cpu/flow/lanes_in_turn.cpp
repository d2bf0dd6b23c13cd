// SPDX-License-Identifier: Apache-2.0
// Loops that lanes run one after another.
#include <doctest/doctest.h>

#include <functional>

#include "cpu/cuts/lane_loops.hpp"
#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Icmp;
using ir::Space;
using ir::Type;
using ir::Value;

/// sum = 0; for (i = begin[row]; i < begin[row + 1]; ++i) sum += body(i); out[row] = sum
struct Rows {
  IrBuilder b;
  Value begin = b.param(Type::i64), column = b.param(Type::i64), x = b.param(Type::i64);
  Value out = b.param(Type::i64);
  Value index = b.zext(Type::i64, b.global_index());
  Value row = b.add(begin, b.shl(index, 2));
  Value first = b.load(Type::i32, row), last = b.load(Type::i32, row, Space::global, 4);

  Value element(Value of, Value i) { return b.load(Type::i32, b.add(of, b.shl(b.zext(Type::i64, i), 2))); }

  /// `limit`: compared with i; by default `last`.
  void loop(const std::function<Value(Value i, Value sum)>& body, Value limit = ir::kNone) {
    const auto head = b.block(), work = b.block(), end = b.block();
    const Value zero = b.i32(0), one = b.i32(1);
    b.br(head);
    b.at(head);
    const Value i = b.phi(Type::i32, {{0, first}}), sum = b.phi(Type::i32, {{0, zero}});
    b.cond_br(b.icmp(Icmp::slt, i, limit == ir::kNone ? last : limit), work, end);
    b.at(work);
    const Value next = body(i, sum);
    b.incoming(i, work, b.add(i, one));
    b.incoming(sum, work, next);
    b.br(head);
    b.at(end);
    const Value result = b.phi(Type::i32, {{head, sum}});
    b.store(b.add(out, b.shl(index, 2)), result);
    b.ret();
  }
};

/// The same loop as NVRTC unrolls it: what is left over of it when the number of iterations is divided by
/// four, then the rest. Rows without elements skip both. `between`: emitted between them.
struct UnrolledRows : Rows {
  Value element_of(Value i) { return element(x, element(column, i)); }
  Value sum_with(Value sum, Value i) { return b.add(b.mul(sum, b.i32(3)), b.xor_(element_of(i), i)); }

  explicit UnrolledRows(const std::function<void(Rows&)>& between = [](Rows&) {}) {
    const auto some = b.block(), none = b.block(), has_rest = b.block(), no_rest = b.block();
    const auto rest = b.block(), again = b.block(), rest_end = b.block(), both = b.block();
    const auto has_main = b.block(), no_main = b.block(), main = b.block(), main_again = b.block();
    const auto main_end = b.block(), end = b.block();
    const Value zero = b.i32(0), one = b.i32(1);
    b.cond_br(b.icmp(Icmp::slt, first, last), some, none);
    b.at(none);
    b.br(end);
    b.at(some);
    const Value left_over = b.and_(b.sub(last, first), b.i32(3));
    b.cond_br(b.icmp(Icmp::eq, left_over, zero), no_rest, has_rest);
    b.at(no_rest);
    b.br(both);
    b.at(has_rest);
    b.br(rest);

    b.at(rest);
    const Value i = b.phi(Type::i32, {{has_rest, first}}), sum = b.phi(Type::i32, {{has_rest, zero}});
    const Value left = b.phi(Type::i32, {{has_rest, left_over}});
    const Value next_i = b.add(i, one), next_sum = sum_with(sum, i), next_left = b.add(left, b.i32(-1));
    b.cond_br(b.icmp(Icmp::ne, next_left, zero), again, rest_end);
    b.at(again);
    b.incoming(i, again, next_i);
    b.incoming(sum, again, next_sum);
    b.incoming(left, again, next_left);
    b.br(rest);
    b.at(rest_end);
    const Value rest_i = b.phi(Type::i32, {{rest, next_i}}), rest_sum = b.phi(Type::i32, {{rest, next_sum}});
    b.br(both);

    b.at(both);
    const Value from = b.phi(Type::i32, {{rest_end, rest_i}, {no_rest, first}});
    const Value so_far = b.phi(Type::i32, {{rest_end, rest_sum}, {no_rest, zero}});
    between(*this);
    b.cond_br(b.icmp(Icmp::slt, from, last), has_main, no_main);
    b.at(no_main);
    b.br(end);
    b.at(has_main);
    b.br(main);

    b.at(main);
    const Value j = b.phi(Type::i32, {{has_main, from}}), total = b.phi(Type::i32, {{has_main, so_far}});
    Value next_total = total;
    for (int n = 0; n < 4; ++n) next_total = sum_with(next_total, b.add(j, b.i32(n)));
    const Value next_j = b.add(j, b.i32(4));
    b.cond_br(b.icmp(Icmp::slt, next_j, last), main_again, main_end);
    b.at(main_again);
    b.incoming(j, main_again, next_j);
    b.incoming(total, main_again, next_total);
    b.br(main);
    b.at(main_end);
    const Value main_total = b.phi(Type::i32, {{main, next_total}});
    b.br(end);

    b.at(end);
    const Value result = b.phi(Type::i32, {{main_end, main_total}, {no_main, so_far}, {none, zero}});
    b.store(b.add(out, b.shl(index, 2)), result);
    b.ret();
  }
};

std::vector<cuts::LaneLoop> found_loops(const IrBuilder& b, bool any_cost = false, Isa isa = Isa::avx512) {
  Specialisation specialisation;
  specialisation.block = {256, 1, 1};
  const ir::Module module = b.module();
  const auto safe =
      analysis::analyse(module, module.functions[0], specialisation, analysis::Assumption::safe);
  REQUIRE(safe.has_value());
  return cuts::find_lane_loops(module.functions[0], *safe, any_cost ? nullptr : &safe->patterns, isa);
}

std::size_t lane_loops(const IrBuilder& b, bool any_cost = false) { return found_loops(b, any_cost).size(); }

TEST_CASE("lanes run a loop over rows of a sparse matrix one after another") {
  Rows r;
  r.loop([&](Value i, Value sum) {
    const Value offset = r.b.shl(r.b.zext(Type::i64, i), 2);
    const Value column = r.b.load(Type::i32, r.b.add(r.column, offset));
    const Value value = r.b.load(Type::i32, r.b.add(r.out, offset));
    return r.b.add(sum, r.b.mul(value, r.element(r.x, column)));
  });
  CHECK(lane_loops(r.b) == 1);
}

TEST_CASE("loops whose lanes run together, or would gain nothing, stay as they are") {
  const auto count = [](const std::function<void(Rows&)>& emit, bool any_cost = false) {
    Rows r;
    emit(r);
    return lane_loops(r.b, any_cost);
  };
  // one gather
  CHECK(count([](Rows& r) { r.loop([&](Value i, Value sum) { return r.b.add(sum, r.element(r.x, i)); }); }) ==
        0);
  // each element says where the next one is
  CHECK(count([](Rows& r) {
          r.loop([&](Value, Value sum) {
            return r.b.add(r.element(r.x, sum), r.b.add(r.element(r.column, sum), r.element(r.begin, sum)));
          });
        }) == 0);
  // much arithmetic
  CHECK(count([](Rows& r) {
          r.loop([&](Value i, Value sum) {
            Value result = r.b.add(r.element(r.x, i), r.element(r.column, i));
            for (int n = 0; n < 20; ++n) result = r.b.mul(result, r.b.add(result, sum));
            return result;
          });
        }) == 0);
}

TEST_CASE("a gather is worth more operations without AVX-512") {
  const auto count = [](int operations, Isa isa) {
    Rows r;
    r.loop([&](Value i, Value sum) {
      Value result = r.b.add(r.element(r.x, i), r.element(r.column, i));
      for (int n = 0; n < operations; ++n) result = r.b.xor_(result, sum);
      return result;
    });
    return found_loops(r.b, false, isa).size();
  };
  for (const Isa isa : {Isa::baseline, Isa::avx2}) {
    CHECK(count(3, isa) == 1);
    CHECK(count(12, isa) == 0);
  }
  CHECK(count(3, Isa::avx512) == 0);
}

TEST_CASE("loops that do more than compute and load cannot be run lane by lane") {
  const auto possible = [](const std::function<Value(Rows&, Value i)>& body) {
    Rows r;
    r.loop([&](Value i, Value sum) { return r.b.add(sum, body(r, i)); });
    return lane_loops(r.b, true) == 1;
  };
  CHECK(possible([](Rows& r, Value i) { return r.element(r.x, i); }));
  CHECK(!possible([](Rows& r, Value i) {
    r.b.store(r.out, i);
    return i;
  }));
  CHECK(!possible([](Rows& r, Value i) { return r.b.atomic(ir::AtomicOp::add, r.x, i); }));
  CHECK(!possible([](Rows& r, Value i) {
    return r.b.shuffle(ir::ShuffleMode::bfly, i, r.b.i32(1), r.b.i32(31), r.b.i32(-1));
  }));
  CHECK(!possible([](Rows& r, Value i) { return r.b.add(i, r.b.tid()); }));
  CHECK(!possible([](Rows& r, Value) {
    ir::Attributes attributes;
    attributes.space = Space::global;
    attributes.alignment = 4;
    attributes.is_volatile = true;
    return r.b.op(ir::Op::load, Type::i32, {r.x}, 0, attributes);
  }));
  const auto generic = [](Space space) {
    return [space](Rows& r, Value i) {
      ir::Attributes attributes;
      attributes.space = space;
      const Value address = r.b.op(ir::Op::to_generic, Type::i64, {r.b.zext(Type::i64, i)}, 0, attributes);
      return r.b.op(ir::Op::trunc, Type::i32, {address});
    };
  };
  CHECK(possible(generic(Space::shared)));
  CHECK(!possible(generic(Space::local)));
}

TEST_CASE("a lane runs loops that follow each other before the next lane begins") {
  const std::vector<cuts::LaneLoop> loops = found_loops(UnrolledRows().b, true);
  REQUIRE(loops.size() == 1);
  // At most three elements are left over.
  REQUIRE(loops[0].short_loops.size() == 1);
  CHECK(loops[0].short_loops[0].copies == 3);

  // Vectors load for all lanes at once what is between the loops.
  const auto count = [](const std::function<void(Rows&)>& between) {
    return found_loops(UnrolledRows(between).b, true).size();
  };
  CHECK(count([](Rows& r) { r.b.load(Type::i32, r.row); }) == 2);
  CHECK(count([](Rows& r) { r.b.store(r.out, r.first); }) == 2);
  CHECK(count([](Rows& r) {
          for (int n = 0; n < 50; ++n) r.b.add(r.first, r.b.i32(n));
        }) == 2);
}

/// Runs the kernel in all variants with rows of `length(row)` elements.
void check_sums(const ir::Module& module, const std::function<std::uint32_t(std::uint32_t)>& length) {
  constexpr std::uint32_t kThreads = 80, kBlocks = 2, kRows = kThreads * kBlocks, kColumns = 64;
  TestDevice device;
  for (const Specialisation& variant : variants({kThreads, 1, 1})) {
    CAPTURE(name(variant));
    device.clear();
    auto begin = device.allocate<std::uint32_t>(kRows + 1), x = device.allocate<std::uint32_t>(kColumns);
    for (std::uint32_t row = 0; row < kRows; ++row) begin[row + 1] = begin[row] + length(row);
    auto column = device.allocate<std::uint32_t>(begin[kRows] + 1),
         out = device.allocate<std::uint32_t>(kRows);
    for (std::uint32_t i = 0; i < column.size(); ++i) column[i] = i * 29 % kColumns;
    for (std::uint32_t i = 0; i < kColumns; ++i) x[i] = i * 2654435761u;
    const auto code = compile_ir(module, variant);
    REQUIRE(!device.launch(*code, variant, {kBlocks, 1, 1},
                           Params().add(begin.data()).add(column.data()).add(x.data()).add(out.data())));
    for (std::uint32_t row = 0; row < kRows; ++row) {
      std::uint32_t sum = 0;
      for (std::uint32_t i = begin[row]; i < begin[row + 1]; ++i) sum = sum * 3 + (x[column[i]] ^ i);
      REQUIRE(out[row] == sum);
    }
  }
}

TEST_CASE("rows of all lengths give their sums in every variant") {
  Rows r;
  r.loop([&](Value i, Value sum) {
    return r.b.add(r.b.mul(sum, r.b.i32(3)), r.b.xor_(r.element(r.x, r.element(r.column, i)), i));
  });
  check_sums(r.b.module(), [](std::uint32_t row) { return row * 7 % 13 * (row % 3); });
}

TEST_CASE("rows of all lengths give their sums in loops that follow each other") {
  const ir::Module module = UnrolledRows().b.module();
  check_sums(module, [](std::uint32_t row) { return row * 7 % 13 * (row % 3); });
  check_sums(module, [](std::uint32_t row) { return row % 9; });
  // No lane of the last warp of a block comes to the loops.
  check_sums(module, [](std::uint32_t row) { return row % 80 < 64 ? row % 11 : 0; });
  check_sums(module, [](std::uint32_t) { return 0; });
}

}  // namespace
}  // namespace quern::cpu::test
