// SPDX-License-Identifier: Apache-2.0
// Operations across lanes. All threads of the block are together, so every live lane takes part.
#include "writer.hpp"

namespace quern::oracle {

void shuffle(Writer& w) {
  // Every live lane takes part and reads an existing lane: the source is taken modulo a power of two for
  // which the last, partial warp has all lanes. So the segment has that size.
  unsigned segment = 32;
  while (w.threads % segment != 0) segment /= 2;
  if (w.random.chance(25)) segment = 1u << w.random.below(6) & (2 * segment - 1 > 31 ? 63 : 2 * segment - 1);
  if (segment == 0 || w.threads % segment != 0) segment = 1;
  const unsigned c = ((32 - segment) << 8);
  switch (w.random.below(4)) {
    case 0:
      return w.line(
          Text{"shfl.sync.bfly.b32 {}, {}, {}, {}, -1", w.r(), w.r(), w.random.below(segment), c | 31});
    case 1:
      return w.line(Text{"shfl.sync.idx.b32 {}, {}, {}, {}, -1", w.r(), w.r(), w.amount(32), c | 31});
    case 2:
      return w.line(Text{"shfl.sync.down.b32 {}|{}, {}, {}, {}, -1", w.r(), w.p(), w.r(),
                         w.random.below(segment), c | 31});
    default:
      return w.line(
          Text{"shfl.sync.up.b32 {}|{}, {}, {}, {}, -1", w.r(), w.p(), w.r(), w.random.below(segment), c});
  }
}

void vote(Writer& w) {
  switch (w.random.below(5)) {
    case 0:
      return w.line(Text{"vote.sync.ballot.b32 {}, {}{}, -1", w.r(), w.random.chance(30) ? "!" : "", w.p()});
    case 1:
      return w.line(Text{"vote.sync.{}.pred {}, {}, -1", w.pick({"all", "any", "uni"}), w.p(), w.p()});
    case 2:
      w.line(Text{"and.b32 %t7, {}, 3", w.r()});
      return w.line(Text{"match.any.sync.b32 {}, %t7, -1", w.r()});
    case 3:
      return w.line(Text{"match.all.sync.b32 {}|{}, {}, -1", w.r(), w.p(), w.r()});
    default:
      return w.line(Text{"mov.u32 {}, {}", w.r(),
                         w.pick({"%laneid", "%lanemask_lt", "%lanemask_le", "%lanemask_eq", "%lanemask_ge",
                                 "%lanemask_gt", "%ntid.x", "%nctaid.x", "%tid.x", "%tid.y"})});
  }
}

void reduce(Writer& w) {
  const std::string operation = w.pick(
      {"add.s32", "add.u32", "min.s32", "min.u32", "max.s32", "max.u32", "and.b32", "or.b32", "xor.b32"});
  if (w.random.chance(60)) return w.line(Text{"redux.sync.{} {}, {}, -1", operation, w.r(), w.r()});
  // Each half of the warp separately.
  w.line("mov.u32 %t7, %laneid");
  w.line("setp.lt.u32 %q0, %t7, 16");
  w.line("selp.b32 %t7, 65535, -65536, %q0");
  w.line(Text{"redux.sync.{} {}, {}, %t7", operation, w.r(), w.r()});
}

void barrier_reduce(Writer& w) {
  if (w.random.chance(50))
    return w.line(Text{"bar.red.popc.u32 {}, 0, {}{}", w.r(), w.random.chance(30) ? "!" : "", w.p()});
  w.line(Text{"bar.red.{}.pred {}, 0, {}", w.pick({"and", "or"}), w.p(), w.p()});
}

}  // namespace quern::oracle
