// SPDX-License-Identifier: Apache-2.0
// Generates a kernel's frame and its control flow; generate_*.cpp generate the statements.
#include "generate.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "writer.hpp"

namespace quern::oracle {
namespace {

// The functions that calls may reach. The table is for calls through registers. `folded` has a loop and a
// branch. `descend` calls itself to a depth of up to seven, once or twice in each activation, and has an
// array on its stack.
constexpr const char* kFunctions =
    ".func (.param .b32 result) times(.param .b32 x) {\n\t.reg .b32 %a<2>;\n\tld.param.b32 %a0, [x];\n"
    "\tmul.lo.s32 %a1, %a0, 2654435;\n\tst.param.b32 [result], %a1;\n\tret;\n}\n"
    ".func (.param .b32 result) half(.param .b32 x) {\n\t.reg .b32 %a<2>;\n\t.reg .pred %b;\n"
    "\tld.param.b32 %a0, [x];\n\tsetp.lt.s32 %b, %a0, 0;\n\t@%b neg.s32 %a0, %a0;\n\tshr.s32 %a1, %a0, 1;\n"
    "\tst.param.b32 [result], %a1;\n\tret;\n}\n"
    ".func (.param .b32 result) folded(.param .b32 x) {\n\t.reg .b32 %a<3>;\n\t.reg .pred %b;\n"
    "\tld.param.b32 %a0, [x];\n\tmov.u32 %a1, 0;\n$again:\n\tsetp.lt.u32 %b, %a0, 16;\n\t@%b bra $done;\n"
    "\tand.b32 %a2, %a0, 15;\n\tadd.s32 %a1, %a1, %a2;\n\tshr.u32 %a0, %a0, 4;\n\tbra $again;\n$done:\n"
    "\tadd.s32 %a1, %a1, %a0;\n\tst.param.b32 [result], %a1;\n\tret;\n}\n"
    ".func (.param .b32 result) descend(.param .b32 x) {\n\t.local .align 4 .b8 words[16];\n\t.reg .b32 "
    "%a<8>;\n\t.reg .b64 %c<4>;\n\t.reg .pred %b<3>;\n\tld.param.b32 %a0, [x];\n\tand.b32 %a1, %a0, 7;\n"
    "\tmov.u64 %c0, words;\n\tand.b32 %a2, %a1, 3;\n\tmul.wide.u32 %c1, %a2, 4;\n\tadd.s64 %c1, %c0, %c1;\n"
    "\tst.local.u32 [words], 1;\n\tst.local.u32 [words+4], %a1;\n\tst.local.v2.u32 [words+8], {2, 3};\n"
    "\tst.local.u32 [%c1], %a0;\n\tmov.u32 %a3, %a0;\n\tsetp.eq.u32 %b0, %a1, 0;\n\t@%b0 bra $base;\n"
    "\tsub.s32 %a4, %a0, 1;\n\t{\n\t.param .b32 given;\n\t.param .b32 got;\n\tst.param.b32 [given], %a4;\n"
    "\tcall (got), descend, (given);\n\tld.param.b32 %a3, [got];\n\t}\n\tand.b32 %a5, %a0, 24;\n"
    "\tsetp.ne.u32 %b1, %a5, 0;\n\t@%b1 bra $base;\n\tshr.u32 %a4, %a1, 1;\n\t{\n\t.param .b32 given;\n"
    "\t.param .b32 got;\n\tst.param.b32 [given], %a4;\n\tcall (got), descend, (given);\n"
    "\tld.param.b32 %a6, [got];\n\t}\n\tmad.lo.s32 %a3, %a6, 5, %a3;\n$base:\n\tld.local.u32 %a6, [%c1];\n"
    "\tld.local.u32 %a7, [words+4];\n\tadd.s32 %a6, %a6, %a7;\n\tmad.lo.s32 %a3, %a3, 3, %a6;\n"
    "\tst.param.b32 [result], %a3;\n\tret;\n}\n"
    ".global .align 8 .u64 functions[2] = {times, half};\n"
    ".const .align 4 .u32 table[16] = {0, 1, 4294967295, 2147483648, 2147483647, 65535, 32768, 255, 128, 31, "
    "32, "
    "3735928559, 16843009, 1000003, 4026531840, 252645135};\n";

Extents choose_block(Random& random) {
  static constexpr Extents kBlocks[] = {{1, 1, 1},  {32, 1, 1}, {64, 1, 1},  {33, 1, 1}, {16, 4, 1},
                                        {7, 3, 2},  {8, 8, 1},  {100, 1, 1}, {4, 4, 4},  {96, 1, 1},
                                        {31, 1, 1}, {5, 13, 1}, {2, 1, 1},   {64, 1, 1}, {128, 1, 1},
                                        {17, 1, 2}, {8, 2, 2},  {63, 1, 1},  {8, 3, 1}};
  if (random.chance(85)) return random.pick(kBlocks);
  const std::uint32_t x = 1 + random.below(40), y = 1 + random.below(3);
  return {x, y, 1};
}

// With full warps, for which the code is full.
Extents choose_whole_block(Random& random) {
  static constexpr Extents kBlocks[] = {{64, 1, 1}, {128, 1, 1}, {32, 4, 1},
                                        {96, 1, 1}, {100, 1, 1}, {64, 2, 1}};
  return random.pick(kBlocks);
}

class Kernel {
 public:
  Kernel(std::uint64_t seed, const GenerateOptions& options) : w_(seed, options) {}

  Generated write() {
    Generated result;
    shape(result);
    prologue();
    if (w_.options.indices) begin_indices(w_, result.threads * 64);
    const unsigned count = w_.options.statements;
    for (unsigned i = 0; i < count; ++i) {
      statement(0);
      if (i > count / 2 && w_.random.chance(2)) leave_early();
    }
    if (w_.options.indices) end_indices(w_);
    epilogue();
    result.ptx = module();
    return result;
  }

 private:
  std::string module() const {
    std::string start;
    if (w_.uses_stack) {
      start += "\tmov.u64 %td10, stack;\n";
      const unsigned each = w_.stack_element == 8 ? 8 : 4;
      for (unsigned i = 0; i < kStackWords * 4 / each; ++i)
        start += Text{"\tst.local.u{} [stack+{}], {};\n", each * 8, each * i, i * 0x01010101u};
    }
    return fmt::format(
        ".version 8.6\n.target sm_89\n.address_size 64\n\n{}\n.visible .entry k(\n\t.param .u64 "
        "k_in,\n\t.param .u64 k_out,\n\t.param .u32 k_threads\n)\n{{\n"
        "\t.reg .pred %p<{}>;\n\t.reg .pred %q<3>;\n\t.reg .b32 %r<{}>;\n\t.reg .b64 %rd<{}>;\n\t.reg .f32 "
        "%f<{}>;\n\t.reg .f64 %fd<{}>;\n\t.reg .b16 %h<4>;\n\t.reg .b32 %t<12>;\n\t.reg .b64 %td<12>;\n"
        "\t.reg .f32 %tf<2>;\n\t.reg .b32 %n<{}>;\n\t.reg .b32 %u<{}>;\n\t.reg .b32 %loop<{}>;\n\t.shared "
        ".align 8 .b8 tile[{}];\n{}{}{}}}\n",
        functions(), kP, kR, kRd, kF, kFd, kN, kU, w_.loops + 1, std::max(64u, w_.threads * 4),
        w_.uses_stack ? Text{"\t.local .align 8 .b8 stack[{}];\n", kStackWords * 4} : Text{""}, start,
        w_.text);
  }

  std::string functions() const {
    return w_.options.waiting
               ? std::string(kFunctions) + Text{".global .align 8 .b8 meeting[{}];\n", 6 * kMeetingBytes}
               : std::string(kFunctions);
  }

  void shape(Generated& result) {
    const Extents chosen = w_.options.indices ? choose_whole_block(w_.random) : choose_block(w_.random);
    result.block = w_.options.block.value_or(chosen);
    result.grid = {1 + w_.random.below(3), 1 + w_.random.below(2), 1};
    w_.stack_element = 4 * w_.random.below(3);
    w_.threads = result.block[0] * result.block[1] * result.block[2];
    result.threads = std::uint64_t{w_.threads} * result.grid[0] * result.grid[1];
    result.in_bytes = result.threads * 64 + 64;
    result.out_bytes = result.threads * (kOutWords * 8 + kScratchWords * 4) + kAccumulators * 8;
    all_threads_ = result.threads;
  }

  // %t0: thread in the block, %t1: thread in the grid.
  void prologue() {
    for (const char* text :
         {"mov.u32 %t2, %tid.x", "mov.u32 %t3, %tid.y", "mov.u32 %t4, %tid.z", "mov.u32 %t5, %ntid.x",
          "mov.u32 %t6, %ntid.y", "mad.lo.s32 %t3, %t4, %t6, %t3", "mad.lo.s32 %t0, %t3, %t5, %t2",
          "mov.u32 %t2, %ctaid.x", "mov.u32 %t3, %ctaid.y", "mov.u32 %t4, %nctaid.x",
          "mad.lo.s32 %t2, %t3, %t4, %t2"})
      w_.line(text);
    w_.line(Text{"mad.lo.s32 %t1, %t2, {}, %t0", w_.threads});
    for (const char* text :
         {"ld.param.u64 %td2, [k_in]", "ld.param.u64 %td3, [k_out]", "cvta.to.global.u64 %td2, %td2",
          "cvta.to.global.u64 %td3, %td3", "mul.wide.u32 %td4, %t1, 64", "add.s64 %td0, %td2, %td4"})
      w_.line(text);
    w_.line(Text{"mul.wide.u32 %td4, %t1, {}", kOutWords * 8});
    w_.line("add.s64 %td1, %td3, %td4");
    w_.line(Text{"add.s64 %td9, %td3, {}", all_threads_ * (kOutWords * 8 + kScratchWords * 4)});
    w_.line(Text{"mul.wide.u32 %td4, %t1, {}", kScratchWords * 4});
    w_.line("add.s64 %td8, %td3, %td4");
    w_.line(Text{"add.s64 %td8, %td8, {}", all_threads_ * kOutWords * 8});
    if (w_.options.waiting)
      for (const std::string& text :
           {std::string("mov.u64 %td11, meeting"), std::string("cvta.global.u64 %td11, %td11"),
            std::string(Text{"mul.wide.u32 %td4, %t2, {}", kMeetingBytes}),
            std::string("add.s64 %td11, %td11, %td4")})
        w_.line(text);
    registers();
  }

  void registers() {
    for (unsigned i = 0; i < kR; ++i) {
      if (i == 0)
        w_.line("mov.u32 %r0, %t0");
      else if (i == 1)
        w_.line("mov.u32 %r1, %t1");
      else if (i == 2)
        w_.line(Text{"mov.u32 %r2, {}", w_.constant32()});
      else
        w_.line(Text{"ld.global.u32 %r{}, [%td0+{}]", i, 4 * i});
    }
    for (unsigned i = 0; i < kRd; ++i) w_.line(Text{"ld.global.u64 %rd{}, [%td0+{}]", i, 8 * (i % 4) + 24});
    for (unsigned i = 0; i < kF; ++i)
      w_.line(i % 2 == 0 ? Text{"ld.global.f32 %f{}, [%td0+{}]", i, 4 * i}
                         : Text{"cvt.rn.f32.s32 %f{}, %r{}", i, i});
    for (unsigned i = 0; i < kFd; ++i)
      w_.line(i == 0 ? Text{"ld.global.f64 %fd0, [%td0+56]"} : Text{"cvt.rn.f64.s32 %fd{}, %r{}", i, i});
    for (unsigned i = 0; i < kP; ++i)
      w_.line(Text{"setp.{}.s32 %p{}, %r{}, %r{}", i % 2 == 0 ? "lt" : "ne", i, i, i + 1});
  }

  void epilogue() {
    for (unsigned i = 0; i < kIntegerWords; ++i) {
      if (i < 4)
        w_.line(Text{"cvt.u64.u32 %td4, %r{}", i});
      else
        w_.line(Text{"xor.b64 %td4, %rd{}, %rd{}", i - 4, i - 2});
      w_.line(Text{"st.global.u64 [%td1+{}], %td4", 8 * i});
    }
    for (unsigned i = 0; i < kF32Words; ++i)
      w_.line(Text{"st.global.f32 [%td1+{}], %f{}", 8 * (kIntegerWords + i), i});
    for (unsigned i = 0; i < kF64Words; ++i)
      w_.line(Text{"st.global.f64 [%td1+{}], %fd{}", 8 * (kIntegerWords + kF32Words + i), i});
    w_.line("ret");
  }

  // Structured statements.
  void statement(unsigned depth) {
    if (w_.options.waiting && w_.random.chance(25)) return wait(depth);
    if (w_.options.indices && depth == 0 && w_.random.chance(30)) return around(depth);
    if (w_.options.indices && w_.random.chance(depth == 0 ? 65 : 80)) return index(w_);
    const unsigned kind = w_.random.below(w_.options.indices ? 60 : 120);
    const bool together = depth == 0 && w_.together;
    if (kind < 9 && depth < 3) return branch(depth);
    if (kind < 14 && depth < 2) return loop(depth);
    if (kind < 16 && depth < 2) return choose(depth);
    if (kind < 21 && together && w_.options.shuffles) return shuffle(w_);
    if (kind < 24 && together && w_.options.shuffles) return vote(w_);
    if (kind < 26 && together && w_.options.shuffles) return reduce(w_);
    if (kind < 30 && together && w_.options.barriers) return exchange(w_);
    if (kind < 32 && together && w_.options.barriers) return shared_atomic(w_);
    if (kind < 33 && together && w_.options.barriers) return barrier_reduce(w_);
    if (kind < 41 && w_.options.memory) return load(w_);
    if (kind < 46 && w_.options.memory) return own_memory(w_);
    if (kind < 48 && w_.options.memory) return own_atomic(w_);
    if (kind < 50 && w_.options.memory) return accumulate(w_);
    arithmetic(kind);
  }

  void arithmetic(unsigned kind) {
    if (kind < 52) return call(w_);
    if (kind < 67) return integer32(w_);
    if (kind < 70) return short_integer(w_);
    if (kind < 73) return carry_chain(w_);
    if (kind < 78) return fields(w_);
    if (kind < 86) return integer64(w_);
    if (kind < 97) return float32(w_);
    if (kind < 102) return float64(w_);
    if (kind < 106) return half(w_);
    if (kind < 113) return conversion(w_);
    predicate(w_);
  }

  // A remainder, a question about it, and before or after the question lanes that part.
  void around(unsigned depth) {
    const IndexDivision division = divide(w_, true);
    std::string answer = w_.random.chance(40) ? ask(w_, division) : "";
    w_.random.chance(60) ? loop(depth) : branch(depth);
    if (answer.empty()) answer = ask(w_, division);
    correct(w_, division, answer);
  }

  void branch(unsigned depth) {
    const unsigned otherwise = w_.new_label(), end = w_.new_label();
    w_.line(Text{"@{}{} bra $L{}", w_.random.chance(50) ? "!" : "", w_.p(), otherwise});
    for (unsigned i = 0, n = 1 + w_.random.below(3); i < n; ++i) statement(depth + 1);
    const bool has_else = w_.random.chance(50);
    if (has_else) w_.line(Text{"bra{} $L{}", w_.random.chance(50) ? ".uni" : "", end});
    w_.label(otherwise);
    if (has_else)
      for (unsigned i = 0, n = 1 + w_.random.below(3); i < n; ++i) statement(depth + 1);
    w_.label(end);
  }

  // Runs (register & 7) + 1 times, or fewer times with a break; uniform if the count is a constant.
  void loop(unsigned depth) {
    const unsigned counter = ++w_.loops, head = w_.new_label(), out = w_.new_label();
    if (w_.random.chance(40))
      w_.line(Text{"mov.u32 %loop{}, {}", counter, 1 + w_.random.below(5)});
    else {
      w_.line(Text{"and.b32 %loop{}, {}, 7", counter, w_.r()});
      w_.line(Text{"add.s32 %loop{0}, %loop{0}, 1", counter});
    }
    w_.label(head);
    for (unsigned i = 0, n = 1 + w_.random.below(3); i < n; ++i) statement(depth + 1);
    if (w_.random.chance(30)) {
      w_.line(Text{"setp.{}.s32 %q0, {}, {}", w_.pick({"lt", "eq", "gt"}), w_.r(), w_.r_or_constant()});
      w_.line(Text{"@%q0 bra $L{}", out});
    }
    if (w_.random.chance(50)) statement(depth + 1);
    w_.line(Text{"add.s32 %loop{0}, %loop{0}, -1", counter});
    w_.line(Text{"setp.ne.s32 %q1, %loop{}, 0", counter});
    w_.line(Text{"@%q1 bra $L{}", head});
    w_.label(out);
  }

  // brx.idx with two to four targets, some of which fall through.
  void choose(unsigned depth) {
    const unsigned count = w_.random.chance(50) ? 4 : 2, table = w_.new_label(), end = w_.new_label();
    w_.line(Text{"and.b32 %t7, {}, {}", w_.r(), count - 1});
    std::string targets;
    const unsigned first = w_.labels;
    w_.labels += count;
    for (unsigned i = 0; i < count; ++i) targets += Text{"{}$L{}", i == 0 ? "" : ", ", first + i};
    w_.text += Text{"ways{}: .branchtargets {};\n", table, targets};
    w_.line(Text{"brx.idx %t7, ways{}", table});
    for (unsigned i = 0; i < count; ++i) {
      w_.label(first + i);
      statement(depth + 1);
      if (w_.random.chance(70)) w_.line(Text{"bra $L{}", end});
    }
    w_.label(end);
  }

  void wait(unsigned depth) {
    switch (w_.random.below(depth == 0 && w_.together ? 6 : 3)) {
      case 0:
        return depth < 2 ? enter_in_the_middle(depth) : lock(w_);
      case 1:
      case 2:
        return lock(w_);
      case 3:
        return chain(w_);
      case 4:
        return w_.threads % 64 == 0 ? produce_and_consume(w_) : chain(w_);
      default:
        return read_sum(w_);
    }
  }

  // A loop with two entries.
  void enter_in_the_middle(unsigned depth) {
    const unsigned counter = ++w_.loops, head = w_.new_label(), middle = w_.new_label();
    w_.line(Text{"and.b32 %loop{}, {}, 3", counter, w_.r()});
    w_.line(Text{"add.s32 %loop{0}, %loop{0}, 1", counter});
    w_.line(Text{"@{}{} bra $L{}", w_.random.chance(50) ? "!" : "", w_.p(), middle});
    w_.label(head);
    for (unsigned i = 0, n = 1 + w_.random.below(2); i < n; ++i) statement(depth + 1);
    w_.label(middle);
    for (unsigned i = 0, n = 1 + w_.random.below(2); i < n; ++i) statement(depth + 1);
    w_.line(Text{"add.s32 %loop{0}, %loop{0}, -1", counter});
    w_.line(Text{"setp.ne.s32 %q1, %loop{}, 0", counter});
    w_.line(Text{"@%q1 bra $L{}", head});
  }

  // Some threads end here and write nothing more; the others do not synchronise after this point.
  void leave_early() {
    w_.line(Text{"@{} {}", w_.p(), w_.pick({"ret", "exit"})});
    w_.together = false;
  }

  Writer w_;
  std::uint64_t all_threads_ = 0;
};

bool both_nan(std::uint64_t a, std::uint64_t b) {
  double x, y;
  std::memcpy(&x, &a, 8);
  std::memcpy(&y, &b, 8);
  return std::isnan(x) && std::isnan(y);
}

std::string place_of(const Generated& kernel, std::uint64_t word) {
  const std::uint64_t scratch = kernel.threads * kOutWords,
                      accumulators = scratch + kernel.threads * kScratchWords / 2;
  if (word < scratch) return Text{"thread {}, word {}", word / kOutWords, word % kOutWords};
  if (word >= accumulators) return Text{"accumulator {}", word - accumulators};
  return Text{"thread {}, scratch {}", (word - scratch) / (kScratchWords / 2),
              (word - scratch) % (kScratchWords / 2) * 2};
}

}  // namespace

// Calls through the table `functions`, so that threads may call different functions, or directly.
void call(Writer& w) {
  const bool direct = w.random.chance(50);
  if (!direct) {
    w.line(Text{"and.b32 %t6, {}, 1", w.r()});
    w.line("mul.wide.u32 %td6, %t6, 8");
    w.line("mov.u64 %td7, functions");
    w.line("add.s64 %td7, %td7, %td6");
    w.line("ld.global.u64 %td7, [%td7]");
  }
  const unsigned number = w.new_label();
  w.text += "\t{\n";
  w.line(".param .b32 given");
  w.line(".param .b32 got");
  w.line(Text{"st.param.b32 [given], {}", w.r()});
  if (direct) {
    w.line(Text{"call (got), {}, (given)", w.pick({"times", "half", "folded", "descend"})});
  } else {
    w.line(Text{"prototype{}: .callprototype (.param .b32 _) _ (.param .b32 _)", number});
    w.line(Text{"call (got), %td7, (given), prototype{}", number});
  }
  w.line(Text{"ld.param.b32 {}, [got]", w.r()});
  w.text += "\t}\n";
}

Generated generate(std::uint64_t seed, const GenerateOptions& options) {
  return Kernel(seed, options).write();
}

std::vector<std::byte> input_of(const Generated& kernel, std::uint64_t seed, unsigned set) {
  static constexpr std::uint32_t kIntegers[] = {
      0,      1,      2,      31,         32,         33,         0x7f,       0x80,       0xff,
      0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0x10000};
  static constexpr std::uint32_t kReals[] = {
      0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001,
      1,          0x807fffff, 0x00800000, 0x7f7fffff, 0x4f000000, 0xcf000000, 0x4f800000, 0x5f000000,
      0x3effffff, 0x7ff00000, 0xfff80000, 0x41dfffff, 0x43e00000, 0x36a00000, 0x47efffff};
  std::vector<std::byte> bytes(kernel.in_bytes);
  Random random(seed ^ (set * 0x632be59bd9b4e019u + 0x1234567u));
  const auto any = static_cast<std::uint32_t>(random.next());
  for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4) {
    const auto bits = random.next();
    auto word = static_cast<std::uint32_t>(bits >> 32);
    switch (set % 8) {
      case 0:
        word = (bits & 3) == 0 ? word % 100 : (bits & 3) == 1 ? 0x3f000000u | (word & 0x80ffffffu) : word;
        break;
      case 1:
        word = kIntegers[word % std::size(kIntegers)];
        break;
      case 2:
        word = kReals[word % std::size(kReals)];
        break;
      case 3:  // the same function in all threads
        word = any + static_cast<std::uint32_t>(at % 64 / 4) * 7;
        break;
      case 4:
        word = static_cast<std::uint32_t>(at / 64) + static_cast<std::uint32_t>(at % 64 / 4) * 3;
        break;
      case 5:
        word = (bits & 7) == 0 ? word : 0;
        break;
      case 6:
        word = static_cast<std::uint32_t>(static_cast<std::int32_t>(word) >> (bits & 31));
        break;
      default:
        break;
    }
    std::memcpy(bytes.data() + at, &word, 4);
  }
  return bytes;
}

std::string difference(const Generated& kernel, const std::vector<std::byte>& expected,
                       const std::vector<std::byte>& got) {
  if (expected == got) return {};
  for (std::size_t at = 0; at < expected.size(); at += 8) {
    std::uint64_t a, b;
    std::memcpy(&a, expected.data() + at, 8);
    std::memcpy(&b, got.data() + at, 8);
    if (a == b) continue;
    const std::uint64_t word = at / 8, column = word % kOutWords;
    const bool is_double = word < kernel.threads * kOutWords && column >= kIntegerWords + kF32Words;
    if (is_double && both_nan(a, b)) continue;
    return Text{"{}: the oracle has {:#018x}, the device {:#018x}", place_of(kernel, word), a, b};
  }
  return {};
}

}  // namespace quern::oracle
