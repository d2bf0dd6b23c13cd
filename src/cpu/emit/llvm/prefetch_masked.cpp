// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/prefetch_masked.hpp"

#include <llvm/ADT/DenseSet.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <utility>

#include "cpu/emit/llvm/spaces.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

constexpr std::int64_t kLineBytes = 64;
/// LLVM splits a longer load and mixes up the order of its parts, of which the prefetchers then learn less.
constexpr std::int64_t kLongBytes = 256;
/// A masked load of at most so many bytes is a single lane's.
constexpr std::int64_t kShortBytes = 16;

/// A masked load or store of global memory, or of one that may be global.
struct Masked {
  Value* pointer = nullptr;  ///< null: it is none
  std::int64_t bytes = 0;
  bool stores = false;
};

/// The access by any instruction.
Masked any_access(llvm::Instruction& inst) {
  const llvm::DataLayout& layout = inst.getModule()->getDataLayout();
  const auto bytes = [&](llvm::Type* type) {
    return static_cast<std::int64_t>(layout.getTypeStoreSize(type).getFixedValue());
  };
  if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(&inst)) {
    if (bytes(load->getType()) < kLongBytes) return {};
    return {load->getPointerOperand(), bytes(load->getType()), false};
  }
  auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst);
  if (call == nullptr) return {};
  if (call->getIntrinsicID() == llvm::Intrinsic::masked_load && bytes(call->getType()) > kShortBytes)
    return {call->getArgOperand(0), bytes(call->getType()), false};
  if (call->getIntrinsicID() == llvm::Intrinsic::masked_store)
    return {call->getArgOperand(1), bytes(call->getArgOperand(0)->getType()), true};
  return {};
}

Masked masked_access(llvm::Instruction& inst) {
  const Masked access = any_access(inst);
  return access.pointer != nullptr && may_be_global(inst, access.pointer) ? access : Masked{};
}

/// The lines of a block that are prefetched already, as base and number of the line from there on.
using Lines = llvm::DenseSet<std::pair<const Value*, std::int64_t>>;

void prefetch(llvm::Instruction& inst, const Masked& access, Lines& lines) {
  std::int64_t first = 0;
  const Value* const base =
      llvm::GetPointerBaseWithConstantOffset(access.pointer, first, inst.getModule()->getDataLayout());
  llvm::IRBuilder<> b(&inst);
  for (std::int64_t offset = 0; offset < access.bytes; offset += kLineBytes) {
    const std::int64_t at = first + offset;
    const std::int64_t line = (at >= 0 ? at : at - kLineBytes + 1) / kLineBytes;
    if (!lines.insert({base, line}).second) continue;
    Value* const place =
        b.CreateConstGEP1_64(b.getInt8Ty(), access.pointer, static_cast<std::uint64_t>(offset));
    b.CreateIntrinsic(llvm::Intrinsic::prefetch, {b.getPtrTy()},
                      {place, b.getInt32(access.stores ? 1 : 0), b.getInt32(3), b.getInt32(1)});
  }
}

}  // namespace

void prefetch_masked(llvm::Function& function) {
  for (llvm::BasicBlock& block : function) {
    Lines lines;
    for (llvm::Instruction& inst : block)
      if (const Masked access = masked_access(inst); access.pointer != nullptr) prefetch(inst, access, lines);
  }
}

}  // namespace quern::cpu::emit
