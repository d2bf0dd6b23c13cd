// SPDX-License-Identifier: Apache-2.0
// Threads that wait for each other; the result does not depend on the order. %td11 points to the words in
// `meeting` that belong to the block: the lock, the sum computed under it, and from byte 64 on one word for
// each thread, with an extra word before and after.
#include "writer.hpp"

namespace quern::oracle {

void lock(Writer& w) {
  const unsigned again = w.new_label(), out = w.new_label();
  const bool holder_leaves = w.random.chance(50);
  w.label(again);
  w.line("atom.global.cas.b32 %t8, [%td11], 0, 1");
  w.line("setp.ne.s32 %q0, %t8, 0");
  w.line(Text{"@%q0 bra $L{}", again});
  w.line("ld.volatile.global.u32 %t8, [%td11+4]");
  w.line(Text{"and.b32 %t9, {}, 255", w.r()});
  w.line("add.s32 %t8, %t8, %t9");
  w.line("st.volatile.global.u32 [%td11+4], %t8");
  w.line("membar.gl");
  w.line("atom.global.exch.b32 %t8, [%td11], 0");
  if (!holder_leaves) {  // uses the loop once more, as in `while (!done)`
    w.line("setp.eq.s32 %q0, %t8, 1");
    w.line(Text{"@%q0 bra $L{}", out});
    w.line(Text{"bra $L{}", again});
  }
  w.label(out);
}

void read_sum(Writer& w) {
  w.line("bar.sync 0");
  w.line(Text{"ld.volatile.global.u32 {}, [%td11+4]", w.r()});
  w.line("bar.sync 0");
}

// Each thread waits until its neighbour has reached this point.
void chain(Writer& w) {
  const unsigned again = w.new_label(), first = w.new_label(), turn = ++w.chains;
  const bool upwards = w.random.chance(50);
  const unsigned end = upwards ? 0 : w.threads - 1;
  w.line("mul.wide.u32 %td6, %t0, 4");
  w.line("add.s64 %td6, %td11, %td6");
  w.line(Text{"setp.eq.u32 %q0, %t0, {}", end});
  w.line(Text{"@%q0 bra $L{}", first});
  w.label(again);
  w.line(Text{"ld.volatile.global.u32 %t8, [%td6+{}]", 64 + (upwards ? -4 : 4)});
  w.line(Text{"setp.lt.u32 %q0, %t8, {}", turn});
  if (w.random.chance(30)) w.line("nanosleep.u32 10");
  w.line(Text{"@%q0 bra $L{}", again});
  w.label(first);
  w.line(Text{"st.volatile.global.u32 [%td6+64], {}", turn});
}

// The first half of the warps writes and continues, the second half waits for it and reads.
void produce_and_consume(Writer& w) {
  const unsigned id = 1 + w.random.below(15);
  w.line("mov.u32 %t2, tile");
  w.line("shl.b32 %t3, %t0, 2");
  w.line("add.s32 %t3, %t2, %t3");
  w.line(Text{"setp.lt.u32 %q0, %t0, {}", w.threads / 2});
  w.line(Text{"@%q0 st.shared.u32 [%t3], {}", w.r()});
  const unsigned consumer = w.new_label(), end = w.new_label();
  w.line(Text{"@!%q0 bra $L{}", consumer});
  w.line(Text{"bar.arrive {}, {}", id, w.threads});
  w.line(Text{"bra $L{}", end});
  w.label(consumer);
  w.line(Text{"bar.sync {}, {}", id, w.threads});
  w.line(Text{"ld.shared.u32 {}, [%t3+-{}]", w.r(), w.threads / 2 * 4});
  w.label(end);
  w.line("bar.sync 0");
}

}  // namespace quern::oracle
