// SPDX-License-Identifier: Apache-2.0
// Index arithmetic: rows and columns, edges that go around, bounds. %n are affine in the thread at first, %u
// are the same in all threads. Full code assumes that a warp has one quotient and that nothing is negative;
// with this data some warps do, and others leave full code, go through branches and loops in masked code, and
// come back.
#include "writer.hpp"

namespace quern::oracle {
namespace {

std::string n(Writer& w) { return Text{"%n{}", w.random.below(kN)}; }
std::string u(Writer& w) { return Text{"%u{}", w.random.below(kU)}; }
int small(Writer& w) { return static_cast<int>(w.random.below(7)) - 3; }

// A divisor that is not zero: the same in all threads, or a constant.
std::string divisor(Writer& w) {
  static constexpr const char* kDivisors[] = {"1",  "2",   "7",   "16",  "32",   "64",
                                              "96", "100", "256", "300", "1024", "4096"};
  return w.random.chance(70) ? u(w) : std::string(w.pick(kDivisors));
}

void combine(Writer& w) {
  switch (w.random.below(7)) {
    case 0:
      return w.line(Text{"add.s32 {}, {}, {}", n(w), n(w), small(w)});
    case 1:
      return w.line(Text{"{}.s32 {}, {}, {}", w.pick({"add", "sub"}), n(w), n(w), u(w)});
    case 2:
      return w.line(Text{"{}.s32 {}, {}, {}", w.pick({"add", "sub"}), n(w), n(w), n(w)});
    case 3:
      return w.line(Text{"mad.lo.s32 {}, {}, {}, {}", n(w), n(w),
                         w.random.chance(50) ? u(w) : std::to_string(small(w)), n(w)});
    case 4:
      return w.line(Text{"{}.s32 {}, {}, {}", w.pick({"min", "max"}), n(w), n(w),
                         w.random.chance(50) ? u(w) : std::string("0")});
    case 5:
      return w.line(
          Text{"{} {}, {}, {}", w.pick({"shl.b32", "shr.s32", "shr.u32"}), n(w), n(w), w.random.below(6)});
    default:
      return w.line(Text{"selp.b32 {}, {}, {}, {}", n(w), n(w), w.random.chance(40) ? u(w) : n(w), w.p()});
  }
}

void compare(Writer& w) {
  const std::string other = w.random.chance(40) ? std::string("0") : w.random.chance(50) ? u(w) : n(w);
  w.line(Text{"setp.{}.{} {}, {}, {}", w.pick({"lt", "ge", "eq", "ne", "gt"}),
              w.random.chance(75) ? "s32" : "u32", w.p(), n(w), other});
}

// Reads the input at an index: whole words, bytes, or halves, with a 32-bit or a 64-bit number.
void read_at(Writer& w) {
  const unsigned shift = w.random.below(3);
  const std::uint64_t count = w.threads * std::uint64_t{64} >> shift;
  const bool tested = w.random.chance(50);
  const std::string index = n(w);
  if (tested) {
    w.line(Text{"setp.lt.u32 %q0, {}, {}", index, count});
    w.line(Text{"selp.b32 %t6, {}, 0, %q0", index});
  } else {
    w.line(Text{"rem.u32 %t6, {}, {}", index, count});
  }
  w.line(Text{"mul.wide.{} %td6, %t6, {}", w.pick({"s32", "u32"}), 1u << shift});
  w.line("add.s64 %td6, %td2, %td6");
  static constexpr const char* kTypes[] = {"u8", "u16", "u32"};
  const std::string guard = tested && w.random.chance(40) ? "@%q0 " : "";
  w.line(
      Text{"{}ld.global.{} %t7, [%td6]", guard.empty() ? "" : "mov.u32 %t7, 0;\n\t" + guard, kTypes[shift]});
  w.line(Text{"xor.b32 {}, {}, %t7", w.r(), w.r()});
}

// Writes to one of the thread's own words.
void write_at(Writer& w) {
  w.line(Text{"rem.u32 %t6, {}, {}", n(w), kScratchWords});
  w.line("mul.wide.u32 %td6, %t6, 4");
  w.line("add.s64 %td6, %td8, %td6");
  w.line(Text{"st.global.u32 [%td6], {}", w.random.chance(50) ? n(w) : w.r()});
}

void mix(Writer& w) {
  if (w.random.chance(40)) {
    w.line(Text{"cvt.{}.{}32 %td6, {}", w.pick({"s64", "u64"}), w.pick({"s", "u"}), n(w)});
    return w.line(Text{"add.s64 {}, {}, %td6", w.rd(), w.rd()});
  }
  w.line(Text{"mad.lo.s32 {}, {}, 31, {}", w.r(), w.r(), n(w)});
}

}  // namespace

IndexDivision divide(Writer& w, bool around) {
  std::string number = n(w);
  const std::string by = around && w.random.chance(50) ? "%u0" : divisor(w);
  if (w.random.chance(15)) {  // the same in all threads
    number = "%t7";
    w.line(Text{"sub.s32 %t7, {}, {}", u(w), u(w)});
  } else if (around &&
             w.random.chance(60)) {  // in some warps negative in all lanes, in others in some or in none
    number = "%t7";
    w.line(Text{"add.s32 %t7, %t1, {}", -static_cast<int>(w.random.below(160))});
  }
  const std::string type = w.random.chance(60) ? "s32" : "u32";
  const bool both = w.random.chance(40), quotient = both || w.random.chance(40);
  const std::string result = n(w);
  if (both) w.line(Text{"div.{} %t6, {}, {}", type, number, by});
  w.line(Text{"{}.{} {}, {}, {}", quotient && !both ? "div" : "rem", type, result, number, by});
  if (both) w.line(Text{"mov.u32 {}, %t6", n(w)});
  return {by, result};
}

std::string ask(Writer& w, const IndexDivision& division) {
  const std::string answer = w.p();
  w.line(Text{"setp.{}.s32 {}, {}, {}", w.pick({"lt", "lt", "ge", "gt", "ne"}), answer, division.result,
              w.random.chance(70)   ? std::string("0")
              : w.random.chance(50) ? division.divisor
                                    : u(w)});
  return answer;
}

// As in Python's remainder, which has the sign of the divisor, or as for a number that walks around an edge.
void correct(Writer& w, const IndexDivision& division, const std::string& answer) {
  const std::string& number = division.result;
  if (w.random.chance(25))  // of the answer alone
    return w.line(Text{"selp.b32 {}, {}, {}, {}", w.r(), w.r(), w.random.chance(50) ? u(w) : w.r(), answer});
  if (w.random.chance(40))
    return w.line(Text{"@{} add.s32 {}, {}, {}", answer, number, number, division.divisor});
  w.line(Text{"add.s32 %t6, {}, {}", number, w.random.chance(60) ? division.divisor : n(w)});
  w.line(Text{"selp.b32 {}, %t6, {}, {}", w.random.chance(60) ? w.r() : n(w), number, answer});
}

void begin_indices(Writer& w, std::uint64_t spare) {
  static constexpr const char* kMasks[] = {"31", "255", "1023", "2147483647", "-1"};
  static constexpr const char* kWidths[] = {"1", "31", "32", "33", "64", "100", "256", "1000", "4096"};
  for (unsigned i = 0; i < kU; ++i) {
    if (i != 0 && w.random.chance(30)) {
      w.line(Text{"mov.u32 %u{}, {}", i, w.pick(kWidths)});
      continue;
    }
    w.line(Text{"ld.global.u32 %u{}, [%td2+{}]", i, spare + 4 * i});
    w.line(Text{"and.b32 %u{0}, %u{0}, {1}", i, i == 0 ? std::string("1023") : std::string(w.pick(kMasks))});
    w.line(Text{"or.b32 %u{0}, %u{0}, {1}", i, i == 0 ? 256 : 1});
  }
  for (unsigned i = 0; i < kN; ++i) {
    switch (i < 2 ? i : w.random.below(5)) {
      case 0:
        w.line(Text{"mov.u32 %n{}, %t0", i});
        break;
      case 1:
        w.line(Text{"mov.u32 %n{}, %t1", i});
        break;
      case 2:
        w.line(Text{"add.s32 %n{}, %t1, {}", i, static_cast<int>(w.random.below(257)) - 128});
        break;
      case 3:
        w.line(Text{"mad.lo.s32 %n{}, %t1, {}, {}", i, small(w), u(w)});
        break;
      default:
        w.line(Text{"sub.s32 %n{}, {}, %t1", i, u(w)});
    }
  }
}

void index(Writer& w) {
  const unsigned kind = w.random.below(100);
  if (kind < 30) {
    const IndexDivision division = divide(w, false);
    if (w.random.chance(30)) correct(w, division, ask(w, division));
    return;
  }
  if (kind < 55) return combine(w);
  if (kind < 75) return compare(w);
  if (kind < 85) return read_at(w);
  if (kind < 91) return write_at(w);
  mix(w);
}

void end_indices(Writer& w) {
  for (unsigned i = 0; i < kN; ++i) w.line(Text{"mad.lo.s32 %r{0}, %n{1}, 31, %r{0}", i % 4, i});
}

}  // namespace quern::oracle
