// SPDX-License-Identifier: Apache-2.0
// The tests check which integers are computed with 16 bits, and which remainders are expected to be the
// dividend.
#include "cpu/analysis/halves.hpp"
#include "testing.hpp"

using namespace quern::cpu;
using analysis::Assumption;
using test::analysed;
using test::block_of;
using test::IrBuilder;

TEST_CASE("sums of bytes have 16 bits while these can hold them") {
  for (const ir::Type wide : {ir::Type::i32, ir::Type::i64}) {
    IrBuilder b;
    const auto address = b.add(b.param(ir::Type::i64), b.zext(ir::Type::i64, b.tid()));
    const auto scale = b.and_(b.param(wide), b.constant(wide, 7));
    const auto byte = b.zext(wide, b.load(ir::Type::i8, address));
    const auto sign = b.sext(wide, b.load(ir::Type::i8, address, ir::Space::global, 1));
    const auto sum = b.add(byte, sign), scaled = b.mul(sum, scale);
    const auto most = b.mul(byte, b.constant(wide, 128)), more = b.mul(byte, b.constant(wide, 129));
    const auto least = b.mul(sign, b.constant(wide, 256)), less = b.mul(sign, b.constant(wide, 257));
    const auto is_three = b.icmp(ir::Icmp::eq, scaled, b.constant(wide, 3));
    const auto is_more = b.icmp(ir::Icmp::eq, scaled, b.constant(wide, 40'000));
    const auto chosen = b.select(is_three, sum, byte);
    b.ret();
    const analysis::Analysis a = analysed(b, block_of(64));
    for (const ir::Value value : {byte, sign, sum, scaled, most, least, is_three, chosen})
      CHECK(a.halves[value]);
    for (const ir::Value value : {scale, more, less, is_more}) CHECK_FALSE(a.halves[value]);
  }
}

TEST_CASE("numbers that do not come from bytes keep their width") {
  IrBuilder b;
  const auto address = b.add(b.param(ir::Type::i64), b.zext(ir::Type::i64, b.shl(b.tid(), 3)));
  const auto word = b.and_(b.load(ir::Type::i32, address), b.i32(15));
  const auto byte = b.zext(ir::Type::i32, b.load(ir::Type::i8, address));
  const auto of_words = b.add(word, word), of_both = b.add(word, byte), of_index = b.add(byte, b.tid());
  const auto half = b.zext(ir::Type::i32, b.load(ir::Type::i16, address));
  const auto flag = b.zext(ir::Type::i32, b.icmp(ir::Icmp::eq, half, byte));
  const auto narrow = b.add(b.load(ir::Type::i16, address), b.trunc(ir::Type::i16, byte));
  b.ret();
  const analysis::Analysis a = analysed(b, block_of(64));
  for (const ir::Value value : {word, of_words, of_both, of_index, half, flag, narrow})
    CHECK_FALSE(a.halves[value]);
}

namespace {

struct Wrapped {
  ir::Value next, previous, far, other_bound, sum;
};

/// Remainders by `width`, where a branch on `how` has compared an index with a bound.
Wrapped wrap(IrBuilder& b, ir::Icmp how, bool if_true, bool joined) {
  const auto inside = b.block(), outside = b.block();
  const auto width = b.param(ir::Type::i64), other = b.param(ir::Type::i64);
  const auto x = b.sext(ir::Type::i64, b.global_index());
  const auto y = b.sext(ir::Type::i64, b.global_index(1));
  auto condition = b.icmp(how, x, width);
  if (joined) {
    const auto second = b.icmp(how, y, other);
    condition = if_true ? b.and_(second, condition) : b.or_(second, condition);
  }
  b.cond_br(condition, if_true ? inside : outside, if_true ? outside : inside);
  b.at(outside).ret();
  b.at(inside);
  const auto divisor = b.select(b.icmp(ir::Icmp::eq, width, b.i64(0)), b.i64(1), width);
  const auto rest = [&](ir::Value a, ir::Value n) { return b.op(ir::Op::srem, ir::Type::i64, {a, n}); };
  const Wrapped wrapped{rest(b.add(x, b.i64(1)), divisor), rest(b.sub(x, b.i64(1)), width),
                        rest(b.add(x, b.i64(1000)), width), rest(x, b.param(ir::Type::i64)),
                        rest(b.add(x, width), width)};
  b.ret();
  return wrapped;
}

}  // namespace

TEST_CASE("a remainder is expected to be the dividend behind a test of the index") {
  using ir::Icmp;
  for (const bool joined : {false, true})
    for (const auto& [how, if_true] : {std::pair{Icmp::slt, true}, std::pair{Icmp::ult, true},
                                       std::pair{Icmp::sge, false}, std::pair{Icmp::uge, false}}) {
      IrBuilder b;
      const Wrapped w = wrap(b, how, if_true, joined);
      const analysis::Analysis a = analysed(b, block_of(64), Assumption::optimistic);
      CHECK(a.below[w.next]);
      CHECK(a.below[w.previous]);
      for (const ir::Value value : {w.far, w.other_bound, w.sum}) {
        CHECK(a.assumed[value]);
        CHECK_FALSE(a.below[value]);
      }
      const analysis::Analysis safe = analysed(b, block_of(64), Assumption::safe);
      CHECK_FALSE(safe.below[w.next]);
    }
}

TEST_CASE("a remainder is not expected to be the dividend on the other side of the test") {
  using ir::Icmp;
  for (const auto& [how, if_true] : {std::pair{Icmp::slt, false}, std::pair{Icmp::sge, true},
                                     std::pair{Icmp::eq, true}, std::pair{Icmp::ne, false}}) {
    IrBuilder b;
    const Wrapped w = wrap(b, how, if_true, false);
    const analysis::Analysis a = analysed(b, block_of(64), Assumption::optimistic);
    CHECK(a.assumed[w.next]);
    CHECK_FALSE(a.below[w.next]);
  }
}
