// SPDX-License-Identifier: Apache-2.0
// A phi is placed where a slot is live and different definitions reach: on the iterated dominance frontier of
// its definitions (R. Cytron et al., "Efficiently Computing Static Single Assignment Form", TOPLAS 1991). The
// frontiers of all blocks are computed once (K. Cooper, T. Harvey, K. Kennedy, "A Simple, Fast Dominance
// Algorithm", 2001).
#include "cpu/emit/llvm/promote_slots.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace quern::cpu::emit {
namespace {

using Block = std::uint32_t;  ///< number in reverse post-order; the entry is 0
constexpr Block kNoBlock = 0xffffffffu;

/// The reachable blocks.
struct Graph {
  std::vector<llvm::BasicBlock*> blocks;
  std::vector<Block> idom;
  std::vector<std::vector<Block>> preds;     ///< one for each edge; kNoBlock: an unreachable block
  std::vector<std::vector<Block>> frontier;  ///< the dominance frontier of each block
};

void find_frontiers(Graph& graph) {
  graph.frontier.resize(graph.blocks.size());
  for (Block join = 0; join < graph.blocks.size(); ++join) {
    if (graph.preds[join].size() < 2) continue;
    for (Block at : graph.preds[join])
      for (; at != kNoBlock && at != graph.idom[join]; at = graph.idom[at]) {
        std::vector<Block>& frontier = graph.frontier[at];
        if (!frontier.empty() && frontier.back() == join) break;  // the blocks above have it too
        frontier.push_back(join);
      }
  }
}

Graph make_graph(llvm::Function& function, const llvm::DominatorTree& dominators) {
  Graph graph;
  llvm::DenseMap<const llvm::BasicBlock*, Block> index;
  for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&function)) {
    index[block] = static_cast<Block>(graph.blocks.size());
    graph.blocks.push_back(block);
  }
  const auto block_of = [&](const llvm::BasicBlock* block) {
    const auto found = index.find(block);
    return found == index.end() ? kNoBlock : found->second;
  };
  for (llvm::BasicBlock* block : graph.blocks) {
    const auto* above = dominators.getNode(block)->getIDom();
    graph.idom.push_back(above == nullptr ? kNoBlock : block_of(above->getBlock()));
    graph.preds.emplace_back();
    for (const llvm::BasicBlock* pred : llvm::predecessors(block))
      graph.preds.back().push_back(block_of(pred));
  }
  find_frontiers(graph);
  return graph;
}

bool is_whole_access(const llvm::User* user, const llvm::AllocaInst* slot) {
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(user))
    return load->isSimple() && load->getType() == slot->getAllocatedType();
  const auto* store = llvm::dyn_cast<llvm::StoreInst>(user);
  return store != nullptr && store->isSimple() && store->getValueOperand() != slot &&
         store->getValueOperand()->getType() == slot->getAllocatedType();
}

/// A slot, and its remaining accesses after each block has been processed separately.
struct Slot {
  llvm::AllocaInst* memory = nullptr;
  std::vector<std::pair<Block, llvm::StoreInst*>> stores;  ///< the last store in each block
  /// the first load in each block that precedes any store
  std::vector<std::pair<Block, llvm::LoadInst*>> loads;
};

class Promoter {
 public:
  Promoter(llvm::Function& function, const llvm::DominatorTree& dominators) {
    find_slots(function);
    if (slots_.empty()) return;
    graph_ = make_graph(function, dominators);
    facts_.resize(graph_.blocks.size());
    for (Block block = 0; block < graph_.blocks.size(); ++block) scan(block);
  }

  void run() {
    for (const Slot& slot : slots_) promote(slot);
    for (const Slot& slot : slots_) remove(slot);
  }

 private:
  /// Facts about one block for the current slot.
  struct Facts {
    std::uint32_t slot = 0;  ///< number of the slot that the other members describe, from 1
    bool alive = false;      ///< its content at the block's start is read here or later
    llvm::StoreInst* store = nullptr;
    llvm::PHINode* phi = nullptr;
    llvm::Value* at_start = nullptr;  ///< null: not known yet
  };

  void find_slots(llvm::Function& function) {
    for (llvm::Instruction& each : function.getEntryBlock()) {
      auto* slot = llvm::dyn_cast<llvm::AllocaInst>(&each);
      if (slot == nullptr || slot->isArrayAllocation()) continue;
      if (!llvm::all_of(slot->users(), [&](const llvm::User* user) { return is_whole_access(user, slot); }))
        continue;
      index_[slot] = slots_.size();
      slots_.push_back({.memory = slot, .stores = {}, .loads = {}});
    }
    last_.resize(slots_.size());
  }

  std::size_t slot_of(const llvm::Value* address) const {
    const auto* memory = llvm::dyn_cast<llvm::AllocaInst>(address);
    const auto found = memory == nullptr ? index_.end() : index_.find(memory);
    return found == index_.end() ? slots_.size() : found->second;
  }

  /// Replaces loads that follow another access in the same block, and records the other accesses.
  void scan(Block block) {
    for (llvm::Instruction& each : llvm::make_early_inc_range(*graph_.blocks[block])) {
      if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&each)) {
        const std::size_t at = slot_of(load->getPointerOperand());
        if (at == slots_.size()) continue;
        if (last_[at].block == block && last_[at].access != nullptr) {
          load->replaceAllUsesWith(content_behind(last_[at].access));
          load->eraseFromParent();
        } else {
          last_[at] = {block, load};
          slots_[at].loads.emplace_back(block, load);
        }
      } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&each)) {
        const std::size_t at = slot_of(store->getPointerOperand());
        if (at == slots_.size()) continue;
        std::vector<std::pair<Block, llvm::StoreInst*>>& stores = slots_[at].stores;
        if (!stores.empty() && stores.back().first == block) {
          stores.back().second->eraseFromParent();
          stores.back().second = store;
        } else {
          stores.emplace_back(block, store);
        }
        last_[at] = {block, store};
      }
    }
  }

  static llvm::Value* content_behind(llvm::Instruction* access) {
    auto* store = llvm::dyn_cast<llvm::StoreInst>(access);
    return store == nullptr ? access : store->getValueOperand();
  }

  Facts& facts(Block block) {
    Facts& found = facts_[block];
    if (found.slot != current_) found = {.slot = current_};
    return found;
  }

  void promote(const Slot& slot) {
    ++current_;
    undefined_ = llvm::UndefValue::get(slot.memory->getAllocatedType());
    for (const auto& [block, store] : slot.stores) facts(block).store = store;
    find_live(slot);
    const std::vector<Block> phis = place_phis(slot);
    for (const Block block : phis) {
      llvm::PHINode* phi = facts(block).phi;
      for (std::size_t i = 0; i < graph_.preds[block].size(); ++i)
        phi->setIncomingValue(static_cast<unsigned>(i), at_end(graph_.preds[block][i]));
    }
    // Find all contents before replacing the first load, because a recorded content may be a load.
    std::vector<llvm::Value*> contents;
    for (const auto& [block, load] : slot.loads) contents.push_back(at_start(block));
    for (std::size_t i = 0; i < contents.size(); ++i) replace(slot.loads[i].second, contents[i]);
  }

  void find_live(const Slot& slot) {
    std::vector<Block> open;
    const auto add = [&](Block block) {
      if (std::exchange(facts(block).alive, true)) return;
      open.push_back(block);
    };
    for (const auto& [block, load] : slot.loads) add(block);
    while (!open.empty()) {
      const Block block = open.back();
      open.pop_back();
      for (const Block pred : graph_.preds[block])
        if (pred != kNoBlock && facts(pred).store == nullptr) add(pred);
    }
  }

  std::vector<Block> place_phis(const Slot& slot) {
    std::vector<Block> phis;
    std::vector<Block> open;
    for (const auto& [block, store] : slot.stores) open.push_back(block);
    while (!open.empty()) {
      const Block block = open.back();
      open.pop_back();
      for (const Block join : graph_.frontier[block]) {
        Facts& there = facts(join);
        if (!there.alive || there.phi != nullptr) continue;
        there.phi = make_phi(join, slot.memory->getAllocatedType());
        there.at_start = there.phi;
        phis.push_back(join);
        if (there.store == nullptr) open.push_back(join);
      }
    }
    return phis;
  }

  /// Creates a phi whose operands are undefined so far.
  llvm::PHINode* make_phi(Block block, llvm::Type* type) {
    llvm::BasicBlock* at = graph_.blocks[block];
    llvm::PHINode* phi =
        llvm::PHINode::Create(type, static_cast<unsigned>(graph_.preds[block].size()), "", at->begin());
    for (llvm::BasicBlock* pred : llvm::predecessors(at)) phi->addIncoming(undefined_, pred);
    return phi;
  }

  llvm::Value* at_end(Block block) {
    if (block == kNoBlock) return undefined_;
    const Facts& here = facts(block);
    return here.store != nullptr ? here.store->getValueOperand() : at_start(block);
  }

  /// If one definition reaches a block, the slot has at its start the value at the end of the immediate
  /// dominator.
  llvm::Value* at_start(Block block) {
    std::vector<Block> path;
    llvm::Value* content = nullptr;
    while (content == nullptr) {
      content = facts(block).at_start;
      if (content != nullptr) break;
      path.push_back(block);
      block = graph_.idom[block];
      if (block == kNoBlock)
        content = undefined_;
      else if (facts(block).store != nullptr)
        content = facts(block).store->getValueOperand();
    }
    for (const Block each : path) facts(each).at_start = content;
    return content;
  }

  void replace(llvm::LoadInst* load, llvm::Value* content) {
    for (auto found = replaced_.find(content); found != replaced_.end(); found = replaced_.find(content))
      content = found->second;
    load->replaceAllUsesWith(content);
    replaced_[load] = content;
  }

  static void remove(const Slot& slot) {
    for (const auto& [block, load] : slot.loads) load->eraseFromParent();
    for (const auto& [block, store] : slot.stores) store->eraseFromParent();
    // The remaining accesses are in unreachable blocks.
    for (llvm::User* user : llvm::make_early_inc_range(slot.memory->users())) {
      auto* access = llvm::cast<llvm::Instruction>(user);
      if (!access->getType()->isVoidTy())
        access->replaceAllUsesWith(llvm::UndefValue::get(access->getType()));
      access->eraseFromParent();
    }
    slot.memory->eraseFromParent();
  }

  struct LastAccess {
    Block block = 0;
    llvm::Instruction* access = nullptr;
  };

  Graph graph_;
  std::vector<Slot> slots_;
  llvm::DenseMap<const llvm::AllocaInst*, std::size_t> index_;
  std::vector<LastAccess> last_;  ///< by slot
  std::vector<Facts> facts_;      ///< by block
  std::uint32_t current_ = 0;
  llvm::Value* undefined_ = nullptr;
  llvm::DenseMap<const llvm::Value*, llvm::Value*> replaced_;
};

}  // namespace

void promote_slots(llvm::Function& function, const llvm::DominatorTree& dominators) {
  Promoter(function, dominators).run();
}

}  // namespace quern::cpu::emit
