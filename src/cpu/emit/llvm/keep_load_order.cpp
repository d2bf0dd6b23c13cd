// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/keep_load_order.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <vector>

#include "cpu/emit/llvm/spaces.hpp"

namespace quern::cpu::emit {
namespace {

constexpr std::uint64_t kLineBytes = 64;
/// A block of instructions that loads less is left as it is: its loads are in order anyway, or soon over.
constexpr std::uint64_t kLeastBytes = 1024;
/// Measured: 512 is better than a barrier after each load, where registers are few.
constexpr std::uint64_t kBytesBetween = 512;

std::uint64_t bytes_of(const llvm::LoadInst& load) {
  return load.getModule()->getDataLayout().getTypeStoreSize(load.getType()).getFixedValue();
}

/// Emits no instruction.
void add_barrier_after(llvm::LoadInst& load) {
  llvm::IRBuilder<>(load.getNextNode())
      .CreateFence(llvm::AtomicOrdering::SequentiallyConsistent, llvm::SyncScope::SingleThread);
}

}  // namespace

void keep_load_order(llvm::Function& function) {
  for (llvm::BasicBlock& block : function) {
    std::vector<llvm::LoadInst*> loads;
    std::uint64_t bytes = 0;
    for (llvm::Instruction& inst : block) {
      auto* const load = llvm::dyn_cast<llvm::LoadInst>(&inst);
      if (load == nullptr || bytes_of(*load) < kLineBytes || !may_be_global(*load, load->getPointerOperand()))
        continue;
      loads.push_back(load);
      bytes += bytes_of(*load);
    }
    if (bytes < kLeastBytes) continue;
    std::uint64_t since = 0;
    for (llvm::LoadInst* const load : loads) {
      since += bytes_of(*load);
      if (since < kBytesBetween) continue;
      add_barrier_after(*load);
      since = 0;
    }
  }
}

}  // namespace quern::cpu::emit
