// SPDX-License-Identifier: Apache-2.0
// PTX does not specify which of several f64 NaNs an operation returns. So the bits and the sign of a NaN must
// not influence integers and f32 numbers.
#include "writer.hpp"

namespace quern::oracle {

std::string Writer::f_or_constant() {
  static constexpr const char* kInteresting[] = {
      "0f00000000", "0f80000000", "0f3F800000", "0fBF800000", "0f00000001", "0f007FFFFF", "0f00800000",
      "0f7F7FFFFF", "0f7F800000", "0fFF800000", "0f7FFFFFFF", "0f40490FDB", "0f4F000000", "0fCF000000"};
  return random.chance(25) ? random.pick(kInteresting) : f();
}

std::string Writer::fd_or_constant() {
  static constexpr const char* kInteresting[] = {
      "0d0000000000000000", "0d8000000000000000", "0d3FF0000000000000", "0dBFE0000000000000",
      "0d0000000000000001", "0d7FEFFFFFFFFFFFFF", "0d7FF0000000000000", "0d43E0000000000000",
      "0d36A0000000000000", "0d47EFFFFFE0000000"};
  return random.chance(25) ? random.pick(kInteresting) : fd();
}

void float32(Writer& w) {
  const std::string ftz = w.random.chance(30) ? ".ftz" : "";
  const std::string guard = w.guard();
  switch (w.random.below(11)) {
    case 0:
    case 1:
      return w.line(
          Text{"{}{}{}{}.f32 {}, {}, {}", guard,
               w.pick({"add.rn", "sub.rn", "mul.rn", "add.rz", "mul.rp", "sub.rm", "mul.rz", "add.rm"}), ftz,
               w.random.chance(15) ? ".sat" : "", w.f(), w.f(), w.f_or_constant()});
    case 2:
    case 3:
      return w.line(Text{"{}fma.{}{}.f32 {}, {}, {}, {}", guard, w.pick({"rn", "rn", "rz", "rm", "rp"}), ftz,
                         w.f(), w.f(), w.f_or_constant(), w.f()});
    case 4:
      return w.line(
          Text{"{}{}{}.f32 {}, {}, {}", guard, w.pick({"min", "max"}), ftz, w.f(), w.f(), w.f_or_constant()});
    case 5:
      return w.line(Text{"{}{}{}.f32 {}, {}", guard, w.pick({"sqrt.rn", "rcp.rn", "sqrt.rz", "rcp.rp"}), ftz,
                         w.f(), w.f()});
    case 6:
      return w.line(Text{"{}{}{}.f32 {}, {}", guard, w.pick({"neg", "abs"}), ftz, w.f(), w.f()});
    case 7:
      return w.line(Text{"{}div.{}{}.f32 {}, {}, {}", guard, w.pick({"rn", "rn", "rz", "rp"}), ftz, w.f(),
                         w.f(), w.f_or_constant()});
    case 8:
      return w.line(Text{"mov.b32 {}, {}", w.f(), w.r()});
    case 9:
      return w.line(Text{"mov.b32 {}, {}", w.r(), w.f()});
    default:
      w.line(Text{"mov.b32 %tf0, {}", w.r()});
      return w.line(Text{"copysign.f32 {}, %tf0, {}", w.f(), w.f()});
  }
}

void float64(Writer& w) {
  switch (w.random.below(7)) {
    case 0:
      return w.line(Text{"fma.{}.f64 {}, {}, {}, {}", w.pick({"rn", "rz", "rp", "rm"}), w.fd(), w.fd(),
                         w.fd_or_constant(), w.fd()});
    case 1:
      return w.line(Text{"{}.f64 {}, {}", w.pick({"neg", "abs", "sqrt.rn", "rcp.rn"}), w.fd(), w.fd()});
    case 2:
      return w.line(Text{"setp.{}.f64 {}, {}, {}", w.pick({"lt", "ge", "neu", "nan", "gtu"}), w.p(), w.fd(),
                         w.fd_or_constant()});
    case 3:
      return w.line(Text{"testp.{}.f64 {}, {}",
                         w.pick({"finite", "infinite", "number", "notanumber", "normal", "subnormal"}), w.p(),
                         w.fd()});
    case 4:
      return w.line(Text{"mov.b64 {}, {}", w.fd(), w.rd()});
    default:
      return w.line(Text{"{}{}.f64 {}, {}, {}", w.guard(),
                         w.pick({"add.rn", "sub.rn", "mul.rn", "div.rn", "min", "max", "add.rz", "mul.rm"}),
                         w.fd(), w.fd(), w.fd_or_constant()});
  }
}

// f16 and bf16 from f32 and back.
void half(Writer& w) {
  switch (w.random.below(6)) {
    case 0:
      for (unsigned i = 0; i < 3; ++i)
        w.line(Text{"cvt.{}.f16.f32 %h{}, {}", w.pick({"rn", "rz"}), i, w.f_or_constant()});
      w.line(w.random.chance(40)
                 ? Text{"fma.rn{}.f16 %h0, %h1, %h2, %h0", w.pick({"", ".ftz", ".sat", ".relu"})}
                 : Text{"{}.f16 %h0, %h1, %h2",
                        w.pick({"add.rn", "sub.rn", "mul.rn.sat", "min", "max.NaN", "add.ftz"})});
      return w.line(Text{"cvt.f32.f16 {}, %h0", w.f()});
    case 1:
      for (unsigned i = 0; i < 3; ++i) w.line(Text{"cvt.rn.bf16.f32 %h{}, {}", i, w.f_or_constant()});
      w.line(w.random.chance(60) ? Text{"fma.rn{}.bf16 %h0, %h1, %h2, %h0", w.pick({"", ".relu"})}
                                 : Text{"{}.bf16 %h0, %h1, %h2", w.pick({"min", "max"})});
      w.line("mov.u16 %h1, 0");
      return w.line(Text{"mov.b32 {}, {{%h1, %h0}}", w.f()});
    case 2:
      w.line(Text{"cvt.rn.f16x2.f32 %t7, {}, {}", w.f(), w.f_or_constant()});
      w.line(Text{"cvt.rn.f16x2.f32 %t8, {}, {}", w.f(), w.f()});
      w.line(Text{"{}.f16x2 %t7, %t7, %t8", w.pick({"add", "mul", "sub.sat", "min", "max"})});
      w.line("mov.b32 {%h0, %h1}, %t7");
      return w.line(Text{"cvt.f32.f16 {}, {}", w.f(), w.pick({"%h0", "%h1"})});
    case 3:
      w.line(Text{"cvt.rn.f16.f32 %h0, {}", w.f()});
      w.line(Text{"cvt.rn.f16.f32 %h1, {}", w.f_or_constant()});
      return w.line(Text{"setp.{}.f16 {}, %h0, %h1", w.pick({"lt", "ge", "equ", "nan"}), w.p()});
    case 4:
      w.line(Text{"cvt.rn.f16.{} %h0, {}", w.pick({"s32", "u32"}), w.r()});
      return w.line(
          Text{"cvt.{}.{}.f16 {}, %h0", w.pick({"rzi", "rni", "rmi"}), w.pick({"s32", "u32"}), w.r()});
    default:
      return w.line(Text{"{} {}, {}, {}",
                         w.pick({"set.lt.f16x2.f16x2", "set.neu.u32.f16x2", "min.f16x2", "max.NaN.f16x2",
                                 "min.bf16x2", "set.equ.ftz.u32.f16x2"}),
                         w.r(), w.r(), w.r()});
  }
}

void conversion(Writer& w) {
  switch (w.random.below(15)) {
    case 0:
      return w.line(Text{"cvt.{}{}.{} {}, {}", w.pick({"rzi", "rni", "rmi", "rpi"}),
                         w.random.chance(25) ? ".ftz" : "", w.pick({"s32.f32", "u32.f32"}), w.r(), w.f()});
    case 1:
      return w.line(Text{"cvt.{}.f32.{} {}, {}", w.pick({"rn", "rz", "rm", "rp"}), w.pick({"s32", "u32"}),
                         w.f(), w.r()});
    case 2:
      return w.line(Text{"cvt.{}.{} {}, {}", w.pick({"s64", "u64"}), w.pick({"s32", "u32"}), w.rd(), w.r()});
    case 3:
      return w.line(Text{"cvt.{}u32.u64 {}, {}", w.random.chance(30) ? "sat." : "", w.r(), w.rd()});
    case 4:
      return w.line(Text{"cvt.f64.f32 {}, {}", w.fd(), w.f()});
    case 5:
      w.line(Text{"cvt.{}.f32.f64 %tf0, {}", w.pick({"rn", "rz", "rp", "rm.ftz"}), w.fd()});
      return w.line(Text{"add.rn.f32 {}, %tf0, 0f80000000", w.f()});
    case 6:
      return w.line(Text{"cvt.{}.f32.f32 {}, {}", w.pick({"rni", "rzi", "rmi", "rpi", "sat", "rni.sat"}),
                         w.f(), w.f()});
    case 7:
      if (w.random.chance(50))
        return w.line(Text{"cvt.{}.{} {}, {}", w.pick({"rzi", "rni", "rpi"}), w.pick({"s64.f64", "u64.f64"}),
                           w.rd(), w.fd()});
      return w.line(Text{"cvt.{}.{} {}, {}", w.pick({"rzi", "rni", "rpi"}), w.pick({"s64.f32", "u64.f32"}),
                         w.rd(), w.f()});
    case 8:
      return w.line(
          Text{"cvt.{}.f64.{} {}, {}", w.pick({"rn", "rz", "rp"}), w.pick({"s64", "u64"}), w.fd(), w.rd()});
    case 9:
      return w.line(
          Text{"cvt.{}.f32.{} {}, {}", w.pick({"rn", "rz", "rm"}), w.pick({"s64", "u64"}), w.f(), w.rd()});
    case 10:
      return w.line(
          Text{"cvt.{}.{} {}, {}", w.pick({"rzi", "rmi"}), w.pick({"s32.f64", "u32.f64"}), w.r(), w.fd()});
    case 11:
      return w.line(
          Text{"cvt.{} {}, {}, {}",
               w.pick({"rn.f16x2.f32", "rz.satfinite.bf16x2.f32", "rn.relu.f16x2.f32", "rn.bf16x2.f32"}),
               w.r(), w.f(), w.f()});
    case 12:
      w.line(Text{"cvt.rn.satfinite.{}.f32 %h0, {}, {}", w.pick({"e4m3x2", "e5m2x2"}), w.f(), w.f()});
      if (w.random.chance(50)) return w.line(Text{"cvt.u32.u16 {}, %h0", w.r()});
      return w.line(Text{"cvt.rn.f16x2.{} {}, %h0", w.pick({"e4m3x2", "e5m2x2"}), w.r()});
    case 13:
      return w.line(Text{"cvt.rna.tf32.f32 {}, {}", w.r(), w.f()});
    default:
      return w.line(Text{"cvt.{} {}, {}",
                         w.pick({"s32.s8", "u32.u8", "s32.s16", "u32.u16", "sat.s8.s32", "sat.u8.s32",
                                 "sat.s16.u32", "sat.u32.s32", "sat.s32.u32"}),
                         w.r(), w.r()});
  }
}

}  // namespace quern::oracle
