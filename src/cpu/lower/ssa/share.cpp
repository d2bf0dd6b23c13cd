// SPDX-License-Identifier: Apache-2.0
// Eliminates common subexpressions: replaces an instruction by an equal pure one that dominates it. PTX
// computes an address again for each access; with one value the analysis needs only one proof that it does
// not wrap.
#include <bit>
#include <tuple>
#include <unordered_map>

#include "cpu/lower/ssa/passes.hpp"
#include "cpu/lower/ssa/phis.hpp"

namespace quern::cpu::lower {
namespace {

using ir::Op;
using ir::Value;

bool sharable(const ir::Inst& inst) {
  return ir::has_trait(inst.op, 'p') && inst.op != Op::phi && !inst.args.empty();
}

auto attributes_key(const ir::Attributes& a) {
  return std::tie(a.space, a.count, a.rounding, a.icmp, a.fcmp, a.ftz, a.sat, a.nan, a.relu, a.clamp,
                  a.is_signed, a.shiftamt);
}

bool equal(const ir::Inst& a, const ir::Inst& b) {
  return a.op == b.op && a.type == b.type && a.imm == b.imm && a.args == b.args &&
         attributes_key(a.attr) == attributes_key(b.attr);
}

std::uint64_t hash(const ir::Inst& inst) {
  std::uint64_t result =
      (static_cast<std::uint64_t>(inst.op) << 8) ^ static_cast<std::uint64_t>(inst.type) ^ (inst.imm << 16);
  for (const Value arg : inst.args) result = (std::rotl(result, 29) ^ arg) * 0x9e3779b97f4a7c15u;
  return result;
}

/// Entry and exit times of the dominator tree: `a` dominates `b` if b's span lies in a's.
class DominatorSpans {
 public:
  DominatorSpans(const ir::Function& function, const Order& order)
      : begin_(function.blocks.size()), end_(function.blocks.size()) {
    // Computes sizes of subtrees bottom-up, then positions top-down.
    std::vector<std::uint32_t> size(function.blocks.size(), 1);
    for (auto block = order.blocks.rbegin(); block != order.blocks.rend(); ++block) {
      if (*block != 0) size[order.idom[*block]] += size[*block];
    }
    std::vector<std::uint32_t> next(function.blocks.size(), 1);
    for (const ir::BlockId block : order.blocks) {
      if (block != 0) {
        const ir::BlockId parent = order.idom[block];
        begin_[block] = begin_[parent] + next[parent];
        next[parent] += size[block];
      }
      end_[block] = begin_[block] + size[block];
    }
  }
  bool dominates(ir::BlockId a, ir::BlockId b) const { return begin_[a] <= begin_[b] && begin_[b] < end_[a]; }

 private:
  std::vector<std::uint32_t> begin_;
  std::vector<std::uint32_t> end_;
};

}  // namespace

void share_values(FunctionBuilder& builder) {
  ir::Function& function = builder.function;
  const Order order = order_blocks(function);
  const DominatorSpans spans(function, order);
  Replacements replaced;
  std::unordered_map<std::uint64_t, Value> known;
  for (const ir::BlockId block : order.blocks) {
    for (const Value value : function.blocks[block].insts) {
      ir::Inst& inst = function[value];
      for (Value& arg : inst.args) arg = replaced.find(arg);
      if (!sharable(inst)) continue;
      const auto [found, fresh] = known.try_emplace(hash(inst), value);
      if (fresh) continue;
      const ir::Inst& earlier = function[found->second];
      if (equal(earlier, inst) && spans.dominates(earlier.block, block))
        replaced.set(value, found->second);
      else
        found->second = value;
    }
  }
  Replacements::apply(replaced, function);
}

}  // namespace quern::cpu::lower
