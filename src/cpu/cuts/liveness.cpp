// SPDX-License-Identifier: Apache-2.0
#include "cpu/cuts/liveness.hpp"

#include <algorithm>

namespace quern::cpu::cuts {
namespace {

using Bits = std::vector<std::uint64_t>;

bool get(const Bits& bits, std::size_t i) { return (bits[i / 64] >> (i % 64) & 1) != 0; }
void set(Bits& bits, std::size_t i) { bits[i / 64] |= std::uint64_t{1} << (i % 64); }

class Finder {
 public:
  Finder(const ir::Function& function, const std::vector<const analysis::Analysis*>& facts)
      : function_(function), words_((function.insts.size() + 63) / 64) {
    find_implied(facts);
    reads_.assign(function.blocks.size(), Bits(words_));
    defines_.assign(function.blocks.size(), Bits(words_));
    crosses_.assign(function.insts.size(), false);
    for (ir::BlockId block = 0; block < function.blocks.size(); ++block) scan(block);
  }

  Liveness run() {
    std::vector<Bits> live(function_.blocks.size(), Bits(words_));
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t block = function_.blocks.size(); block-- > 0;)
        changed |= step(static_cast<ir::BlockId>(block), live);
    }
    Liveness result;
    for (const Bits& bits : live) result.live_in.push_back(list(bits));
    result.crosses = std::move(crosses_);
    return result;
  }

 private:
  /// implied_[v]: all values that v's patterns refer to, in either analysis, transitively.
  void find_implied(const std::vector<const analysis::Analysis*>& facts) {
    implied_.resize(function_.insts.size());
    for (ir::Value value = 0; value < function_.insts.size(); ++value) {
      std::vector<ir::Value> open{value};
      std::vector<ir::Value>& found = implied_[value];
      while (!open.empty()) {
        const ir::Value next = open.back();
        open.pop_back();
        for (const analysis::Analysis* analysis : facts)
          for (const ir::Value named : named_by(analysis->patterns[next]))
            if (named != value && std::find(found.begin(), found.end(), named) == found.end()) {
              found.push_back(named);
              open.push_back(named);
            }
      }
    }
  }
  static std::vector<ir::Value> named_by(const analysis::LanePattern& pattern) {
    std::vector<ir::Value> named;
    if (pattern.kind == analysis::LanePatternKind::affine)
      for (const analysis::Term& term : pattern.terms)
        if (term.coefficient != ir::kNone) named.push_back(term.coefficient);
    if (pattern.kind == analysis::LanePatternKind::offset32 && pattern.index != ir::kNone)
      named.push_back(pattern.index);
    return named;
  }

  void read(ir::BlockId block, ir::Value value) {
    read_one(block, value);
    for (const ir::Value other : implied_[value]) read_one(block, other);
  }
  void read_one(ir::BlockId block, ir::Value value) {
    if (get(defines_[block], value)) return;
    set(reads_[block], value);
    crosses_[value] = true;
  }

  void scan(ir::BlockId block) {
    for (const ir::Value value : function_.blocks[block].insts) {
      if (function_[value].op == ir::Op::phi)
        crosses_[value] = true;
      else
        for (const ir::Value arg : function_[value].args) read(block, arg);
      set(defines_[block], value);
    }
    // The operands of the successors' phis are read at this block's end.
    for (const ir::BlockId successor : function_.blocks[block].succs) {
      const ir::Block& next = function_.blocks[successor];
      for (const ir::Value phi : next.insts) {
        if (function_[phi].op != ir::Op::phi) break;
        for (std::size_t i = 0; i < next.preds.size(); ++i)
          if (next.preds[i] == block) read(block, function_[phi].args[i]);
      }
    }
  }

  bool step(ir::BlockId block, std::vector<Bits>& live) const {
    Bits in = reads_[block];
    for (const ir::BlockId successor : function_.blocks[block].succs)
      for (std::size_t w = 0; w < words_; ++w) in[w] |= live[successor][w] & ~defines_[block][w];
    if (in == live[block]) return false;
    live[block] = std::move(in);
    return true;
  }

  std::vector<ir::Value> list(const Bits& bits) const {
    std::vector<ir::Value> values;
    for (ir::Value value = 0; value < function_.insts.size(); ++value)
      if (get(bits, value)) values.push_back(value);
    return values;
  }

  const ir::Function& function_;
  std::size_t words_;
  std::vector<std::vector<ir::Value>> implied_;
  std::vector<Bits> reads_;
  std::vector<Bits> defines_;
  std::vector<bool> crosses_;
};

}  // namespace

Liveness find_liveness(const ir::Function& function, const std::vector<const analysis::Analysis*>& facts) {
  return Finder(function, facts).run();
}

}  // namespace quern::cpu::cuts
