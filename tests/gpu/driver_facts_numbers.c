/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about PTX instructions whose results the PTX ISA leaves open, or which are easily got wrong. A
   row is one kernel; a thread of it computes one combination of operands, which come from memory so that
   nothing is folded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_facts.h"

typedef struct {
  int count;
  const uint64_t* values;
} Set;
#define SET(name, ...)                                   \
  static const uint64_t name##_values[] = {__VA_ARGS__}; \
  static const Set name = {sizeof name##_values / 8, name##_values}

SET(kF32, 0, 0x80000000, 1, 0x807fffff, 0x3f800000, 0xbfc00000, 0x7f7fffff, 0x7f800000, 0xff800000,
    0x7fc00000, 0xffc12345, 0x7f800001, 0xff812345);
SET(kF32Few, 0, 0x3f800000, 0x7f800000, 0x7fc00000, 0xffc12345, 0x7f812345);
SET(kF32Any, 0, 0x80000000, 1, 0x00400000, 0x807fffff, 0x00800000, 0x3f800000, 0xbf800000, 0x7f7fffff,
    0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001, 0x40490fdb, 0x3f000000, 0x3dcccccd,
    0x40b00000, 0x42c80000, 0xc2c80000, 0x43000000, 0xc3150000, 0x3f7fffff, 0x3f800001, 0x461c4000,
    0x4b000000, 0x33d6bf95, 0x3eaaaaab, 0x40200000, 0xbf000000, 0x3e800000, 0x4e6e6b28);
SET(kF32Convert, 0, 0x80000000, 1, 0x3f000000, 0x3fc00000, 0x40200000, 0xbf000000, 0xbfc00000, 0x437f0000,
    0x43800000, 0x42fe0000, 0x43000000, 0xc3008000, 0x477fff00, 0x47800000, 0x47000000, 0x4effffff,
    0x4f000000, 0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000, 0x5effffff, 0x5f000000, 0xdf000000,
    0x5f7fffff, 0x5f800000, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000);
SET(kF64, 0, 0x8000000000000000, 1, 0x3ff0000000000000, 0xbff8000000000000, 0x7fefffffffffffff,
    0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000012345, 0x7ff0000000000001,
    0xfff1234500000000);
SET(kF64Few, 0, 0x3ff0000000000000, 0x7ff0000000000000, 0x7ff8000000000000, 0xfff8000000012345,
    0x7ff1234500000000);
SET(kF64Convert, 0, 0x8000000000000000, 0x3fe0000000000000, 0x3ff8000000000000, 0xbfe0000000000000,
    0x406fe00000000000, 0x40f0000000000000, 0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000000000,
    0xc1e0000000200000, 0x41efffffffe00000, 0x41f0000000000000, 0x43dfffffffffffff, 0x43e0000000000000,
    0xc3e0000000000000, 0x43efffffffffffff, 0x43f0000000000000, 0x7fefffffffffffff, 0x7ff0000000000000,
    0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000012345, 0x7ff0000000000001, 0x36a0000000000000,
    0x380fffffe0000000, 0x47efffffe0000000, 0x47effffff0000000);
SET(kF16, 0, 0x8000, 1, 0x83ff, 0x3c00, 0xbe00, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0xfe55, 0x7c01, 0xfd23);
SET(kF16Few, 0, 0x3c00, 0x7c00, 0x7e00, 0xfe55, 0x7d23);
SET(kBf16, 0, 0x8000, 1, 0x807f, 0x3f80, 0xbfc0, 0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0xffd5, 0x7f81, 0xff93);
SET(kBf16Few, 0, 0x3f80, 0x7f80, 0x7fc0, 0xffd5, 0x7f93);
SET(kF16x2, 0, 0x80000000, 0x3c00bc00, 0x7e003c00, 0xfe557d23, 0x00018001, 0x7c00fc00, 0x7bff0400);
SET(kU32, 0, 1, 2, 31, 32, 33, 63, 64, 255, 0x7fffffff, 0x80000000, 0xffffffff, 0x12345678);
SET(kU32Few, 0, 1, 5, 0x80000000, 0xffffffff, 0x12345678);
SET(kPositions, 0, 1, 8, 24, 31, 32, 33, 64, 255, 256, 0xffffffff);
SET(kU64, 0, 1, 2, 0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff, 0x123456789abcdef0);
SET(kU16, 0, 1, 0x7fff, 0x8000, 0xffff, 0x1234);
SET(kLanes, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
    27, 28, 29, 30, 31);

typedef struct {
  const char *group, *name;
  int d, a, b, c; /* bits */
  const Set *sa, *sb, *sc;
  const char* text; /* $d, $a, $b, $c; t, u: 32 bits; s: 16 bits; w: 64 bits; p, q: predicates; lane; cell: an
                       address */
  const char* target;
} Row;

#define F1(group, op) \
  { group, op, 32, 32, 0, 0, &kF32Any, NULL, NULL, op " $d, $a;", "sm_80" }
#define F2(group, op) \
  { group, op, 32, 32, 32, 0, &kF32, &kF32, NULL, op " $d, $a, $b;", "sm_80" }
#define F2_86(group, op) \
  { group, op, 32, 32, 32, 0, &kF32, &kF32, NULL, op " $d, $a, $b;", "sm_86" }
#define F3(group, op) \
  { group, op, 32, 32, 32, 32, &kF32Few, &kF32Few, &kF32Few, op " $d, $a, $b, $c;", "sm_80" }
#define D1(op) \
  { "f64", op, 64, 64, 0, 0, &kF64, NULL, NULL, op " $d, $a;", "sm_80" }
#define D2(op) \
  { "f64", op, 64, 64, 64, 0, &kF64, &kF64, NULL, op " $d, $a, $b;", "sm_80" }
#define D3(op) \
  { "f64", op, 64, 64, 64, 64, &kF64Few, &kF64Few, &kF64Few, op " $d, $a, $b, $c;", "sm_80" }
#define H1(op) \
  { "f16", op, 16, 16, 0, 0, &kF16, NULL, NULL, op " $d, $a;", "sm_80" }
#define H2(op) \
  { "f16", op, 16, 16, 16, 0, &kF16, &kF16, NULL, op " $d, $a, $b;", "sm_80" }
#define H3(op) \
  { "f16", op, 16, 16, 16, 16, &kF16Few, &kF16Few, &kF16Few, op " $d, $a, $b, $c;", "sm_80" }
#define X2(op) \
  { "f16x2", op, 32, 32, 32, 0, &kF16x2, &kF16x2, NULL, op " $d, $a, $b;", "sm_80" }
#define B1(op) \
  { "bf16", op, 16, 16, 0, 0, &kBf16, NULL, NULL, op " $d, $a;", "sm_80" }
#define B2(op, target) \
  { "bf16", op, 16, 16, 16, 0, &kBf16, &kBf16, NULL, op " $d, $a, $b;", target }
#define B3(op) \
  { "bf16", op, 16, 16, 16, 16, &kBf16Few, &kBf16Few, &kBf16Few, op " $d, $a, $b, $c;", "sm_80" }
#define TO(op, bits) \
  { "cvt_f32", op, bits, 32, 0, 0, &kF32Convert, NULL, NULL, op " $d, $a;", "sm_80" }
#define TO8(op) \
  { "cvt_f32", op, 32, 32, 0, 0, &kF32Convert, NULL, NULL, op " $d, $a;", "sm_80" }
#define TO64(op, bits) \
  { "cvt_f64", op, bits, 64, 0, 0, &kF64Convert, NULL, NULL, op " $d, $a;", "sm_80" }
#define FROM16(op, bits) \
  { "cvt_f16", op, bits, 16, 0, 0, &kF16, NULL, NULL, op " $d, $a;", "sm_80" }
#define I2(op) \
  { "integer", op, 32, 32, 32, 0, &kU32, &kU32, NULL, op " $d, $a, $b;", "sm_80" }
#define SHIFT(op, bits, set) \
  { "integer", op, bits, bits, 32, 0, &set, &kPositions, NULL, op " $d, $a, $b;", "sm_80" }
#define I3(op) \
  { "integer", op, 32, 32, 32, 32, &kU32Few, &kU32Few, &kU32Few, op " $d, $a, $b, $c;", "sm_80" }
#define L2(op) \
  { "integer", op, 64, 64, 64, 0, &kU64, &kU64, NULL, op " $d, $a, $b;", "sm_80" }
#define S2(op) \
  { "integer", op, 16, 16, 16, 0, &kU16, &kU16, NULL, op " $d, $a, $b;", "sm_80" }
#define COMPARE(op, bits, set) \
  { "compare", op, 32, bits, bits, 0, &set, &set, NULL, op " p, $a, $b; selp.b32 $d, 1, 0, p;", "sm_80" }
#define WARP(name, text) \
  { "warp", name, 32, 32, 0, 0, &kLanes, NULL, NULL, text, "sm_80" }
#define SHFL(name, mode) WARP(name, "shfl.sync." mode ", -1; selp.b32 u, 256, 0, p; add.u32 $d, t, u;")
#define ATOM(op)                                                                                        \
  {                                                                                                     \
    "atomic", op, 64, 32, 32, 0, &kU32, &kU32, NULL,                                                    \
        "st.global.u32 [cell], $a; " op " t, [cell], $b; ld.global.u32 u, [cell]; mov.b64 $d, {t, u};", \
        "sm_80"                                                                                         \
  }
#define ATOMF(op, set)                                                                                  \
  {                                                                                                     \
    "atomic", op, 64, 32, 32, 0, &set, &set, NULL,                                                      \
        "st.global.u32 [cell], $a; " op " t, [cell], $b; ld.global.u32 u, [cell]; mov.b64 $d, {t, u};", \
        "sm_80"                                                                                         \
  }

static const Row kRows[] = {
    F2("f32", "add.rn.f32"),
    F2("f32", "sub.rn.f32"),
    F2("f32", "mul.rn.f32"),
    F2("f32", "add.rn.ftz.f32"),
    F2("f32", "add.rn.sat.f32"),
    F2("f32", "mul.rn.ftz.sat.f32"),
    F2("f32", "div.rn.f32"),
    F2("f32", "div.full.f32"),
    F2("f32", "div.approx.f32"),
    F2("f32", "div.approx.ftz.f32"),
    F2("f32", "min.f32"),
    F2("f32", "max.f32"),
    F2("f32", "min.ftz.f32"),
    F2("f32", "min.NaN.f32"),
    F2("f32", "max.NaN.f32"),
    F2_86("f32", "min.xorsign.abs.f32"),
    F2_86("f32", "max.NaN.xorsign.abs.f32"),
    F2("f32", "copysign.f32"),
    F3("f32", "fma.rn.f32"),
    F3("f32", "fma.rn.sat.f32"),
    F3("f32", "mad.rn.f32"),
    F1("f32", "sqrt.rn.f32"),
    F1("f32", "rcp.rn.f32"),
    F1("f32", "neg.f32"),
    F1("f32", "abs.f32"),
    F1("f32", "neg.ftz.f32"),
    F1("f32", "abs.ftz.f32"),
    F1("f32", "cvt.rni.f32.f32"),
    F1("f32", "cvt.sat.f32.f32"),
    F1("f32", "cvt.ftz.f32.f32"),
    F1("f32", "cvt.rzi.ftz.f32.f32"),
    F1("approx", "ex2.approx.f32"),
    F1("approx", "ex2.approx.ftz.f32"),
    F1("approx", "lg2.approx.f32"),
    F1("approx", "lg2.approx.ftz.f32"),
    F1("approx", "sin.approx.f32"),
    F1("approx", "sin.approx.ftz.f32"),
    F1("approx", "cos.approx.f32"),
    F1("approx", "rcp.approx.f32"),
    F1("approx", "rcp.approx.ftz.f32"),
    F1("approx", "rsqrt.approx.f32"),
    F1("approx", "rsqrt.approx.ftz.f32"),
    F1("approx", "sqrt.approx.f32"),
    F1("approx", "sqrt.approx.ftz.f32"),
    F1("approx", "tanh.approx.f32"),
    {"approx", "rcp.approx.ftz.f64", 64, 64, 0, 0, &kF64, NULL, NULL, "rcp.approx.ftz.f64 $d, $a;", "sm_80"},
    {"approx", "rsqrt.approx.ftz.f64", 64, 64, 0, 0, &kF64, NULL, NULL, "rsqrt.approx.ftz.f64 $d, $a;",
     "sm_80"},
    D2("add.rn.f64"),
    D2("sub.rn.f64"),
    D2("mul.rn.f64"),
    D2("div.rn.f64"),
    D2("min.f64"),
    D2("max.f64"),
    D2("copysign.f64"),
    D3("fma.rn.f64"),
    D1("sqrt.rn.f64"),
    D1("rcp.rn.f64"),
    D1("neg.f64"),
    D1("abs.f64"),
    D1("cvt.rni.f64.f64"),
    H2("add.f16"),
    H2("sub.f16"),
    H2("mul.f16"),
    H2("add.ftz.f16"),
    H2("add.sat.f16"),
    H2("min.f16"),
    H2("max.f16"),
    H2("min.NaN.f16"),
    H2("max.NaN.f16"),
    H2("min.ftz.f16"),
    H3("fma.rn.f16"),
    H3("fma.rn.sat.f16"),
    H3("fma.rn.relu.f16"),
    H1("neg.f16"),
    H1("abs.f16"),
    H1("ex2.approx.f16"),
    H1("tanh.approx.f16"),
    X2("add.f16x2"),
    X2("mul.ftz.f16x2"),
    X2("add.sat.f16x2"),
    X2("min.f16x2"),
    X2("max.f16x2"),
    X2("min.NaN.f16x2"),
    X2("max.NaN.f16x2"),
    X2("min.ftz.f16x2"),
    X2("min.bf16x2"),
    X2("max.NaN.bf16x2"),
    {"f16x2", "min.xorsign.abs.f16x2", 32, 32, 32, 0, &kF16x2, &kF16x2, NULL,
     "min.xorsign.abs.f16x2 $d, $a, $b;", "sm_86"},
    {"f16x2", "fma.rn.relu.f16x2", 32, 32, 32, 32, &kF16x2, &kF16x2, &kF16x2,
     "fma.rn.relu.f16x2 $d, $a, $b, $c;", "sm_80"},
    {"f16x2", "set.lt.f16x2.f16x2", 32, 32, 32, 0, &kF16x2, &kF16x2, NULL, "set.lt.f16x2.f16x2 $d, $a, $b;",
     "sm_80"},
    {"f16x2", "cvt.rn.f16x2.f32", 32, 32, 32, 0, &kF32, &kF32, NULL, "cvt.rn.f16x2.f32 $d, $a, $b;", "sm_80"},
    {"f16x2", "cvt.rn.relu.bf16x2.f32", 32, 32, 32, 0, &kF32, &kF32, NULL,
     "cvt.rn.relu.bf16x2.f32 $d, $a, $b;", "sm_80"},
    B2("min.bf16", "sm_80"),
    B2("max.bf16", "sm_80"),
    B2("min.NaN.bf16", "sm_80"),
    B3("fma.rn.bf16"),
    B3("fma.rn.relu.bf16"),
    B1("neg.bf16"),
    B1("abs.bf16"),
    B2("add.bf16", "sm_90"),
    B2("mul.bf16", "sm_90"),
    B2("add.rn.bf16", "sm_90"),
    {"bf16", "ex2.approx.ftz.bf16", 16, 16, 0, 0, &kBf16, NULL, NULL, "ex2.approx.ftz.bf16 $d, $a;", "sm_90"},
    {"bf16", "tanh.approx.bf16", 16, 16, 0, 0, &kBf16, NULL, NULL, "tanh.approx.bf16 $d, $a;", "sm_90"},
    TO8("cvt.rzi.s8.f32"),
    TO8("cvt.rzi.u8.f32"),
    TO8("cvt.rzi.sat.s8.f32"),
    TO("cvt.rzi.s16.f32", 16),
    TO("cvt.rzi.u16.f32", 16),
    TO("cvt.rni.s32.f32", 32),
    TO("cvt.rzi.s32.f32", 32),
    TO("cvt.rmi.s32.f32", 32),
    TO("cvt.rpi.u32.f32", 32),
    TO("cvt.rzi.u32.f32", 32),
    TO("cvt.rzi.sat.s32.f32", 32),
    TO("cvt.rzi.ftz.s32.f32", 32),
    TO("cvt.rni.s64.f32", 64),
    TO("cvt.rzi.u64.f32", 64),
    TO("cvt.rzi.s64.f32", 64),
    TO("cvt.f64.f32", 64),
    TO("cvt.rn.f16.f32", 16),
    TO("cvt.rz.f16.f32", 16),
    TO("cvt.rn.bf16.f32", 16),
    TO("cvt.rz.bf16.f32", 16),
    TO("cvt.rn.relu.f16.f32", 16),
    TO("cvt.rn.sat.f16.f32", 16),
    TO("cvt.rna.tf32.f32", 32),
    TO64("cvt.rzi.s32.f64", 32),
    TO64("cvt.rzi.u32.f64", 32),
    TO64("cvt.rni.s64.f64", 64),
    TO64("cvt.rzi.u64.f64", 64),
    TO64("cvt.rzi.s64.f64", 64),
    TO64("cvt.rn.f32.f64", 32),
    TO64("cvt.rz.f32.f64", 32),
    TO64("cvt.rn.ftz.f32.f64", 32),
    TO64("cvt.rn.sat.f32.f64", 32),
    TO64("cvt.rzi.s16.f64", 16),
    TO64("cvt.rn.f16.f64", 16),
    FROM16("cvt.f32.f16", 32),
    FROM16("cvt.f64.f16", 64),
    FROM16("cvt.rzi.s32.f16", 32),
    FROM16("cvt.rzi.u16.f16", 16),
    FROM16("cvt.rzi.s64.f16", 64),
    FROM16("cvt.rni.f16.f16", 16),
    {"cvt_f16", "cvt.f32.bf16", 32, 16, 0, 0, &kBf16, NULL, NULL, "cvt.f32.bf16 $d, $a;", "sm_90"},
    {"cvt_integer", "cvt.sat.s8.s32", 32, 32, 0, 0, &kU32, NULL, NULL, "cvt.sat.s8.s32 $d, $a;", "sm_80"},
    {"cvt_integer", "cvt.s8.s32", 32, 32, 0, 0, &kU32, NULL, NULL, "cvt.s8.s32 $d, $a;", "sm_80"},
    {"cvt_integer", "cvt.u8.s32", 32, 32, 0, 0, &kU32, NULL, NULL, "cvt.u8.s32 $d, $a;", "sm_80"},
    {"cvt_integer", "cvt.sat.u16.s32", 16, 32, 0, 0, &kU32, NULL, NULL, "cvt.sat.u16.s32 $d, $a;", "sm_80"},
    {"cvt_integer", "cvt.sat.u32.s64", 32, 64, 0, 0, &kU64, NULL, NULL, "cvt.sat.u32.s64 $d, $a;", "sm_80"},
    {"cvt_integer", "cvt.sat.s32.u32", 32, 32, 0, 0, &kU32, NULL, NULL, "cvt.sat.s32.u32 $d, $a;", "sm_80"},
    {"cvt_integer", "cvt.rn.f32.u64", 32, 64, 0, 0, &kU64, NULL, NULL, "cvt.rn.f32.u64 $d, $a;", "sm_80"},
    {"cvt_integer", "cvt.rn.f16.s32", 16, 32, 0, 0, &kU32, NULL, NULL, "cvt.rn.f16.s32 $d, $a;", "sm_80"},
    {"cvt_integer", "cvt.rz.f16.u32", 16, 32, 0, 0, &kU32, NULL, NULL, "cvt.rz.f16.u32 $d, $a;", "sm_80"},
    I2("div.s32"),
    I2("div.u32"),
    I2("rem.s32"),
    I2("rem.u32"),
    L2("div.s64"),
    L2("div.u64"),
    L2("rem.s64"),
    L2("rem.u64"),
    S2("div.s16"),
    S2("rem.u16"),
    SHIFT("shl.b32", 32, kU32Few),
    SHIFT("shr.u32", 32, kU32Few),
    SHIFT("shr.s32", 32, kU32Few),
    SHIFT("shl.b64", 64, kU64),
    SHIFT("shr.s64", 64, kU64),
    SHIFT("shl.b16", 16, kU16),
    SHIFT("shr.s16", 16, kU16),
    SHIFT("bmsk.clamp.b32", 32, kPositions),
    SHIFT("bmsk.wrap.b32", 32, kPositions),
    SHIFT("szext.clamp.s32", 32, kU32Few),
    SHIFT("szext.wrap.s32", 32, kU32Few),
    SHIFT("szext.clamp.u32", 32, kU32Few),
    {"integer", "bfe.u32", 32, 32, 32, 32, &kU32Few, &kPositions, &kPositions, "bfe.u32 $d, $a, $b, $c;",
     "sm_80"},
    {"integer", "bfe.s32", 32, 32, 32, 32, &kU32Few, &kPositions, &kPositions, "bfe.s32 $d, $a, $b, $c;",
     "sm_80"},
    {"integer", "bfe.s64", 64, 64, 32, 32, &kU64, &kPositions, &kPositions, "bfe.s64 $d, $a, $b, $c;",
     "sm_80"},
    {"integer", "bfi.b32", 32, 32, 32, 32, &kU32Few, &kPositions, &kPositions,
     "bfi.b32 $d, $a, 0x55555555, $b, $c;", "sm_80"},
    {"integer", "bfi.b64", 64, 64, 32, 32, &kU64, &kPositions, &kPositions,
     "bfi.b64 $d, $a, 0x5555555555555555, $b, $c;", "sm_80"},
    {"integer", "shf.l.wrap.b32", 32, 32, 32, 32, &kU32Few, &kU32Few, &kPositions,
     "shf.l.wrap.b32 $d, $a, $b, $c;", "sm_80"},
    {"integer", "shf.r.clamp.b32", 32, 32, 32, 32, &kU32Few, &kU32Few, &kPositions,
     "shf.r.clamp.b32 $d, $a, $b, $c;", "sm_80"},
#define PRMT(mode)                                                  \
  {                                                                 \
    "integer", "prmt.b32" mode, 32, 32, 0, 0, &kU32, NULL, NULL,    \
        "prmt.b32" mode " $d, 0x83828180, 0x77665544, $a;", "sm_80" \
  }
    PRMT(""),
    PRMT(".f4e"),
    PRMT(".b4e"),
    PRMT(".rc8"),
    PRMT(".ecl"),
    PRMT(".ecr"),
    PRMT(".rc16"),
    {"integer", "prmt.b32.signs", 32, 32, 0, 0, &kLanes, NULL, NULL,
     "mul.lo.u32 t, $a, 0x1357; prmt.b32 $d, 0x83828180, 0x77665544, t;", "sm_80"},
    I3("mad.hi.s32"),
    I3("mad.hi.u32"),
    I3("mad.hi.sat.s32"),
    I3("mad24.lo.s32"),
    I3("mad24.hi.u32"),
    I3("mad24.hi.sat.s32"),
    I2("mul24.hi.s32"),
    I3("dp4a.s32.u32"),
    I3("dp4a.u32.u32"),
    I3("dp2a.lo.s32.s32"),
    I3("dp2a.hi.u32.s32"),
    I3("sad.s32"),
    I2("add.sat.s32"),
    I2("sub.sat.s32"),
    {"integer", "mul.wide.s32", 64, 32, 32, 0, &kU32, &kU32, NULL, "mul.wide.s32 $d, $a, $b;", "sm_80"},
    {"integer", "add.cc-addc", 64, 32, 32, 0, &kU32, &kU32, NULL,
     "add.cc.u32 t, $a, $b; addc.u32 u, 0, 0; mov.b64 $d, {t, u};", "sm_80"},
    {"integer", "sub.cc-subc", 64, 32, 32, 0, &kU32, &kU32, NULL,
     "sub.cc.u32 t, $a, $b; subc.u32 u, 0, 0; mov.b64 $d, {t, u};", "sm_80"},
    {"integer", "sub.cc-addc", 64, 32, 32, 0, &kU32, &kU32, NULL,
     "sub.cc.u32 t, $a, $b; addc.u32 u, 0, 0; mov.b64 $d, {t, u};", "sm_80"},
    {"integer", "mad.hi.cc-madc", 64, 32, 32, 0, &kU32, &kU32, NULL,
     "mad.lo.cc.u32 t, $a, $b, 0x80000000; madc.hi.u32 u, $a, $b, 0; mov.b64 $d, {t, u};", "sm_80"},
    {"integer", "bfind.u32", 32, 32, 0, 0, &kU32, NULL, NULL, "bfind.u32 $d, $a;", "sm_80"},
    {"integer", "bfind.s32", 32, 32, 0, 0, &kU32, NULL, NULL, "bfind.s32 $d, $a;", "sm_80"},
    {"integer", "bfind.shiftamt.s32", 32, 32, 0, 0, &kU32, NULL, NULL, "bfind.shiftamt.s32 $d, $a;", "sm_80"},
    {"integer", "clz.b64", 32, 64, 0, 0, &kU64, NULL, NULL, "clz.b64 $d, $a;", "sm_80"},
    {"integer", "abs.s32", 32, 32, 0, 0, &kU32, NULL, NULL, "abs.s32 $d, $a;", "sm_80"},
    {"integer", "fns.b32", 32, 32, 32, 32, &kU32Few, &kU32Few, &kU32Few, "fns.b32 $d, $a, $b, $c;", "sm_80"},
    {"integer", "lop3.0xe8", 32, 32, 32, 32, &kU32Few, &kU32Few, &kU32Few, "lop3.b32 $d, $a, $b, $c, 0xe8;",
     "sm_80"},
    {"integer", "lop3.0x27", 32, 32, 32, 32, &kU32Few, &kU32Few, &kU32Few, "lop3.b32 $d, $a, $b, $c, 0x27;",
     "sm_80"},
    {"integer", "ld.v2", 64, 64, 0, 0, &kU64, NULL, NULL,
     "st.global.u64 [cell], $a; ld.global.v2.u32 {t, u}, [cell]; mov.b64 $d, {u, t};", "sm_80"},
    I2("vadd.s32.s32.s32.sat"),
    I2("vmax.u32.u32.s32"),
    COMPARE("setp.eq.f32", 32, kF32),
    COMPARE("setp.ne.f32", 32, kF32),
    COMPARE("setp.lt.f32", 32, kF32),
    COMPARE("setp.ltu.f32", 32, kF32),
    COMPARE("setp.neu.f32", 32, kF32),
    COMPARE("setp.num.f32", 32, kF32),
    COMPARE("setp.nan.f32", 32, kF32),
    COMPARE("setp.eq.ftz.f32", 32, kF32),
    COMPARE("setp.lt.f16", 16, kF16),
    COMPARE("setp.geu.f64", 64, kF64),
    COMPARE("setp.lo.u32", 32, kU32),
    COMPARE("setp.eq.f16", 16, kF16),
    {"compare", "set.lt.f32.f32", 32, 32, 32, 0, &kF32, &kF32, NULL, "set.lt.f32.f32 $d, $a, $b;", "sm_80"},
    {"compare", "set.neu.u32.f32", 32, 32, 32, 0, &kF32, &kF32, NULL, "set.neu.u32.f32 $d, $a, $b;", "sm_80"},
    {"compare", "slct.f32.f32", 32, 32, 32, 0, &kF32, &kF32, NULL, "slct.f32.f32 $d, $a, 0f40000000, $b;",
     "sm_80"},
#define TESTP(kind)                                                      \
  {                                                                      \
    "compare", "testp." kind ".f32", 32, 32, 0, 0, &kF32Any, NULL, NULL, \
        "testp." kind ".f32 p, $a; selp.b32 $d, 1, 0, p;", "sm_80"       \
  }
    TESTP("finite"),
    TESTP("infinite"),
    TESTP("number"),
    TESTP("notanumber"),
    TESTP("normal"),
    TESTP("subnormal"),
    SHFL("shfl.idx.40", "idx.b32 t|p, $a, 40, 31"),
    SHFL("shfl.idx.lane.c7", "idx.b32 t|p, $a, 9, 0x1807"),
    SHFL("shfl.up.3", "up.b32 t|p, $a, 3, 0"),
    SHFL("shfl.up.35", "up.b32 t|p, $a, 35, 0"),
    SHFL("shfl.up.segment8", "up.b32 t|p, $a, 3, 0x1800"),
    SHFL("shfl.down.5", "down.b32 t|p, $a, 5, 31"),
    SHFL("shfl.down.segment8", "down.b32 t|p, $a, 5, 0x1807"),
    SHFL("shfl.bfly.16", "bfly.b32 t|p, $a, 16, 31"),
    SHFL("shfl.bfly.clamp15", "bfly.b32 t|p, $a, 16, 15"),
    SHFL("shfl.bfly.31", "bfly.b32 t|p, $a, 31, 31"),
    SHFL("shfl.down.clamp20", "down.b32 t|p, $a, 5, 20"),
    WARP("shfl.half_mask",
         "setp.lt.u32 q, lane, 16; mov.u32 $d, 99; @q shfl.sync.idx.b32 $d, $a, 3, 31, 0xffff;"),
    WARP("shfl.from_outside_mask",
         "setp.lt.u32 q, lane, 16; mov.u32 $d, 99; @q shfl.sync.idx.b32 $d, $a, 20, 31, 0xffff;"),
    WARP("vote.ballot.part",
         "setp.lt.u32 q, lane, 8; and.b32 t, $a, 1; setp.ne.u32 p, t, 0; mov.u32 $d, 99; @q "
         "vote.sync.ballot.b32 $d, p, 0xff;"),
    WARP("vote.uni.part",
         "setp.lt.u32 q, lane, 8; setp.lt.u32 p, $a, 8; mov.u32 $d, 99; @q vote.sync.uni.pred p, p, 0xff; "
         "selp.b32 $d, 1, 0, p;"),
    WARP("match.any", "shr.u32 t, $a, 3; match.any.sync.b32 $d, t, -1;"),
    WARP("match.all",
         "shr.u32 t, $a, 5; match.all.sync.b32 u|p, t, -1; selp.b32 t, 1, 0, p; xor.b32 $d, u, t;"),
    WARP("match.all.differs", "match.all.sync.b32 u|p, $a, -1; selp.b32 t, 1, 0, p; xor.b32 $d, u, t;"),
    WARP("match.any.part",
         "setp.ge.u32 q, lane, 16; and.b32 t, $a, 1; mov.u32 $d, 99; @q match.any.sync.b32 $d, t, "
         "0xffff0000;"),
    WARP("redux.add.part",
         "setp.ge.u32 q, lane, 16; mov.u32 $d, 99; @q redux.sync.add.s32 $d, $a, 0xffff0000;"),
    WARP("redux.min.s32", "sub.u32 t, 15, $a; redux.sync.min.s32 $d, t, -1;"),
    WARP("redux.max.u32", "sub.u32 t, 15, $a; redux.sync.max.u32 $d, t, -1;"),
    WARP("redux.xor", "redux.sync.xor.b32 $d, $a, -1;"),
    WARP("activemask.half",
         "setp.lt.u32 q, lane, 16; mov.u32 $d, 99; @!q bra skip; activemask.b32 $d; skip:"),
    WARP("exited_lanes_ballot",
         "setp.lt.u32 q, lane, 4; mov.u32 $d, 99; setp.eq.u32 p, 0, 0; @q vote.sync.ballot.b32 $d, p, 0xf;"),
    ATOM("atom.global.inc.u32"),
    ATOM("atom.global.dec.u32"),
    ATOM("atom.global.min.s32"),
    ATOM("atom.global.max.u32"),
    ATOM("atom.global.exch.b32"),
    {"atomic", "atom.cas", 64, 32, 32, 0, &kU32, &kU32, NULL,
     "st.global.u32 [cell], $a; atom.global.cas.b32 t, [cell], $b, 77; ld.global.u32 u, [cell]; mov.b64 $d, "
     "{t, u};",
     "sm_80"},
    ATOMF("atom.global.add.f32", kF32),
    ATOMF("atom.global.add.noftz.f16x2", kF16x2),
    {"atomic", "red.add.noftz.f16x2", 32, 32, 32, 0, &kF16x2, &kF16x2, NULL,
     "st.global.u32 [cell], $a; red.global.add.noftz.f16x2 [cell], $b; ld.global.u32 $d, [cell];", "sm_80"},
    {"atomic", "red.shared.add.f32", 32, 32, 32, 0, &kF32, &kF32, NULL,
     "{ .shared .align 4 .b32 cells[1024]; mov.u32 u, %tid.x; shl.b32 u, u, 2; mov.u32 t, cells; add.u32 u, "
     "u, t; st.shared.u32 [u], $a; red.shared.add.f32 [u], $b; ld.shared.u32 $d, [u]; }",
     "sm_80"},
    {"atomic", "atom.add.f64", 64, 64, 64, 0, &kF64, &kF64, NULL,
     "st.global.u64 [cell], $a; atom.global.add.f64 w, [cell], $b; ld.global.u64 $d, [cell];", "sm_80"},
};

enum { kMaxCases = 1024 };

/* Writes text with the operands' registers in place of $d, $a, $b and $c. */
static void append_instructions(char* out, const Row* row) {
  out += strlen(out);
  for (const char* c = row->text; *c; ++c) {
    if (*c != '$') {
      *out++ = *c;
      continue;
    }
    const char name = *++c;
    out += sprintf(out, "%c%d", name,
                   name == 'd'   ? row->d
                   : name == 'a' ? row->a
                   : name == 'b' ? row->b
                                 : row->c);
  }
  *out = 0;
}

static void make_ptx(char* out, const Row* row) {
  sprintf(out,
          ".version 8.0\n.target %s\n.address_size 64\n.visible .entry e(.param .u64 pa, .param .u64 pd, "
          ".param .u64 pc) {\n"
          ".reg .b16 d16, a16, b16, c16, s; .reg .b32 d32, a32, b32, c32, t, u, lane; .reg .b64 d64, a64, "
          "b64, c64, w, in, out, cell;\n"
          ".reg .pred p, q;\n"
          "ld.param.u64 in, [pa]; ld.param.u64 out, [pd]; ld.param.u64 cell, [pc]; mov.u32 lane, %%tid.x;\n"
          "mul.wide.u32 w, lane, 8; add.u64 out, out, w; add.u64 cell, cell, w; mul.wide.u32 w, lane, 24; "
          "add.u64 in, in, w;\n"
          "ld.global.b%d a%d, [in];\n",
          row->target, row->a, row->a);
  if (row->b) sprintf(out + strlen(out), "ld.global.b%d b%d, [in+8];\n", row->b, row->b);
  if (row->c) sprintf(out + strlen(out), "ld.global.b%d c%d, [in+16];\n", row->c, row->c);
  append_instructions(out, row);
  sprintf(out + strlen(out), "\nst.global.b%d [out], d%d; ret; }\n", row->d, row->d);
}

static int make_cases(uint64_t (*cases)[3], const Row* row) {
  int count = 0;
  for (int i = 0; i < row->sa->count; ++i)
    for (int j = 0; j < (row->sb ? row->sb->count : 1); ++j)
      for (int k = 0; k < (row->sc ? row->sc->count : 1); ++k, ++count) {
        cases[count][0] = row->sa->values[i];
        cases[count][1] = row->sb ? row->sb->values[j] : 0;
        cases[count][2] = row->sc ? row->sc->values[k] : 0;
      }
  return count;
}

static void ask_row(const Row* row) {
  static uint64_t cases[kMaxCases][3], results[kMaxCases];
  char text[4096];
  say("\nnumbers_%s.%s\t", row->group, row->name);
  make_ptx(text, row);
  CUmodule module;
  const CUresult loaded = CU(cuModuleLoadData)(&module, text);
  if (loaded != CUDA_SUCCESS) {
    say_result("load", loaded);
    return;
  }
  const int count = make_cases(cases, row);
  CUdeviceptr in = device_memory(sizeof cases), out = device_memory(sizeof results),
              cells = device_memory(sizeof results);
  MUST(cuMemcpyHtoD, in, cases, sizeof cases);
  MUST(cuMemsetD8, out, 0, sizeof results);
  void* parameters[] = {&in, &out, &cells};
  CUfunction f;
  MUST(cuModuleGetFunction, &f, module, "e");
  MUST(cuLaunchKernel, f, 1, 1, 1, (unsigned)count, 1, 1, 0, NULL, parameters, NULL);
  MUST(cuMemcpyDtoH, results, out, sizeof results);
  for (int i = 0; i < count; ++i) {
    char line[128];
    int length = sprintf(line, "%llx", (unsigned long long)cases[i][0]);
    if (row->b) length += sprintf(line + length, ",%llx", (unsigned long long)cases[i][1]);
    if (row->c) length += sprintf(line + length, ",%llx", (unsigned long long)cases[i][2]);
    sprintf(line + length, ">%llx ", (unsigned long long)results[i]);
    say("%s", line);
  }
  MUST(cuMemFree, in);
  MUST(cuMemFree, out);
  MUST(cuMemFree, cells);
}

static void ask_group(const char* group) {
  start_without_module();
  for (size_t i = 0; i < sizeof kRows / sizeof *kRows; ++i)
    if (!strcmp(kRows[i].group, group)) ask_row(&kRows[i]);
}
QUESTION(numbers_f32) { ask_group("f32"); }
QUESTION(numbers_approx) { ask_group("approx"); }
QUESTION(numbers_f64) { ask_group("f64"); }
QUESTION(numbers_f16) { ask_group("f16"); }
QUESTION(numbers_f16x2) { ask_group("f16x2"); }
QUESTION(numbers_bf16) { ask_group("bf16"); }
QUESTION(numbers_cvt_f32) { ask_group("cvt_f32"); }
QUESTION(numbers_cvt_f64) { ask_group("cvt_f64"); }
QUESTION(numbers_cvt_f16) { ask_group("cvt_f16"); }
QUESTION(numbers_cvt_integer) { ask_group("cvt_integer"); }
QUESTION(numbers_integer) { ask_group("integer"); }
QUESTION(numbers_compare) { ask_group("compare"); }
QUESTION(numbers_warp) { ask_group("warp"); }
QUESTION(numbers_atomic) { ask_group("atomic"); }

void write_ptx(const char* folder) {
  for (size_t i = 0; i < sizeof kRows / sizeof *kRows; ++i) {
    char path[1024], text[4096];
    snprintf(path, sizeof path, "%s/%s.%s.ptx", folder, kRows[i].group, kRows[i].name);
    FILE* const file = fopen(path, "w");
    if (!file) continue;
    make_ptx(text, &kRows[i]);
    fputs(text, file);
    fclose(file);
  }
}
