// SPDX-License-Identifier: Apache-2.0
// %td0: the thread's input, %td1: its output words, %td2: all input, %td8: its scratch words, %td9: the
// accumulators, %td10: its local memory (all generic or global addresses, but for local memory).
#include <iterator>

#include "writer.hpp"

namespace quern::oracle {

namespace {

// Neighbouring threads read neighbouring elements, but where the index wraps or stops at an end.
void load_wrapped(Writer& w) {
  struct Form {
    unsigned bytes;
    const char* text;
  };
  static constexpr Form kForms[] = {{1, "ld.global.u8 %r0, [%td5]"},
                                    {1, "ld.global.nc.s8 %r1, [%td5]"},
                                    {2, "ld.global.u16 %r2, [%td5]"},
                                    {4, "ld.global.nc.u32 %r3, [%td5]"},
                                    {4, "ld.u32 %r4, [%td5]"},
                                    {8, "ld.global.u64 %rd0, [%td5]"},
                                    {8, "ld.global.v2.u32 {%r0, %r5}, [%td5]"},
                                    {16, "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%td5]"},
                                    {4, "ld.global.v2.u16 {%h0, %h1}, [%td5];\n\tmov.b32 %r2, {%h1, %h0}"}};
  const Form& form = kForms[w.random.below(std::size(kForms))];
  const unsigned elements = 1 + w.random.below(4 * w.threads);  // the input has 64 bytes for each thread
  w.line(
      Text{"{} %t5, %t{}, {}", w.pick({"add.s32", "xor.b32"}), w.random.below(2), w.random.below(elements)});
  w.line(w.random.chance(70) ? Text{"rem.u32 %t5, %t5, {}", elements}
                             : Text{"min.u32 %t5, %t5, {}", elements - 1});
  w.line(Text{"mul.wide.u32 %td5, %t5, {}", form.bytes});
  w.line("add.s64 %td5, %td2, %td5");
  w.line(form.text);
}

}  // namespace

// Reads at a random place of the input, which threads do not write, or of constant memory.
void load(Writer& w) {
  switch (w.random.below(9)) {
    case 8:
      return load_wrapped(w);
    case 0:
      return w.line(Text{"{}ld.global.{} {}, [%td0+{}]", w.guard(),
                         w.pick({"u32", "s32", "u16", "s16", "u8", "s8"}), w.r(), 4 * w.random.below(15)});
    case 1:
      return w.line(Text{"ld.global{}.v2.u32 {{%r{}, %r{}}}, [%td0+{}]", w.pick({"", ".nc"}),
                         w.random.below(3), 3 + w.random.below(3), 8 * w.random.below(7)});
    case 2:
      w.line(Text{"and.b32 %t5, {}, 15", w.r()});
      w.line("mul.wide.u32 %td5, %t5, 4");
      w.line("add.s64 %td5, %td2, %td5");
      return w.line(Text{"{}ld.{}u32 {}, [%td5]", w.guard(), w.pick({"", "global."}), w.r()});
    case 3:
      return w.line(Text{"{}ld.global.f32 {}, [%td0+{}]", w.guard(), w.f(), 4 * w.random.below(16)});
    case 4:
      w.line(Text{"and.b32 %t5, {}, {}", w.r(), kStackWords - 1});
      w.line("mul.wide.u32 %td5, %t5, 4");
      w.line("mov.u64 %td6, table");
      w.line("add.s64 %td5, %td6, %td5");
      return w.line(Text{"ld.const.{} {}, [%td5]", w.pick({"u32", "s16", "u8"}), w.r()});
    case 5:
      return w.line(Text{"ld.global.v4.f32 {{%f0, %f1, %f2, %f3}}, [%td0+{}]", 16 * w.random.below(4)});
    case 6:
      return w.line(
          Text{"ld.global.v4.u16 {{%h0, %h1, %h2, %h3}}, [%td0+{}];\n\tmov.b64 {}, {{%h3, %h1, %h0, %h2}}",
               8 * w.random.below(8), w.rd()});
    default:
      return w.line(Text{"ld.global.u64 {}, [%td0+{}]", w.rd(), 8 * w.random.below(8)});
  }
}

namespace {

// Local memory in elements of one size, at a constant or a computed address.
void plain_stack(Writer& w) {
  const unsigned bytes = w.stack_element, elements = kStackWords * 4 / bytes;
  const auto value = [&] { return bytes == 8 ? w.rd() : w.r(); };
  std::string address = Text{"stack+{}", bytes * w.random.below(elements)};
  if (w.random.chance(20)) {
    const char* const name = bytes == 8 ? "rd" : "r";
    const std::string pair = Text{"{{%{}{}, %{}{}}}", name, w.random.below(2), name, 2 + w.random.below(2)};
    const unsigned at = 2 * bytes * w.random.below(elements / 2);
    return w.random.chance(50)
               ? w.line(Text{"st.local.v2.u{} [stack+{}], {}", bytes * 8, at, pair})
               : w.line(Text{"{}ld.local.v2.u{} {}, [stack+{}]", w.guard(), bytes * 8, pair, at});
  }
  if (w.random.chance(60)) {
    w.line(Text{"and.b32 %t5, {}, {}", w.r(), elements - 1});
    w.line(Text{"mul.wide.u32 %td5, %t5, {}", bytes});
    w.line("add.s64 %td5, %td10, %td5");
    address = "%td5";
  }
  w.random.chance(50) ? w.line(Text{"{}st.local.u{} [{}], {}", w.guard(), bytes * 8, address, value()})
                      : w.line(Text{"{}ld.local.u{} {}, [{}]", w.guard(), bytes * 8, value(), address});
}

// Local memory, at a constant or a computed address.
void stack(Writer& w) {
  w.uses_stack = true;
  if (w.stack_element != 0) return plain_stack(w);
  if (w.random.chance(40)) {
    const unsigned at = 4 * w.random.below(kStackWords);
    return w.random.chance(50) ? w.line(Text{"{}st.local.u32 [stack+{}], {}", w.guard(), at, w.r()})
                               : w.line(Text{"{}ld.local.u32 {}, [stack+{}]", w.guard(), w.r(), at});
  }
  w.line(Text{"and.b32 %t5, {}, {}", w.r(), kStackWords - 1});
  w.line("mul.wide.u32 %td5, %t5, 4");
  w.line("add.s64 %td5, %td10, %td5");
  switch (w.random.below(4)) {
    case 0:
      return w.line(Text{"{}st.local.u32 [%td5], {}", w.guard(), w.r()});
    case 1:
      return w.line(Text{"st.local.{} [%td5+{}], {}", w.pick({"u8", "u16"}), 2 * w.random.below(2), w.r()});
    case 2:
      w.line("cvta.local.u64 %td5, %td5");
      return w.line(Text{"{}ld.u32 {}, [%td5]", w.guard(), w.r()});
    default:
      return w.line(Text{"{}ld.local.{} {}, [%td5]", w.guard(), w.pick({"u32", "s16", "u8", "s8"}), w.r()});
  }
}

}  // namespace

// Memory that only this thread reads and writes.
void own_memory(Writer& w) {
  if (w.random.chance(50)) return stack(w);
  switch (w.random.below(6)) {
    case 0:
      return w.line(
          Text{"{}st.global.u32 [%td8+{}], {}", w.guard(), 4 * w.random.below(kScratchWords), w.r()});
    case 1:
      return w.line(Text{"st.global.{} [%td8+{}], {}", w.pick({"u8", "u16"}),
                         2 * w.random.below(kScratchWords * 2), w.r()});
    case 2:
      return w.line(
          Text{"st.v2.u32 [%td8+{}], {{{}, {}}}", 8 * w.random.below(kScratchWords / 2), w.r(), w.r()});
    case 3:
      return w.line(
          Text{"{}st.global.u64 [%td8+{}], {}", w.guard(), 8 * w.random.below(kScratchWords / 2), w.rd()});
    case 4:
      return w.line(Text{"ld.global.v2.u32 {{%r{}, %r{}}}, [%td8+{}]", w.random.below(3),
                         3 + w.random.below(3), 8 * w.random.below(kScratchWords / 2)});
    default:
      return w.line(Text{"{}ld.{}global.u32 {}, [%td8+{}]", w.guard(), w.pick({"", "volatile."}), w.r(),
                         4 * w.random.below(kScratchWords)});
  }
}

// An atomic operation on an address that only this thread uses, so its old value is known.
void own_atomic(Writer& w) {
  const std::string guard = w.guard();
  const std::string space = w.pick({".global", ".global", ""});
  if (w.random.chance(30)) {
    if (w.random.chance(20))
      return w.line(Text{"{}red{}.{} [%td8+{}], {}", guard, space, w.pick({"add.u64", "min.s64", "or.b64"}),
                         8 * w.random.below(kScratchWords / 2), w.rd()});
    return w.line(Text{"{}red{}.{} [%td8+{}], {}", guard, space, w.pick({"add.u32", "max.s32", "xor.b32"}),
                       4 * w.random.below(kScratchWords), w.r_or_constant()});
  }
  if (w.random.chance(25)) {
    const unsigned at = 8 * w.random.below(kScratchWords / 2);
    if (w.random.chance(30))
      return w.line(Text{"{}atom{}.cas.b64 {}, [%td8+{}], {}, {}", guard, space, w.rd(), at, w.rd(), w.rd()});
    return w.line(Text{"{}atom{}.{} {}, [%td8+{}], {}", guard, space,
                       w.pick({"add.u64", "exch.b64", "min.s64", "max.u64", "and.b64", "xor.b64"}), w.rd(),
                       at, w.rd()});
  }
  const unsigned at = 4 * w.random.below(kScratchWords);
  if (w.random.chance(20))
    return w.line(
        Text{"{}atom{}.cas.b32 {}, [%td8+{}], {}, {}", guard, space, w.r(), at, w.r(), w.r_or_constant()});
  w.line(Text{"{}atom{}{}.{} {}, [%td8+{}], {}", guard, w.pick({"", ".relaxed.gpu", ".acq_rel.sys"}), space,
              w.pick({"add.u32", "exch.b32", "min.s32", "min.u32", "max.s32", "max.u32", "and.b32", "or.b32",
                      "xor.b32", "inc.u32", "dec.u32", "add.s32"}),
              w.r(), at, w.r_or_constant()});
}

// Memory that all threads update. Each accumulator has one operation, whose order does not matter.
void accumulate(Writer& w) {
  static constexpr const char* kOperations[kAccumulators] = {"add.u32", "min.s32", "max.u32", "and.b32",
                                                             "or.b32",  "xor.b32", "add.u64", "max.s64"};
  const unsigned which = w.random.below(kAccumulators);
  const std::string value = which < 6 ? w.r_or_constant() : w.rd();
  w.line(Text{"{}red{}.{} [%td9+{}], {}", w.guard(), w.pick({".global", ".global", ""}), kOperations[which],
              8 * which, value});
}

// Each thread writes one word of shared memory and reads another thread's word, with barriers between.
void exchange(Writer& w) {
  w.line("mov.u32 %t2, tile");
  w.line("shl.b32 %t3, %t0, 2");
  w.line("add.s32 %t3, %t2, %t3");
  const bool generic = w.random.chance(20);
  if (generic) {
    w.line("cvt.u64.u32 %td5, %t3");
    w.line("cvta.shared.u64 %td5, %td5");
    w.line(Text{"st.u32 [%td5], {}", w.r()});
  } else {
    w.line(Text{"st.shared.u32 [%t3], {}", w.r()});
  }
  const char* const barrier = w.random.chance(80) ? "bar.sync 0" : "barrier.sync.aligned 0";
  w.line(barrier);
  w.line(Text{"{} %t4, {}, {}", w.pick({"add.s32", "xor.b32", "sub.s32"}),
              w.random.chance(50) ? "%t0" : w.r(), w.constant32()});
  w.line(Text{"rem.u32 %t4, %t4, {}", w.threads});
  w.line("shl.b32 %t4, %t4, 2");
  w.line("add.s32 %t4, %t2, %t4");
  w.line(Text{"{}ld.shared.{} {}, [%t4]", w.guard(), w.pick({"u32", "u32", "u16", "s8"}), w.r()});
  w.line(barrier);
}

// A word of shared memory that all threads of the block update, and then read.
void shared_atomic(Writer& w) {
  w.line("mov.u32 %t2, tile");
  const unsigned at = 4 * w.random.below(8);
  const std::string operation =
      w.pick({"add.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32", "min.u32"});
  w.line(Text{"st.shared.u32 [%t2+{}], {}", at, w.constant32()});
  w.line("bar.sync 0");
  w.line(Text{"{}red.shared.{} [%t2+{}], {}", w.guard(), operation, at, w.r_or_constant()});
  w.line("bar.sync 0");
  w.line(Text{"ld.shared.u32 {}, [%t2+{}]", w.r(), at});
  w.line("bar.sync 0");
}

}  // namespace quern::oracle
