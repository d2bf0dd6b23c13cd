// SPDX-License-Identifier: Apache-2.0
#include "writer.hpp"

namespace quern::oracle {

std::string Writer::constant32() {
  static constexpr const char* kInteresting[] = {"0",     "1",          "-1",          "2",       "31",
                                                 "32",    "33",         "255",         "127",     "-128",
                                                 "65535", "2147483647", "-2147483648", "1000003", "-32768"};
  return random.chance(70) ? random.pick(kInteresting)
                           : std::to_string(static_cast<std::int32_t>(random.next()));
}

std::string Writer::constant64() {
  static constexpr const char* kInteresting[] = {"0",
                                                 "1",
                                                 "-1",
                                                 "63",
                                                 "4294967295",
                                                 "4294967296",
                                                 "-4294967296",
                                                 "9223372036854775807",
                                                 "0x8000000000000000"};
  return random.chance(70) ? random.pick(kInteresting)
                           : std::to_string(static_cast<std::int64_t>(random.next()));
}

void integer32(Writer& w) {
  const std::string guard = w.guard();
  switch (w.random.below(16)) {
    case 0:
    case 1:
    case 2:
      return w.line(Text{"{}{} {}, {}, {}", guard,
                         w.pick({"add.s32", "sub.s32", "mul.lo.s32", "mul.hi.s32", "mul.hi.u32", "and.b32",
                                 "or.b32", "xor.b32", "min.s32", "max.s32", "min.u32", "max.u32",
                                 "add.sat.s32", "sub.sat.s32", "mul24.lo.s32", "mul24.hi.u32"}),
                         w.r(), w.r(), w.r_or_constant()});
    case 3:
      return w.line(Text{"{}{} {}, {}, {}, {}", guard,
                         w.pick({"mad.lo.s32", "mad.hi.u32", "mad.hi.s32", "mad.hi.sat.s32", "mad24.lo.u32",
                                 "sad.u32", "sad.s32"}),
                         w.r(), w.r(), w.r_or_constant(), w.r()});
    case 4:
      return w.line(Text{"{}{} {}, {}, {}", guard, w.pick({"div.s32", "div.u32", "rem.s32", "rem.u32"}),
                         w.r(), w.r(),
                         w.random.chance(70) ? std::to_string(1 + w.random.below(1000)) : w.r()});
    case 5:
    case 6:
      return w.line(Text{"{}{} {}, {}, {}", guard, w.pick({"shl.b32", "shr.s32", "shr.u32"}), w.r(), w.r(),
                         w.amount(40)});
    case 7:
      return w.line(Text{"{}{} {}, {}", guard,
                         w.pick({"abs.s32", "neg.s32", "not.b32", "cnot.b32", "brev.b32"}), w.r(), w.r()});
    case 8:
      return w.line(Text{"{}{} {}, {}", guard,
                         w.pick({"popc.b32", "clz.b32", "bfind.u32", "bfind.s32", "bfind.shiftamt.u32"}),
                         w.r(), w.r()});
    case 9:
      return w.line(
          Text{"{}lop3.b32 {}, {}, {}, {}, {}", guard, w.r(), w.r(), w.r(), w.r(), w.random.below(256)});
    case 10:
      return w.line(Text{"{}shf.{}.{}.b32 {}, {}, {}, {}", guard, w.pick({"l", "r"}),
                         w.pick({"wrap", "clamp"}), w.r(), w.r(), w.r(), w.amount(40)});
    case 11:
      return w.line(Text{"{}prmt.b32{} {}, {}, {}, {}", guard,
                         w.random.chance(30) ? w.pick({".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"}) : "",
                         w.r(), w.r(), w.r(), w.amount(65536)});
    case 12:
      return w.line(Text{"{}bfe.{} {}, {}, {}, {}", guard, w.pick({"u32", "s32"}), w.r(), w.r(), w.amount(36),
                         w.amount(36)});
    case 13:
      return w.line(
          Text{"{}bfi.b32 {}, {}, {}, {}, {}", guard, w.r(), w.r(), w.r(), w.amount(36), w.amount(36)});
    case 14:
      return w.line(Text{"{}slct.{} {}, {}, {}, {}", guard, w.pick({"b32.s32", "u32.s32"}), w.r(), w.r(),
                         w.r_or_constant(), w.r()});
    default:
      return w.line(Text{"{}selp.b32 {}, {}, {}, {}", guard, w.r(), w.r(), w.r_or_constant(), w.p()});
  }
}

void integer64(Writer& w) {
  const std::string guard = w.guard();
  switch (w.random.below(10)) {
    case 0:
    case 1:
      return w.line(Text{"{}{} {}, {}, {}", guard,
                         w.pick({"add.s64", "sub.s64", "mul.lo.s64", "and.b64", "or.b64", "xor.b64",
                                 "min.s64", "max.u64", "mul.hi.u64", "mul.hi.s64", "min.u64", "max.s64"}),
                         w.rd(), w.rd(), w.rd_or_constant()});
    case 2:
      return w.line(
          Text{"{}mul.wide.{} {}, {}, {}", guard, w.pick({"s32", "u32"}), w.rd(), w.r(), w.r_or_constant()});
    case 3:
      return w.line(Text{"{}mad.wide.{} {}, {}, {}, {}", guard, w.pick({"s32", "u32"}), w.rd(), w.r(),
                         w.r_or_constant(), w.rd()});
    case 4:
      return w.line(Text{"{}{} {}, {}, {}", guard, w.pick({"shl.b64", "shr.s64", "shr.u64"}), w.rd(), w.rd(),
                         w.amount(70)});
    case 5:
      return w.line(Text{"{}{} {}, {}", guard,
                         w.pick({"neg.s64", "not.b64", "brev.b64", "abs.s64", "cnot.b64"}), w.rd(), w.rd()});
    case 6:
      return w.line(Text{"{}{} {}, {}", guard,
                         w.pick({"popc.b64", "clz.b64", "bfind.u64", "bfind.s64", "bfind.shiftamt.s64"}),
                         w.r(), w.rd()});
    case 7:
      return w.line(Text{"{}{} {}, {}, {}", guard, w.pick({"div.s64", "div.u64", "rem.s64", "rem.u64"}),
                         w.rd(), w.rd(),
                         w.random.chance(60) ? std::to_string(1 + w.random.below(1000)) : w.rd()});
    case 8:
      return w.line(Text{"{}bfe.{} {}, {}, {}, {}", guard, w.pick({"u64", "s64"}), w.rd(), w.rd(),
                         w.amount(68), w.amount(68)});
    default:
      return w.line(
          Text{"{}bfi.b64 {}, {}, {}, {}, {}", guard, w.rd(), w.rd(), w.rd(), w.amount(68), w.amount(68)});
  }
}

// 16-bit arithmetic, from registers of 32 bits and back.
void short_integer(Writer& w) {
  for (unsigned i = 0; i < 3; ++i) w.line(Text{"cvt.u16.u32 %h{}, {}", i, w.r()});
  switch (w.random.below(5)) {
    case 0:
      w.line(Text{"{} %h0, %h1, %h2",
                  w.pick({"add.s16", "sub.u16", "mul.lo.s16", "mul.hi.s16", "mul.hi.u16", "min.s16",
                          "max.u16", "and.b16", "xor.b16", "div.s16", "rem.u16", "min.u16", "max.s16"})});
      break;
    case 1:
      w.line(Text{"{} %h0, %h1, {}", w.pick({"shl.b16", "shr.s16", "shr.u16"}), w.amount(20)});
      break;
    case 2:
      w.line(Text{"{} %h0, %h1", w.pick({"neg.s16", "abs.s16", "not.b16", "cnot.b16"})});
      break;
    case 3:
      return w.line(Text{"{} {}, %h1, %h2", w.pick({"mul.wide.s16", "mul.wide.u16"}), w.r()});
    default:
      w.line(Text{"{} %h0, %h1, %h2, %h0", w.pick({"mad.lo.s16", "mad.hi.u16", "sad.s16", "sad.u16"})});
      break;
  }
  w.line(Text{"{} {}, %h0", w.pick({"cvt.u32.u16", "cvt.s32.s16"}), w.r()});
}

void carry_chain(Writer& w) {
  switch (w.random.below(5)) {
    case 0:
      w.line(Text{"add.cc.u32 {}, {}, {}", w.r(), w.r(), w.r_or_constant()});
      if (w.random.chance(50)) w.line(Text{"addc.cc.u32 {}, {}, {}", w.r(), w.r(), w.r()});
      return w.line(Text{"addc.u32 {}, {}, {}", w.r(), w.r(), w.r_or_constant()});
    case 1:
      w.line(Text{"sub.cc.u32 {}, {}, {}", w.r(), w.r(), w.r_or_constant()});
      if (w.random.chance(50)) w.line(Text{"subc.cc.u32 {}, {}, {}", w.r(), w.r(), w.r()});
      return w.line(Text{"subc.u32 {}, {}, {}", w.r(), w.r(), w.r_or_constant()});
    case 2:
      w.line(Text{"mad.lo.cc.u32 {}, {}, {}, {}", w.r(), w.r(), w.r(), w.r()});
      return w.line(
          Text{"{} {}, {}, {}, {}", w.pick({"madc.hi.u32", "madc.lo.u32"}), w.r(), w.r(), w.r(), w.r()});
    case 3:
      w.line(Text{"add.cc.u64 {}, {}, {}", w.rd(), w.rd(), w.rd()});
      return w.line(Text{"addc.u64 {}, {}, {}", w.rd(), w.rd(), w.rd()});
    default:
      w.line(Text{"sub.cc.u64 {}, {}, {}", w.rd(), w.rd(), w.rd()});
      return w.line(Text{"{} {}, {}, {}", w.pick({"subc.u64", "addc.u64"}), w.rd(), w.rd(), w.rd()});
  }
}

// Bit fields, bytes and halves of words.
void fields(Writer& w) {
  switch (w.random.below(6)) {
    case 0:
      return w.line(Text{
          "{} {}, {}, {}",
          w.pick({"szext.wrap.u32", "szext.clamp.s32", "szext.clamp.u32", "bmsk.wrap.b32", "bmsk.clamp.b32"}),
          w.r(), w.r(), w.amount(40)});
    case 1:
      w.line(Text{"and.b32 %t7, {}, 31", w.r()});
      return w.line(Text{"fns.b32 {}, {}, %t7, {}", w.r(), w.r(), w.amount(9)});
    case 2:
      return w.line(
          Text{"{} {}, {}, {}, {}",
               w.pick({"dp4a.u32.s32", "dp4a.s32.s32", "dp4a.u32.u32", "dp2a.lo.u32.u32", "dp2a.hi.s32.u32"}),
               w.r(), w.r(), w.r(), w.r()});
    case 3:
      return w.line(Text{"{} {}, {}, {}, {}",
                         w.pick({"vadd4.s32.s32.s32.sat", "vsub4.u32.u32.u32.sat",
                                 "vabsdiff4.u32.u32.u32.add", "vmax4.s32.u32.s32", "vavrg4.u32.u32.u32",
                                 "vset4.u32.s32.lt", "vadd2.u32.s32.s32.add", "vsub2.s32.s32.s32.sat",
                                 "vmin2.u32.u32.u32", "vset2.s32.s32.ge.add", "vavrg2.s32.s32.s32"}),
                         w.r(), w.r(), w.r(), w.r()});
    case 4:
      return w.line(
          Text{"{} {}, {}.{}, {}.{}, {}",
               w.pick({"vadd.s32.s32.u32.sat.add", "vsub.u32.s32.s32.min", "vabsdiff.s32.u32.u32.max",
                       "vmad.s32.s32.u32.sat.shr7", "vset.s32.u32.lt.add"}),
               w.r(), w.r(), w.pick({"b0", "b1", "b2", "b3", "h0", "h1"}), w.r(), w.pick({"b0", "b3", "h1"}),
               w.r()});
    default:
      return w.random.chance(50)
                 ? w.line(Text{"cvt.pack.sat.{}.s32 {}, {}, {}", w.pick({"s16", "u16"}), w.r(), w.r(), w.r()})
                 : w.line(Text{"cvt.pack.sat.{}.s32.b32 {}, {}, {}, {}", w.pick({"s8", "u8", "s4", "u2"}),
                               w.r(), w.r(), w.r(), w.r()});
  }
}

void predicate(Writer& w) {
  switch (w.random.below(7)) {
    case 0:
      return w.line(Text{"setp.{}.{} {}, {}, {}", w.pick({"eq", "ne", "lt", "le", "gt", "ge"}),
                         w.pick({"s32", "u32"}), w.p(), w.r(), w.r_or_constant()});
    case 1:
      return w.line(Text{"setp.{}{}.f32 {}, {}, {}",
                         w.pick({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu",
                                 "num", "nan"}),
                         w.random.chance(30) ? ".ftz" : "", w.p(), w.f(), w.f_or_constant()});
    case 2:
      return w.line(Text{"{}.pred {}, {}, {}", w.pick({"and", "or", "xor"}), w.p(), w.p(), w.p()});
    case 3:
      return w.line(Text{"setp.{}.{}.s32 %p0|%p1, {}, {}, {}", w.pick({"lt", "ge", "eq"}),
                         w.pick({"and", "or", "xor"}), w.r(), w.r(), w.p()});
    case 4:
      return w.line(Text{"setp.{}.{} {}, {}, {}", w.pick({"eq", "lt", "ge", "gt"}), w.pick({"s64", "u64"}),
                         w.p(), w.rd(), w.rd_or_constant()});
    case 5:
      return w.line(Text{"set.{}.{} {}, {}, {}", w.pick({"lt", "ge", "ne"}), w.pick({"u32.s32", "s32.u32"}),
                         w.r(), w.r(), w.r_or_constant()});
    default:
      return w.line(Text{"not.pred {}, {}", w.p(), w.p()});
  }
}

}  // namespace quern::oracle
