// SPDX-License-Identifier: Apache-2.0
#include "cpu/cuts/liveness.hpp"

#include <algorithm>

namespace quern::cpu::cuts {
namespace {

class Finder {
 public:
  Finder(const ir::Function& function, const std::vector<const analysis::Analysis*>& facts,
         const std::vector<std::vector<ir::Value>>& read_at_end)
      : function_(function) {
    find_implied(facts);
    readers_.resize(function.insts.size());
    defined_in_.assign(function.insts.size(), ir::kNone);
    crosses_.assign(function.insts.size(), false);
    for (ir::BlockId block = 0; block < function.blocks.size(); ++block) {
      scan(block);
      if (block >= read_at_end.size()) continue;
      for (const ir::Value value : read_at_end[block]) read(block, value);
    }
  }

  /// From each block that reads a value, walks backwards to the block that defines it. The work grows with
  /// the result; sets of all values at each block would be quadratic in the size of a kernel.
  Liveness run() {
    Liveness result;
    result.live_in.resize(function_.blocks.size());
    for (ir::Value value = 0; value < function_.insts.size(); ++value) {
      std::vector<ir::BlockId> open = std::move(readers_[value]);
      while (!open.empty()) {
        const ir::BlockId block = open.back();
        open.pop_back();
        std::vector<ir::Value>& live = result.live_in[block];
        if (!live.empty() && live.back() == value) continue;
        live.push_back(value);
        for (const ir::BlockId before : function_.blocks[block].preds)
          if (defined_in_[value] != before) open.push_back(before);
      }
    }
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
    if (defined_in_[value] == block) return;
    std::vector<ir::BlockId>& readers = readers_[value];
    if (readers.empty() || readers.back() != block) readers.push_back(block);
    crosses_[value] = true;
  }

  void scan(ir::BlockId block) {
    for (const ir::Value value : function_.blocks[block].insts) {
      if (function_[value].op == ir::Op::phi)
        crosses_[value] = true;
      else
        for (const ir::Value arg : function_[value].args) read(block, arg);
      defined_in_[value] = block;
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

  const ir::Function& function_;
  std::vector<std::vector<ir::Value>> implied_;
  std::vector<std::vector<ir::BlockId>> readers_;  ///< by value: blocks that read it before they define it
  std::vector<ir::BlockId> defined_in_;            ///< by value
  std::vector<bool> crosses_;
};

}  // namespace

Liveness find_liveness(const ir::Function& function, const std::vector<const analysis::Analysis*>& facts,
                       const std::vector<std::vector<ir::Value>>& read_at_end) {
  return Finder(function, facts, read_at_end).run();
}

}  // namespace quern::cpu::cuts
