// SPDX-License-Identifier: Apache-2.0
// These tests say what the analysis assumes of indices at the edges of the data.
#include <functional>

#include "testing.hpp"

using namespace quern::cpu;
using analysis::Assumption;
using analysis::LanePatternKind;
using ir::Icmp;
using ir::Op;
using ir::Type;
using ir::Value;
using test::analysed;
using test::block_of;
using test::IrBuilder;
using test::is_strided;

namespace {

/// An element of an array, by an index that `edge` makes of the thread's number in the grid.
struct Element {
  IrBuilder b;
  Value in = b.param(Type::i64), n = b.param(Type::i32), thread = b.global_index();
  Value index = ir::kNone;

  explicit Element(const std::function<Value(Element&)>& edge) {
    index = edge(*this);
    b.load(Type::i32, b.add(in, b.shl(b.sext(Type::i64, index), 2)));
    b.ret();
  }
  Value op(Op op, Value other) { return b.op(op, Type::i32, {thread, other}); }
  Value next() { return b.add(thread, b.i32(1)); }
  Value choose(Icmp how, Value bound, Value if_true, Value if_false) {
    return b.select(b.icmp(how, thread, bound), if_true, if_false);
  }
  bool stays_affine(Assumption assumption) const {
    return is_strided(analysed(b, block_of(256), assumption).patterns[index], 1);
  }
};

}  // namespace

TEST_CASE("lanes are assumed not to be at the edges of the data") {
  const std::function<Value(Element&)> forms[] = {
      [](Element& e) { return e.op(Op::smin, e.n); },
      [](Element& e) { return e.op(Op::umin, e.n); },
      [](Element& e) { return e.b.op(Op::smax, Type::i32, {e.b.i32(0), e.b.add(e.thread, e.b.i32(-3))}); },
      [](Element& e) { return e.b.op(Op::iabs, Type::i32, {e.b.add(e.thread, e.b.i32(-3))}); },
      [](Element& e) { return e.choose(Icmp::slt, e.b.i32(3), e.b.sub(e.b.i32(3), e.thread), e.next()); },
      [](Element& e) { return e.choose(Icmp::sgt, e.n, e.b.i32(0), e.next()); },
      [](Element& e) { return e.choose(Icmp::ult, e.n, e.next(), e.n); },
      [](Element& e) { return e.choose(Icmp::slt, e.n, e.thread, e.b.sub(e.thread, e.n)); },
      [](Element& e) { return e.choose(Icmp::eq, e.b.i32(0), e.b.i32(0), e.next()); },
      [](Element& e) { return e.b.add(e.thread, e.choose(Icmp::ne, e.n, e.b.i32(1), e.b.i32(0))); },
      [](Element& e) { return e.b.add(e.thread, e.choose(Icmp::slt, e.b.i32(1), e.n, e.b.i32(0))); },
  };
  for (std::size_t i = 0; i < std::size(forms); ++i) {
    CAPTURE(i);
    const Element element(forms[i]);
    CHECK(element.stays_affine(Assumption::optimistic));
    CHECK_FALSE(element.stays_affine(Assumption::safe));
  }
}

TEST_CASE("an index from the end is assumed not to be negative") {
  const Element element([](Element& e) {
    const Value index = e.b.add(e.n, e.b.xor_(e.thread, e.b.i32(-1)));
    return e.b.add(index, e.b.and_(e.b.op(Op::ashr, Type::i32, {index, e.b.i32(31)}), e.n));
  });
  const auto pattern = [&](Assumption assumption) {
    return analysed(element.b, block_of(256), assumption).patterns[element.index];
  };
  CHECK(is_strided(pattern(Assumption::optimistic), -1));
  CHECK(pattern(Assumption::safe).kind == LanePatternKind::varying);
}

TEST_CASE("nothing is assumed of indices in a block, of small bounds and of numbers that are no indices") {
  const std::function<Value(Element&)> forms[] = {
      [](Element& e) { return e.b.op(Op::smin, Type::i32, {e.b.tid(), e.n}); },
      [](Element& e) { return e.op(Op::smin, e.b.i32(100)); },
      [](Element& e) { return e.op(Op::smax, e.b.i32(100)); },
      [](Element& e) { return e.op(Op::smax, e.n); },
      [](Element& e) { return e.choose(Icmp::slt, e.n, e.b.i32(7), e.b.i32(5)); },
      [](Element& e) { return e.choose(Icmp::slt, e.n, e.b.sub(e.n, e.thread), e.b.i32(5)); },
      [](Element& e) {
        const Value number = e.op(Op::smin, e.n);
        e.b.store(e.in, number);
        return e.b.load(Type::i32, e.b.add(e.in, e.b.zext(Type::i64, e.b.tid())));
      },
  };
  for (std::size_t i = 0; i < std::size(forms); ++i) {
    CAPTURE(i);
    const Element element(forms[i]);
    CHECK_FALSE(element.stays_affine(Assumption::optimistic));
  }
}

TEST_CASE("an assumed index has the range of the minimum or maximum") {
  const Element element([](Element& e) {
    return e.b.op(Op::smin, Type::i32, {e.b.op(Op::smax, Type::i32, {e.thread, e.b.i32(0)}), e.b.i32(999)});
  });
  const analysis::LanePattern pattern =
      analysed(element.b, block_of(256), Assumption::optimistic).patterns[element.index];
  CHECK(pattern.kind == LanePatternKind::affine);
  CHECK(pattern.min == 0);
  CHECK(pattern.max == 999);
}
