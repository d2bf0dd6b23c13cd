// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/long_blocks.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/BasicBlock.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace quern::cpu::emit {
namespace {

/// A piece has this many instructions, up to half as many more or less.
constexpr std::size_t kPieceInsts = 1024;
/// Masks that cross a cut may leave the mask registers, so each counts as many values.
constexpr int kMaskWeight = 8;

int weight(const llvm::Type& type) {
  return type.isVectorTy() && type.getScalarType()->isIntegerTy(1) ? kMaskWeight : 1;
}

/// At each instruction of a block: how many values of the block are computed before it and used by it or by
/// later instructions of the block. Values that other blocks use are live at every cut after them.
std::vector<int> count_live(const std::vector<llvm::Instruction*>& insts) {
  llvm::DenseMap<const llvm::Instruction*, std::size_t> last_use;
  std::vector<int> live(insts.size() + 1);
  for (std::size_t i = 0; i < insts.size(); ++i)
    for (const llvm::Value* operand : insts[i]->operands())
      if (const auto* inst = llvm::dyn_cast<llvm::Instruction>(operand)) last_use[inst] = i;
  for (std::size_t i = 0; i < insts.size(); ++i) {
    const auto last = last_use.find(insts[i]);
    if (last == last_use.end() || last->second <= i) continue;
    live[i + 1] += weight(*insts[i]->getType());
    live[last->second + 1] -= weight(*insts[i]->getType());
  }
  for (std::size_t i = 1; i < live.size(); ++i) live[i] += live[i - 1];
  return live;
}

/// Variables of fixed size must stay in the entry block, and phis at the start of theirs.
std::size_t first_place(const std::vector<llvm::Instruction*>& insts) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < insts.size(); ++i)
    if (llvm::isa<llvm::AllocaInst>(insts[i]) || llvm::isa<llvm::PHINode>(insts[i])) first = i + 1;
  return first;
}

void cut(llvm::BasicBlock& block) {
  std::vector<llvm::Instruction*> insts;
  for (llvm::Instruction& inst : block) insts.push_back(&inst);
  const std::vector<int> live = count_live(insts);
  std::vector<llvm::Instruction*> places;
  for (std::size_t from = first_place(insts); from + 2 * kPieceInsts < insts.size();) {
    const auto begin = live.begin() + static_cast<std::ptrdiff_t>(from + kPieceInsts / 2);
    from = static_cast<std::size_t>(std::min_element(begin, begin + kPieceInsts) - live.begin());
    places.push_back(insts[from]);
  }
  llvm::BasicBlock* rest = &block;
  for (llvm::Instruction* place : places) rest = rest->splitBasicBlock(place);
}

struct CutLongBlocks : llvm::FunctionPass {
  CutLongBlocks() : FunctionPass(kId) {}
  bool runOnFunction(llvm::Function& function) override { return cut_long_blocks(function); }
  static char kId;
};
char CutLongBlocks::kId = 0;

}  // namespace

bool cut_long_blocks(llvm::Function& function) {
  std::vector<llvm::BasicBlock*> blocks;
  for (llvm::BasicBlock& block : function)
    if (block.size() > kMaxBlockInsts) blocks.push_back(&block);
  for (llvm::BasicBlock* block : blocks) cut(*block);
  return !blocks.empty();
}

llvm::Pass* make_block_cutter() { return new CutLongBlocks; }

}  // namespace quern::cpu::emit
