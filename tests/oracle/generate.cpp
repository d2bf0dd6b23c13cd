// SPDX-License-Identifier: Apache-2.0
#include "generate.hpp"

#include <fmt/format.h>

#include <vector>

namespace quern::oracle {
namespace {

// splitmix64 (G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  unsigned below(unsigned n) { return static_cast<unsigned>(next() % n); }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <std::size_t N>
  const char* pick(const char* const (&list)[N]) {
    return list[below(N)];
  }

 private:
  std::uint64_t state_;
};

// fmt::format whose arguments are evaluated from left to right, as in any braced list: the same seed gives
// the same kernel with every compiler.
struct Text : std::string {
  template <class... Arguments>
  explicit Text(fmt::format_string<Arguments...> format, Arguments&&... arguments)
      : std::string(fmt::format(format, std::forward<Arguments>(arguments)...)) {}
};

/// A block's words for meeting: lock, sum, and from byte 64 on one for each thread, with one before and one
/// behind.
constexpr unsigned kMeetingBytes = 2048;
constexpr unsigned kR = 6, kRd = 4, kF = 4, kFd = 3, kP = 4;  // registers that statements read and write

// What calls through registers reach.
constexpr const char* kFunctions =
    ".func (.param .b32 result) times(.param .b32 x) {\n\t.reg .b32 %a<2>;\n\tld.param.b32 %a0, [x];\n"
    "\tmul.lo.s32 %a1, %a0, 2654435;\n\tst.param.b32 [result], %a1;\n\tret;\n}\n"
    ".func (.param .b32 result) half(.param .b32 x) {\n\t.reg .b32 %a<2>;\n\t.reg .pred %b;\n\tld.param.b32 "
    "%a0, [x];\n"
    "\tsetp.lt.s32 %b, %a0, 0;\n\t@%b neg.s32 %a0, %a0;\n\tshr.s32 %a1, %a0, 1;\n\tst.param.b32 [result], "
    "%a1;\n\tret;\n}\n"
    ".global .align 8 .u64 functions[2] = {times, half};\n";

class Writer {
 public:
  Writer(std::uint64_t seed, const GenerateOptions& options) : random_(seed), options_(options) {}

  Generated write() {
    Generated result;
    shape(result);
    prologue();
    for (unsigned i = 0; i < options_.statements; ++i) statement(0);
    epilogue();
    result.ptx = fmt::format(
        ".version 8.6\n.target sm_89\n.address_size 64\n\n{}\n.visible .entry k(\n\t.param .u64 "
        "k_in,\n\t.param "
        ".u64 k_out,\n\t.param .u32 k_threads\n)\n{{\n"
        "\t.reg .pred %p<{}>;\n\t.reg .pred %q<{}>;\n\t.reg .b32 %r<{}>;\n\t.reg .b64 %rd<{}>;\n\t.reg .f32 "
        "%f<{}>;\n\t.reg .f64 %fd<{}>;\n"
        "\t.reg .b16 %h<2>;\n\t.reg .b32 %t<12>;\n\t.reg .b64 %td<12>;\n\t.reg .f32 %tf<2>;\n\t.reg .b32 "
        "%loop<{}>;\n\t.shared "
        ".align 8 .b8 tile[{}];\n{}}}\n",
        options_.waiting
            ? std::string(kFunctions) + Text{".global .align 8 .b8 meeting[{}];\n", 6 * kMeetingBytes}
            : std::string(kFunctions),
        kP, 3, kR, kRd, kF, kFd, loops_ + 1, 1024 * 4, text_);
    return result;
  }

 private:
  void line(const std::string& text) { text_ += "\t" + text + ";\n"; }
  void label(unsigned number) { text_ += Text{"$L{}:\n", number}; }
  std::string r() { return Text{"%r{}", random_.below(kR)}; }
  std::string rd() { return Text{"%rd{}", random_.below(kRd)}; }
  std::string f() { return Text{"%f{}", random_.below(kF)}; }
  std::string fd() { return Text{"%fd{}", random_.below(kFd)}; }
  std::string p() { return Text{"%p{}", random_.below(kP)}; }

  std::string constant32() {
    static constexpr const char* kInteresting[] = {
        "0", "1", "-1", "2", "31", "32", "33", "255", "65535", "2147483647", "-2147483648", "1000003"};
    return random_.chance(70) ? random_.pick(kInteresting)
                              : std::to_string(static_cast<std::int32_t>(random_.next()));
  }
  std::string r_or_constant() { return random_.chance(25) ? constant32() : r(); }
  std::string f_or_constant() {
    static constexpr const char* kInteresting[] = {
        "0f00000000", "0f80000000", "0f3F800000", "0fBF800000", "0f00000001", "0f007FFFFF", "0f00800000",
        "0f7F7FFFFF", "0f7F800000", "0fFF800000", "0f7FFFFFFF", "0f40490FDB", "0f4F000000"};
    return random_.chance(25) ? random_.pick(kInteresting) : f();
  }

  void shape(Generated& result) {
    static constexpr std::array<std::uint32_t, 3> kBlocks[] = {
        {1, 1, 1}, {32, 1, 1},  {64, 1, 1}, {33, 1, 1},  {16, 16, 1}, {7, 3, 2},
        {8, 8, 1}, {100, 1, 1}, {4, 4, 4},  {128, 1, 1}, {31, 1, 1},  {5, 13, 1}};
    result.block = kBlocks[random_.below(std::size(kBlocks))];
    result.grid = {1 + random_.below(3), 1 + random_.below(2), 1};
    threads_ = result.block[0] * result.block[1] * result.block[2];
    const std::uint64_t all = std::uint64_t{threads_} * result.grid[0] * result.grid[1];
    result.in_bytes = all * 64 + 64;
    result.out_bytes = all * kOutWords * 8;
  }

  // %t0: thread in the block, %t1: thread in the grid; %td0: this thread's input, %td1: its output, %td2: all
  // input.
  void prologue() {
    for (const char* text :
         {"mov.u32 %t2, %tid.x", "mov.u32 %t3, %tid.y", "mov.u32 %t4, %tid.z", "mov.u32 %t5, %ntid.x",
          "mov.u32 %t6, %ntid.y", "mad.lo.s32 %t3, %t4, %t6, %t3", "mad.lo.s32 %t0, %t3, %t5, %t2",
          "mov.u32 %t2, %ctaid.x", "mov.u32 %t3, %ctaid.y", "mov.u32 %t4, %nctaid.x",
          "mad.lo.s32 %t2, %t3, %t4, %t2"})
      line(text);
    line(Text{"mad.lo.s32 %t1, %t2, {}, %t0", threads_});
    for (const char* text :
         {"ld.param.u64 %td2, [k_in]", "ld.param.u64 %td3, [k_out]", "cvta.to.global.u64 %td2, %td2",
          "cvta.to.global.u64 %td3, %td3", "mul.wide.u32 %td4, %t1, 64", "add.s64 %td0, %td2, %td4"})
      line(text);
    line(Text{"mul.wide.u32 %td4, %t1, {}", kOutWords * 8});
    line("add.s64 %td1, %td3, %td4");
    if (options_.waiting) {
      line("mov.u64 %td8, meeting");
      line("cvta.global.u64 %td8, %td8");
      line(Text{"mul.wide.u32 %td9, %t2, {}", kMeetingBytes});
      line("add.s64 %td8, %td8, %td9");
    }
    for (unsigned i = 0; i < kR; ++i) {
      if (i == 0)
        line("mov.u32 %r0, %t0");
      else if (i == 1)
        line("mov.u32 %r1, %t1");
      else if (i == 2)
        line(Text{"mov.u32 %r2, {}", constant32()});
      else
        line(Text{"ld.global.u32 %r{}, [%td0+{}]", i, 4 * i});
    }
    for (unsigned i = 0; i < kRd; ++i) line(Text{"ld.global.u64 %rd{}, [%td0+{}]", i, 8 * (i % 4) + 24});
    for (unsigned i = 0; i < kF; ++i)
      line(i % 2 == 0 ? Text{"ld.global.f32 %f{}, [%td0+{}]", i, 4 * i}
                      : Text{"cvt.rn.f32.s32 %f{}, %r{}", i, i});
    for (unsigned i = 0; i < kFd; ++i)
      line(i == 0 ? Text{"ld.global.f64 %fd0, [%td0+56]"} : Text{"cvt.rn.f64.s32 %fd{}, %r{}", i, i});
    for (unsigned i = 0; i < kP; ++i)
      line(Text{"setp.{}.s32 %p{}, %r{}, %r{}", i % 2 == 0 ? "lt" : "ne", i, i, i + 1});
  }

  void epilogue() {
    for (unsigned i = 0; i < kIntegerWords; ++i) {
      if (i < 4)
        line(Text{"cvt.u64.u32 %td4, %r{}", i});
      else
        line(Text{"xor.b64 %td4, %rd{}, %rd{}", i - 4, i - 2});
      line(Text{"st.global.u64 [%td1+{}], %td4", 8 * i});
    }
    for (unsigned i = 0; i < kF32Words; ++i)
      line(Text{"st.global.f32 [%td1+{}], %f{}", 8 * (kIntegerWords + i), i});
    for (unsigned i = 0; i < kF64Words; ++i)
      line(Text{"st.global.f64 [%td1+{}], %fd{}", 8 * (kIntegerWords + kF32Words + i), i});
    line("ret");
  }

  // Structured statements; together: all threads of the block run it.
  void statement(unsigned depth) {
    if (options_.waiting && random_.chance(25)) return wait(depth);
    const unsigned kind = random_.below(100);
    const bool together = depth == 0;
    if (kind < 10 && depth < 3) return branch(depth);
    if (kind < 16 && depth < 2) return loop(depth);
    if (kind < 24 && together && options_.shuffles) return shuffle();
    if (kind < 30 && together && options_.barriers) return exchange();
    if (kind < 40 && options_.memory) return load();
    if (kind < 42) return call();
    if (kind < 44 && together && options_.shuffles) return reduce();
    if (kind < 57) return integer32();
    if (kind < 63) return narrow();
    if (kind < 72) return integer64();
    if (kind < 84) return float32();
    if (kind < 89) return float64();
    if (kind < 95) return conversion();
    predicate();
  }

  void branch(unsigned depth) {
    const unsigned otherwise = labels_++, end = labels_++;
    line(Text{"@{}{} bra $L{}", random_.chance(50) ? "!" : "", p(), otherwise});
    for (unsigned i = 0, n = 1 + random_.below(3); i < n; ++i) statement(depth + 1);
    const bool has_else = random_.chance(50);
    if (has_else) line(Text{"bra{} $L{}", random_.chance(50) ? ".uni" : "", end});
    label(otherwise);
    if (has_else)
      for (unsigned i = 0, n = 1 + random_.below(3); i < n; ++i) statement(depth + 1);
    label(end);
  }

  // Runs (register & 7) + 1 times, or fewer by a break; uniform where the count is a constant.
  void loop(unsigned depth) {
    const unsigned counter = ++loops_, head = labels_++, out = labels_++;
    if (random_.chance(40))
      line(Text{"mov.u32 %loop{}, {}", counter, 1 + random_.below(5)});
    else {
      line(Text{"and.b32 %loop{}, {}, 7", counter, r()});
      line(Text{"add.s32 %loop{0}, %loop{0}, 1", counter});
    }
    label(head);
    for (unsigned i = 0, n = 1 + random_.below(3); i < n; ++i) statement(depth + 1);
    if (random_.chance(30)) {
      line(Text{"setp.{}.s32 %q0, {}, {}", random_.pick({"lt", "eq", "gt"}), r(), r_or_constant()});
      line(Text{"@%q0 bra $L{}", out});
    }
    if (random_.chance(50)) statement(depth + 1);
    line(Text{"add.s32 %loop{0}, %loop{0}, -1", counter});
    line(Text{"setp.ne.s32 %q1, %loop{}, 0", counter});
    line(Text{"@%q1 bra $L{}", head});
    label(out);
  }

  // ---- threads that wait for each other. Whatever their order, the outcome is the same.

  void wait(unsigned depth) {
    switch (random_.below(depth == 0 ? 6 : 3)) {
      case 0:
        return depth < 2 ? enter_in_the_middle(depth) : lock();
      case 1:
      case 2:
        return lock();
      case 3:
        return chain();
      case 4:
        return threads_ % 64 == 0 ? produce_and_consume() : chain();
      default:
        return read_sum();
    }
  }

  // A loop with two entries.
  void enter_in_the_middle(unsigned depth) {
    const unsigned counter = ++loops_, head = labels_++, middle = labels_++;
    line(Text{"and.b32 %loop{}, {}, 3", counter, r()});
    line(Text{"add.s32 %loop{0}, %loop{0}, 1", counter});
    line(Text{"@{}{} bra $L{}", random_.chance(50) ? "!" : "", p(), middle});
    label(head);
    for (unsigned i = 0, n = 1 + random_.below(2); i < n; ++i) statement(depth + 1);
    label(middle);
    for (unsigned i = 0, n = 1 + random_.below(2); i < n; ++i) statement(depth + 1);
    line(Text{"add.s32 %loop{0}, %loop{0}, -1", counter});
    line(Text{"setp.ne.s32 %q1, %loop{}, 0", counter});
    line(Text{"@%q1 bra $L{}", head});
  }

  // %td8: the block's words in `meeting`: the lock, and what is added up under it.
  void lock() {
    const unsigned again = labels_++, out = labels_++;
    const bool holder_leaves = random_.chance(50);
    label(again);
    line("atom.global.cas.b32 %t8, [%td8], 0, 1");
    line("setp.ne.s32 %q0, %t8, 0");
    line(Text{"@%q0 bra $L{}", again});
    line("ld.volatile.global.u32 %t8, [%td8+4]");
    line(Text{"and.b32 %t9, {}, 255", r()});
    line("add.s32 %t8, %t8, %t9");
    line("st.volatile.global.u32 [%td8+4], %t8");
    line("membar.gl");
    line("atom.global.exch.b32 %t8, [%td8], 0");
    if (!holder_leaves) {  // round the same loop once more, as `while (!done)` has it
      line("setp.eq.s32 %q0, %t8, 1");
      line(Text{"@%q0 bra $L{}", out});
      line(Text{"bra $L{}", again});
    }
    label(out);
  }

  void read_sum() {
    line("bar.sync 0");
    line(Text{"ld.volatile.global.u32 {}, [%td8+4]", r()});
    line("bar.sync 0");
  }

  // Each thread waits until its neighbour has come this far.
  void chain() {
    const unsigned again = labels_++, first = labels_++, turn = ++chains_;
    const bool upwards = random_.chance(50);
    const unsigned end = upwards ? 0 : threads_ - 1;
    line("mul.wide.u32 %td9, %t0, 4");
    line("add.s64 %td9, %td8, %td9");
    line(Text{"setp.eq.u32 %q0, %t0, {}", end});
    line(Text{"@%q0 bra $L{}", first});
    label(again);
    line(Text{"ld.volatile.global.u32 %t8, [%td9+{}]", 64 + (upwards ? -4 : 4)});
    line(Text{"setp.lt.u32 %q0, %t8, {}", turn});
    if (random_.chance(30)) line("nanosleep.u32 10");
    line(Text{"@%q0 bra $L{}", again});
    label(first);
    line(Text{"st.volatile.global.u32 [%td9+64], {}", turn});
  }

  // The first half of the warps writes and goes on, the second half waits for it and reads.
  void produce_and_consume() {
    const unsigned id = 1 + random_.below(15);
    line("mov.u32 %t2, tile");
    line("shl.b32 %t3, %t0, 2");
    line("add.s32 %t3, %t2, %t3");
    line(Text{"setp.lt.u32 %q0, %t0, {}", threads_ / 2});
    line(Text{"@%q0 st.shared.u32 [%t3], {}", r()});
    const unsigned consumer = labels_++, end = labels_++;
    line(Text{"@!%q0 bra $L{}", consumer});
    line(Text{"bar.arrive {}, {}", id, threads_});
    line(Text{"bra $L{}", end});
    label(consumer);
    line(Text{"bar.sync {}, {}", id, threads_});
    line(Text{"ld.shared.u32 {}, [%t3+-{}]", r(), threads_ / 2 * 4});
    label(end);
    line("bar.sync 0");
  }

  void shuffle() {
    // Every living lane takes part and reads a lane that is there: the source is taken modulo a power of two
    // that the last, partial warp has in full, so the segment is that small.
    unsigned segment = 32;
    while (threads_ % segment != 0) segment /= 2;
    const unsigned c = ((32 - segment) << 8);
    switch (random_.below(4)) {
      case 0:
        return line(Text{"shfl.sync.bfly.b32 {}, {}, {}, {}, -1", r(), r(), random_.below(segment), c | 31});
      case 1:
        return line(Text{"shfl.sync.idx.b32 {}, {}, {}, {}, -1", r(), r(), r(), c | 31});
      case 2:
        return line(
            Text{"shfl.sync.down.b32 {}|{}, {}, {}, {}, -1", r(), p(), r(), random_.below(segment), c | 31});
      default:
        return line(Text{"shfl.sync.up.b32 {}|{}, {}, {}, {}, -1", r(), p(), r(), random_.below(segment), c});
    }
  }

  void reduce() {
    line(Text{"redux.sync.{} {}, {}, -1",
              random_.pick({"add.s32", "add.u32", "min.s32", "min.u32", "max.s32", "max.u32", "and.b32",
                            "or.b32", "xor.b32"}),
              r(), r()});
  }

  // Through the table `functions`, where threads may differ in what they call.
  void call() {
    line(Text{"and.b32 %t6, {}, 1", r()});
    line("mul.wide.u32 %td6, %t6, 8");
    line("mov.u64 %td7, functions");
    line("add.s64 %td7, %td7, %td6");
    line("ld.global.u64 %td7, [%td7]");
    const unsigned number = labels_++;
    text_ += "\t{\n";
    line(".param .b32 given");
    line(".param .b32 got");
    line(Text{"st.param.b32 [given], {}", r()});
    line(Text{"prototype{}: .callprototype (.param .b32 _) _ (.param .b32 _)", number});
    line(Text{"call (got), %td7, (given), prototype{}", number});
    line(Text{"ld.param.b32 {}, [got]", r()});
    text_ += "\t}\n";
  }

  // Bit fields, bytes and halves of words, and conversions to narrow formats whose NaN PTX defines.
  void narrow() {
    switch (random_.below(11)) {
      case 0:
        return line(
            Text{"{} {}, {}, {}",
                 random_.pick({"szext.wrap.u32", "szext.clamp.s32", "bmsk.wrap.b32", "bmsk.clamp.b32"}), r(),
                 r(), random_.chance(50) ? std::to_string(random_.below(40)) : r()});
      case 1:
        line(Text{"and.b32 %t7, {}, 31", r()});
        return line(Text{"fns.b32 {}, {}, %t7, {}", r(), r(),
                         random_.chance(50) ? std::to_string(random_.below(9)) : r()});
      case 2:
        return line(Text{"{} {}, {}, {}, {}",
                         random_.pick({"dp4a.u32.s32", "dp4a.s32.s32", "dp2a.lo.u32.u32", "dp2a.hi.s32.u32"}),
                         r(), r(), r(), r()});
      case 3:
        return line(Text{"{} {}, {}, {}, {}",
                         random_.pick({"vadd4.s32.s32.s32.sat", "vsub4.u32.u32.u32.sat",
                                       "vabsdiff4.u32.u32.u32.add", "vmax4.s32.u32.s32", "vavrg4.u32.u32.u32",
                                       "vset4.u32.s32.lt", "vadd2.u32.s32.s32.add", "vsub2.s32.s32.s32.sat",
                                       "vmin2.u32.u32.u32", "vset2.s32.s32.ge.add"}),
                         r(), r(), r(), r()});
      case 4:
        return line(
            Text{"{} {}, {}.{}, {}.{}, {}",
                 random_.pick({"vadd.s32.s32.u32.sat.add", "vsub.u32.s32.s32.min", "vabsdiff.s32.u32.u32.max",
                               "vmad.s32.s32.u32.sat.shr7", "vset.s32.u32.lt.add"}),
                 r(), r(), random_.pick({"b0", "b1", "b2", "b3", "h0", "h1"}), r(),
                 random_.pick({"b0", "b3", "h1"}), r()});
      case 5:
        return random_.chance(50)
                   ? line(Text{"cvt.pack.sat.{}.s32 {}, {}, {}", random_.pick({"s16", "u16"}), r(), r(), r()})
                   : line(Text{"cvt.pack.sat.{}.s32.b32 {}, {}, {}, {}",
                               random_.pick({"s8", "u8", "s4", "u2"}), r(), r(), r(), r()});
      case 6:
        return line(Text{
            "cvt.{} {}, {}, {}",
            random_.pick({"rn.f16x2.f32", "rz.satfinite.bf16x2.f32", "rn.relu.f16x2.f32", "rn.bf16x2.f32"}),
            r(), f(), f()});
      case 7:
        line(Text{"cvt.rn.satfinite.{}.f32 %h0, {}, {}", random_.pick({"e4m3x2", "e5m2x2"}), f(), f()});
        return line(Text{"cvt.u32.u16 {}, %h0", r()});
      case 8:
        line(Text{"cvt.u16.u32 %h0, {}", r()});
        return line(Text{"cvt.rn.f16x2.{} {}, %h0", random_.pick({"e4m3x2", "e5m2x2"}), r()});
      case 9:
        return line(Text{"{} {}, {}, {}",
                         random_.pick({"set.lt.f16x2.f16x2", "set.neu.u32.f16x2", "min.f16x2",
                                       "max.NaN.f16x2", "min.bf16x2", "set.equ.ftz.u32.f16x2"}),
                         r(), r(), r()});
      default:
        return line(Text{"cvt.rna.tf32.f32 {}, {}", r(), f()});
    }
  }

  // Each thread writes its own word of shared memory and reads another's, barriers between.
  void exchange() {
    line("mov.u32 %t2, tile");
    line("shl.b32 %t3, %t0, 2");
    line("add.s32 %t3, %t2, %t3");
    line(Text{"st.shared.u32 [%t3], {}", r()});
    line("bar.sync 0");
    line(Text{"{} %t4, {}, {}", random_.pick({"add.s32", "xor.b32", "sub.s32"}),
              random_.chance(50) ? "%t0" : r(), constant32()});
    line(Text{"rem.u32 %t4, %t4, {}", threads_});
    line("shl.b32 %t4, %t4, 2");
    line("add.s32 %t4, %t2, %t4");
    line(Text{"ld.shared.u32 {}, [%t4]", r()});
    line("bar.sync 0");
  }

  // Reads somewhere in the input that threads do not write.
  void load() {
    switch (random_.below(5)) {
      case 0:
        return line(Text{"ld.global.{} {}, [%td0+{}]", random_.pick({"u32", "s32", "u16", "s16", "u8", "s8"}),
                         r(), 4 * random_.below(15)});
      case 1:
        return line(Text{"ld.global.v2.u32 {{%r{}, %r{}}}, [%td0+{}]", random_.below(3), 3 + random_.below(3),
                         8 * random_.below(7)});
      case 2:
        line(Text{"and.b32 %t5, {}, 15", r()});
        line("mul.wide.u32 %td5, %t5, 4");
        line("add.s64 %td5, %td2, %td5");
        return line(Text{"ld.global.u32 {}, [%td5]", r()});
      case 3:
        line(Text{"{}ld.global.f32 {}, [%td0+{}]", random_.chance(30) ? "@" + p() + " " : "", f(),
                  4 * random_.below(16)});
        return;
      default:
        return line(Text{"ld.global.u64 {}, [%td0+{}]", rd(), 8 * random_.below(8)});
    }
  }

  void integer32() {
    const std::string guard =
        random_.chance(15) ? Text{"@{}{} ", random_.chance(50) ? "!" : "", p()} : Text{""};
    switch (random_.below(13)) {
      case 0:
      case 1:
      case 2:
        return line(Text{"{}{} {}, {}, {}", guard,
                         random_.pick({"add.s32", "sub.s32", "mul.lo.s32", "mul.hi.s32", "mul.hi.u32",
                                       "and.b32", "or.b32", "xor.b32", "min.s32", "max.s32", "min.u32",
                                       "max.u32", "add.sat.s32", "sub.sat.s32"}),
                         r(), r(), r_or_constant()});
      case 3:
        return line(Text{"{}mad.lo.s32 {}, {}, {}, {}", guard, r(), r(), r_or_constant(), r()});
      case 4:
        return line(Text{"{}{} {}, {}, {}", guard, random_.pick({"div.s32", "div.u32", "rem.s32", "rem.u32"}),
                         r(), r(), std::to_string(1 + random_.below(1000))});
      case 5:
        return line(Text{"{}{} {}, {}, {}", guard, random_.pick({"shl.b32", "shr.s32", "shr.u32"}), r(), r(),
                         random_.chance(50) ? std::to_string(random_.below(40)) : r()});
      case 6:
        return line(Text{"{}{} {}, {}", guard,
                         random_.pick({"abs.s32", "neg.s32", "not.b32", "cnot.b32", "brev.b32"}), r(), r()});
      case 7:
        return line(Text{
            "{}{} {}, {}", guard,
            random_.pick({"popc.b32", "clz.b32", "bfind.u32", "bfind.s32", "bfind.shiftamt.u32"}), r(), r()});
      case 8:
        return line(Text{"{}lop3.b32 {}, {}, {}, {}, {}", guard, r(), r(), r(), r(), random_.below(256)});
      case 9:
        return line(Text{"{}shf.{}.{}.b32 {}, {}, {}, {}", guard, random_.pick({"l", "r"}),
                         random_.pick({"wrap", "clamp"}), r(), r(), r(), r()});
      case 10:
        return line(Text{"{}prmt.b32 {}, {}, {}, {}", guard, r(), r(), r(),
                         random_.chance(50) ? std::to_string(random_.below(65536)) : r()});
      case 11:
        return line(Text{"{}bfe.{} {}, {}, {}, {}", guard, random_.pick({"u32", "s32"}), r(), r(),
                         random_.below(36), random_.below(36)});
      default:
        return line(Text{"{}selp.b32 {}, {}, {}, {}", guard, r(), r(), r_or_constant(), p()});
    }
  }

  void integer64() {
    switch (random_.below(7)) {
      case 0:
      case 1:
        return line(Text{"{} {}, {}, {}",
                         random_.pick({"add.s64", "sub.s64", "mul.lo.s64", "and.b64", "or.b64", "xor.b64",
                                       "min.s64", "max.u64", "mul.hi.u64"}),
                         rd(), rd(), rd()});
      case 2:
        return line(Text{"mul.wide.{} {}, {}, {}", random_.pick({"s32", "u32"}), rd(), r(), r_or_constant()});
      case 3:
        return line(Text{"{} {}, {}, {}", random_.pick({"shl.b64", "shr.s64", "shr.u64"}), rd(), rd(),
                         random_.chance(50) ? std::to_string(random_.below(70)) : r()});
      case 4:
        return line(
            Text{"{} {}, {}", random_.pick({"neg.s64", "not.b64", "brev.b64", "abs.s64"}), rd(), rd()});
      case 5:
        return line(Text{"{} {}, {}", random_.pick({"popc.b64", "clz.b64"}), r(), rd()});
      default:
        line(Text{"add.cc.u32 %r0, {}, {}", r(), r()});
        return line(Text{"addc.u32 %r1, {}, {}", r(), r()});
    }
  }

  void float32() {
    const char* ftz = random_.chance(30) ? ".ftz" : "";
    switch (random_.below(6)) {
      case 0:
      case 1:
        return line(Text{"{}{}.f32 {}, {}, {}",
                         random_.pick({"add.rn", "sub.rn", "mul.rn", "add.rz", "mul.rp", "sub.rm"}), ftz, f(),
                         f(), f_or_constant()});
      case 2:
        return line(Text{"fma.rn{}.f32 {}, {}, {}, {}", ftz, f(), f(), f_or_constant(), f()});
      case 3:
        return line(
            Text{"{}{}.f32 {}, {}, {}", random_.pick({"min", "max"}), ftz, f(), f(), f_or_constant()});
      case 4:
        return line(
            Text{"{}{}.f32 {}, {}", random_.pick({"neg", "abs", "sqrt.rn", "rcp.rn"}), ftz, f(), f()});
      default:
        return line(Text{"div.rn{}.f32 {}, {}, {}", ftz, f(), f(), f_or_constant()});
    }
  }

  void float64() {
    if (random_.chance(30)) return line(Text{"fma.rn.f64 {}, {}, {}, {}", fd(), fd(), fd(), fd()});
    line(Text{"{}.f64 {}, {}, {}", random_.pick({"add.rn", "sub.rn", "mul.rn", "div.rn", "min", "max"}), fd(),
              fd(), fd()});
  }

  void conversion() {
    switch (random_.below(8)) {
      case 0:
        return line(Text{"cvt.{}.{} {}, {}", random_.pick({"rzi", "rni", "rmi", "rpi"}),
                         random_.pick({"s32.f32", "u32.f32"}), r(), f()});
      case 1:
        return line(Text{"cvt.{}.f32.{} {}, {}", random_.pick({"rn", "rz", "rm", "rp"}),
                         random_.pick({"s32", "u32"}), f(), r()});
      case 2:
        return line(Text{"cvt.{}.{} {}, {}", random_.pick({"s64", "u64"}), random_.chance(50) ? "s32" : "u32",
                         rd(), r()});
      case 3:
        return line(Text{"cvt.u32.u64 {}, {}", r(), rd()});
      case 4:
        return line(Text{"cvt.f64.f32 {}, {}", fd(), f()});
      case 5:
        return line(Text{"cvt.rn.f32.f64 {}, {}", f(), fd()});
      case 6:
        return line(
            Text{"cvt.{}.f32.f32 {}, {}", random_.pick({"rni", "rzi", "rmi", "rpi", "sat"}), f(), f()});
      default:
        return line(Text{"cvt.{} {}, {}",
                         random_.pick({"s32.s8", "u32.u8", "s32.s16", "u32.u16", "sat.s8.s32", "sat.u8.s32"}),
                         r(), r()});
    }
  }

  void predicate() {
    switch (random_.below(4)) {
      case 0:
        return line(Text{"setp.{}.{} {}, {}, {}", random_.pick({"eq", "ne", "lt", "le", "gt", "ge"}),
                         random_.pick({"s32", "u32"}), p(), r(), r_or_constant()});
      case 1:
        return line(Text{"setp.{}.f32 {}, {}, {}",
                         random_.pick({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu",
                                       "geu", "num", "nan"}),
                         p(), f(), f_or_constant()});
      case 2:
        return line(Text{"{}.pred {}, {}, {}", random_.pick({"and", "or", "xor"}), p(), p(), p()});
      default:
        return line(Text{"setp.{}.and.s32 %p0|%p1, {}, {}, {}", random_.pick({"lt", "ge"}), r(), r(), p()});
    }
  }

  Random random_;
  const GenerateOptions& options_;
  std::string text_;
  unsigned threads_ = 1;
  unsigned labels_ = 0;
  unsigned loops_ = 0;
  unsigned chains_ = 0;
};

}  // namespace

Generated generate(std::uint64_t seed, const GenerateOptions& options) {
  return Writer(seed, options).write();
}

}  // namespace quern::oracle
