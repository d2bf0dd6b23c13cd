// SPDX-License-Identifier: Apache-2.0
// Loops whose second iteration runs before it is known whether any lane takes part.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "cpu/cuts/eager_loops.hpp"
#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Icmp;
using ir::Space;
using ir::Type;
using ir::Value;

/// out[i] = how many bytes of `pattern`, `stride` apart, follow each other in `text` from byte i on
struct Match {
  IrBuilder b;
  Value text = b.param(Type::i64), pattern = b.param(Type::i64), out = b.param(Type::i64);
  Value stride = b.param(Type::i64), length = b.param(Type::i32);
  Value index = b.zext(Type::i64, b.global_index());

  using Differs = std::function<Value(Match&, Value k, Value offset)>;
  explicit Match(const Differs& differs = compared) {
    const auto head = b.block(), more = b.block(), latch = b.block(), differ = b.block(), all = b.block(),
               end = b.block();
    const Value zero = b.i32(0), one = b.i32(1);
    b.br(head);
    b.at(head);
    const Value k = b.phi(Type::i32, {{0, zero}});
    b.cond_br(differs(*this, k, b.mul(b.zext(Type::i64, k), stride)), differ, more);
    b.at(more);
    const Value next = b.add(k, one);
    b.cond_br(b.icmp(Icmp::slt, next, length), latch, all);
    b.at(latch);
    b.incoming(k, latch, next);
    b.br(head);
    b.at(differ);
    const Value here = b.phi(Type::i32, {{head, k}});
    b.br(end);
    b.at(all);
    const Value behind = b.phi(Type::i32, {{more, next}});
    b.br(end);
    b.at(end);
    const Value found = b.phi(Type::i32, {{differ, here}, {all, behind}});
    b.store(b.add(out, b.shl(index, 2)), found);
    b.ret();
  }

  Value byte(Value address) { return b.load(Type::i8, address); }
  static Value compared(Match& m, Value, Value offset) {
    const Value own = m.byte(m.b.add(m.b.add(m.text, m.index), offset));
    return m.b.icmp(Icmp::ne, own, m.byte(m.b.add(m.pattern, offset)));
  }
};

bool is_eager(const Match& match, bool any_cost) {
  Specialisation specialisation;
  specialisation.block = {256, 1, 1};
  const ir::Module module = match.b.module();
  const ir::Function& function = module.functions[0];
  const auto safe = analysis::analyse(module, function, specialisation, analysis::Assumption::safe);
  const auto full = analysis::analyse(module, function, specialisation, analysis::Assumption::optimistic);
  REQUIRE(safe.has_value());
  REQUIRE(full.has_value());
  const auto eager = cuts::find_eager_loops(function, *safe, any_cost ? nullptr : &full->patterns);
  return std::ranges::any_of(eager, [](ir::BlockId last) { return last != ir::kNone; });
}

TEST_CASE("a loop that compares neighbouring bytes until they differ is eager") {
  CHECK(is_eager(Match(), false));
}

TEST_CASE("loops are not eager if gathers would run for nothing, or their ends do not depend on elements") {
  const Match::Differs gathers = [](Match& m, Value, Value offset) {
    const Value own = m.byte(m.b.add(m.b.add(m.text, m.b.shl(m.index, 2)), offset));
    return m.b.icmp(Icmp::ne, own, m.byte(m.b.add(m.pattern, offset)));
  };
  CHECK(!is_eager(Match(gathers), false));
  CHECK(is_eager(Match(gathers), true));
  const Match::Differs counts = [](Match& m, Value k, Value) { return m.b.icmp(Icmp::sgt, k, m.b.tid()); };
  CHECK(!is_eager(Match(counts), false));
}

TEST_CASE("loops whose iterations have an effect are not eager") {
  const auto possible = [](const std::function<void(Match&)>& effect) {
    return is_eager(Match([&](Match& m, Value k, Value offset) {
                      effect(m);
                      return Match::compared(m, k, offset);
                    }),
                    true);
  };
  CHECK(possible([](Match&) {}));
  CHECK(!possible([](Match& m) { m.b.store(m.out, m.b.i32(1)); }));
  CHECK(!possible([](Match& m) { m.b.atomic(ir::AtomicOp::add, m.out, m.b.i32(1)); }));
  CHECK(!possible([](Match& m) {
    ir::Attributes attributes;
    attributes.space = Space::global;
    attributes.alignment = 4;
    attributes.is_volatile = true;
    m.b.op(ir::Op::load, Type::i32, {m.text}, 0, attributes);
  }));
  CHECK(!possible(
      [](Match& m) { m.b.shuffle(ir::ShuffleMode::bfly, m.b.tid(), m.b.i32(1), m.b.i32(31), m.b.i32(-1)); }));
}

struct Arrays {
  std::span<std::uint8_t> text, pattern;
  std::span<std::uint32_t> out;
};

TEST_CASE("eager loops count equal bytes, and read nothing where no lane does") {
  constexpr std::uint32_t kThreads = 80, kBlocks = 4, kPlaces = kThreads * kBlocks, kLength = 6;
  const Match match;
  const ir::Module module = match.b.module();
  TestDevice device;
  for (const Specialisation& variant : variants({kThreads, 1, 1})) {
    CAPTURE(name(variant));
    device.clear();
    const Arrays a{device.allocate<std::uint8_t>(kPlaces + kLength), device.allocate<std::uint8_t>(kLength),
                   device.allocate<std::uint32_t>(kPlaces)};
    const auto code = compile_ir(module, variant);
    const auto run = [&](std::uint64_t stride) {
      return device.launch(
          *code, variant, {kBlocks, 1, 1},
          Params().add(a.text.data()).add(a.pattern.data()).add(a.out.data()).add(stride).add(kLength));
    };
    // No byte, some bytes, and all bytes of a warp are those of the pattern.
    for (std::uint32_t i = 0; i < a.text.size(); ++i)
      a.text[i] = static_cast<std::uint8_t>(i < 64 ? 1 : i < 192 ? i * 2654435761u >> 30 : 2);
    for (std::uint32_t k = 0; k < kLength; ++k) a.pattern[k] = 2;
    REQUIRE(!run(1));
    for (std::uint32_t i = 0; i < kPlaces; ++i) {
      std::uint32_t equal = 0;
      while (equal < kLength && a.text[i + equal] == a.pattern[equal]) ++equal;
      REQUIRE(a.out[i] == equal);
    }
    // All lanes leave in the first iteration. The second one would read outside of the window.
    std::ranges::fill(a.text, std::uint8_t{1});
    REQUIRE(!run(std::uint64_t{1} << 41));
    REQUIRE(std::ranges::count(a.out, 0u) == kPlaces);
  }
}

}  // namespace
}  // namespace quern::cpu::test
