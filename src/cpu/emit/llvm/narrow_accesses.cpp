// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/narrow_accesses.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <bit>
#include <optional>

namespace quern::cpu::emit {
namespace {

using llvm::Value;

struct Run {
  unsigned first = 0;
  unsigned count = 0;
};

/// The lanes of a mask, if they are one run.
std::optional<Run> run_of(Value* mask) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(mask);
  const auto* type = llvm::cast<llvm::FixedVectorType>(mask->getType());
  if (constant == nullptr) return std::nullopt;
  Run run;
  for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
    const auto* bit = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant->getAggregateElement(lane));
    if (bit == nullptr) return std::nullopt;
    if (bit->isZero()) continue;
    if (run.count == 0) run.first = lane;
    if (lane != run.first + run.count) return std::nullopt;
    ++run.count;
  }
  if (!std::has_single_bit(run.count)) return std::nullopt;
  return run;
}

/// One masked access, and the lanes that it is for.
struct Narrow {
  llvm::IRBuilder<>& b;
  Run run;
  llvm::FixedVectorType* whole;
  llvm::Align align;

  llvm::Type* type() const {
    llvm::Type* element = whole->getElementType();
    return run.count == 1 ? element : llvm::FixedVectorType::get(element, run.count);
  }
  std::uint64_t offset() const { return run.first * (whole->getScalarSizeInBits() / 8); }
  Value* place(Value* pointer) const {
    return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), pointer, offset());
  }
  llvm::Align place_align() const { return llvm::commonAlignment(align, offset()); }

  Value* part(Value* value) const {
    if (run.count == 1) return b.CreateExtractElement(value, run.first);
    llvm::SmallVector<int, 64> lanes;
    for (unsigned lane = 0; lane < run.count; ++lane) lanes.push_back(static_cast<int>(run.first + lane));
    return b.CreateShuffleVector(value, lanes);
  }
  /// `part` in its lanes, `rest` in the others.
  Value* widened(Value* part, Value* rest) const {
    if (run.count == 1) return b.CreateInsertElement(rest, part, run.first);
    const unsigned width = whole->getNumElements();
    llvm::SmallVector<int, 64> widen(width, llvm::PoisonMaskElem), blend;
    for (unsigned lane = 0; lane < run.count; ++lane) widen[lane] = static_cast<int>(lane);
    Value* wide = b.CreateShuffleVector(part, widen);
    for (unsigned lane = 0; lane < width; ++lane)
      blend.push_back(static_cast<int>(lane - run.first < run.count ? lane - run.first : width + lane));
    return b.CreateShuffleVector(wide, rest, blend);
  }
};

/// Returns true if `call` can be erased.
bool narrow(llvm::IntrinsicInst& call) {
  const bool loads = call.getIntrinsicID() == llvm::Intrinsic::masked_load;
  if (!loads && call.getIntrinsicID() != llvm::Intrinsic::masked_store) return false;
  const unsigned operand = loads ? 0 : 1;  // pointer, alignment, mask
  const std::optional<Run> run = run_of(call.getArgOperand(operand + 2));
  auto* whole = llvm::cast<llvm::FixedVectorType>(loads ? call.getType() : call.getArgOperand(0)->getType());
  const unsigned bits = whole->getScalarSizeInBits();
  if (!run || bits % 8 != 0 || !std::has_single_bit(bits)) return false;
  llvm::IRBuilder<> b(&call);
  const llvm::Align align = llvm::cast<llvm::ConstantInt>(call.getArgOperand(operand + 1))->getAlignValue();
  const Narrow access{b, *run, whole, align};
  Value* const place = access.place(call.getArgOperand(operand));
  llvm::Instruction* made = nullptr;
  if (loads) {
    auto* load = b.CreateAlignedLoad(access.type(), place, access.place_align());
    call.replaceAllUsesWith(access.widened(load, call.getArgOperand(3)));
    made = load;
  } else {
    made = b.CreateAlignedStore(access.part(call.getArgOperand(0)), place, access.place_align());
  }
  made->copyMetadata(call);
  return true;
}

}  // namespace

void narrow_accesses(llvm::Function& function) {
  for (llvm::Instruction& inst : llvm::make_early_inc_range(llvm::instructions(function))) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst);
    if (call != nullptr && narrow(*call)) call->eraseFromParent();
  }
}

}  // namespace quern::cpu::emit
