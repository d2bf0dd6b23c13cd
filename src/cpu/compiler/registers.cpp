// SPDX-License-Identifier: Apache-2.0
#include "cpu/compiler/registers.hpp"

#include <algorithm>
#include <vector>

namespace quern::cpu {
namespace {

constexpr std::uint32_t kLeast = 16;
constexpr std::uint32_t kMost = 255;
/// Registers for addresses, the stack pointer and values that are not in the IR.
constexpr std::uint32_t kOthers = 10;

/// The values that are live at the end of each block, found by walking from each use up to the definition.
class Liveness {
 public:
  explicit Liveness(const ir::Function& function)
      : function_(function),
        visited_(function.blocks.size(), ir::kNone),
        words_(function.blocks.size(), 0),
        alive_(function.blocks.size()) {}

  /// Returns false if some block has more live values than a thread has registers; then the liveness is
  /// incomplete.
  bool run() {
    const std::vector<std::vector<ir::BlockId>> ends = use_blocks();
    for (ir::Value value = 0; value < ends.size(); ++value)
      if (!ends[value].empty() && !walk(value, ends[value])) return false;
    return true;
  }
  const std::vector<ir::Value>& at_end(ir::BlockId block) const { return alive_[block]; }

  /// Registers of a value. Constants are parts of instructions, and predicates have separate registers.
  static std::uint32_t words(const ir::Inst& inst) {
    if (inst.op == ir::Op::constant || inst.op == ir::Op::undef) return 0;
    const auto bits = static_cast<std::uint32_t>(ir::bit_size(inst.type));
    return bits <= 1 ? 0 : (bits + 31) / 32;
  }

 private:
  /// For each value, the blocks at whose end it is live because a successor needs it: the predecessors of
  /// other blocks that use it, and for a phi those of the operand.
  std::vector<std::vector<ir::BlockId>> use_blocks() const {
    std::vector<std::vector<ir::BlockId>> ends(function_.insts.size());
    for (ir::BlockId id = 0; id < function_.blocks.size(); ++id) {
      const ir::Block& block = function_.blocks[id];
      for (const ir::Value user : block.insts) {
        const ir::Inst& inst = function_[user];
        const bool is_phi = inst.op == ir::Op::phi;
        for (std::size_t i = 0; i < inst.args.size(); ++i) {
          const ir::Value value = inst.args[i];
          if (words(function_[value]) == 0) continue;
          if (is_phi)
            ends[value].push_back(block.preds[i]);
          else if (function_[value].block != id)
            ends[value].insert(ends[value].end(), block.preds.begin(), block.preds.end());
        }
      }
    }
    return ends;
  }

  bool walk(ir::Value value, std::vector<ir::BlockId> pending) {
    const std::uint32_t its_words = words(function_[value]);
    const ir::BlockId definition = function_[value].block;
    while (!pending.empty()) {
      const ir::BlockId block = pending.back();
      pending.pop_back();
      if (visited_[block] == value) continue;
      visited_[block] = value;
      alive_[block].push_back(value);
      words_[block] += its_words;
      if (words_[block] > kMost) return false;
      if (block == definition) continue;
      const std::vector<ir::BlockId>& preds = function_.blocks[block].preds;
      pending.insert(pending.end(), preds.begin(), preds.end());
    }
    return true;
  }

  const ir::Function& function_;
  std::vector<ir::Value> visited_;  ///< by block: the last value that was visited there
  std::vector<std::uint32_t> words_;
  std::vector<std::vector<ir::Value>> alive_;
};

}  // namespace

std::uint32_t estimate_registers(const ir::Function& function) {
  Liveness liveness(function);
  if (!liveness.run()) return kMost;
  std::uint32_t most = 0;
  /// the last block in which the value was live during the scan
  std::vector<ir::BlockId> alive_in(function.insts.size(), ir::kNone);
  for (ir::BlockId id = 0; id < function.blocks.size(); ++id) {
    std::uint32_t words = 0;
    for (const ir::Value value : liveness.at_end(id)) {
      alive_in[value] = id;
      words += Liveness::words(function[value]);
    }
    most = std::max(most, words);
    const std::vector<ir::Value>& insts = function.blocks[id].insts;
    for (auto at = insts.rbegin(); at != insts.rend(); ++at) {
      const ir::Inst& inst = function[*at];
      if (alive_in[*at] == id) {
        alive_in[*at] = ir::kNone;
        words -= Liveness::words(inst);
      }
      if (inst.op == ir::Op::phi) continue;  // its operands are uses of the predecessors
      for (const ir::Value value : inst.args) {
        if (alive_in[value] == id) continue;
        alive_in[value] = id;
        words += Liveness::words(function[value]);
      }
      most = std::max(most, words);
    }
  }
  return std::clamp(most + kOthers, kLeast, kMost);
}

}  // namespace quern::cpu
