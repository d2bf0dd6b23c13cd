// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/narrow_accesses.hpp"

#include <doctest/doctest.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>

#include <cstdint>
#include <optional>

namespace quern::cpu::emit {
namespace {

/// The number of lanes and the offset of the access that is left of one under the mask `lanes`.
struct Access {
  unsigned count = 0;
  std::int64_t offset = 0;
  friend bool operator==(const Access&, const Access&) = default;
};

llvm::Constant* mask_of(llvm::IRBuilder<>& b, std::uint32_t lanes) {
  llvm::SmallVector<llvm::Constant*, 32> bits;
  for (unsigned lane = 0; lane < 32; ++lane) bits.push_back(b.getInt1((lanes >> lane & 1) != 0));
  return llvm::ConstantVector::get(bits);
}

template <class Inst>
std::optional<Access> only(llvm::Function& function) {
  std::optional<Access> found;
  for (llvm::Instruction& inst : llvm::instructions(function)) {
    CHECK_FALSE(llvm::isa<llvm::IntrinsicInst>(inst));
    auto* const access = llvm::dyn_cast<Inst>(&inst);
    if (access == nullptr) continue;
    CHECK(!found);
    const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(llvm::getLoadStoreType(access));
    std::int64_t offset = 0;
    const auto& layout = function.getParent()->getDataLayout();
    llvm::GetPointerBaseWithConstantOffset(access->getPointerOperand(), offset, layout);
    found = Access{type == nullptr ? 1 : type->getNumElements(), offset};
  }
  return found;
}

/// `expected`: nothing if the mask stays.
void check(std::uint32_t lanes, std::optional<Access> expected) {
  CAPTURE(lanes);
  for (const bool loads : {false, true}) {
    llvm::LLVMContext context;
    llvm::Module module("accesses", context);
    llvm::IRBuilder<> b(context);
    llvm::Type* const vector = llvm::FixedVectorType::get(b.getFloatTy(), 32);
    llvm::Function* const function =
        llvm::Function::Create(llvm::FunctionType::get(vector, {b.getPtrTy(), vector}, false),
                               llvm::Function::ExternalLinkage, "k", module);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
    llvm::Value* result = function->getArg(1);
    if (loads)
      result = b.CreateMaskedLoad(vector, function->getArg(0), llvm::Align(4), mask_of(b, lanes), result);
    else
      b.CreateMaskedStore(result, function->getArg(0), llvm::Align(4), mask_of(b, lanes));
    b.CreateRet(result);
    narrow_accesses(*function);
    CHECK_FALSE(llvm::verifyFunction(*function));
    if (!expected) {
      std::size_t calls = 0;
      for (llvm::Instruction& inst : llvm::instructions(*function))
        calls += llvm::isa<llvm::IntrinsicInst>(inst) ? 1 : 0;
      CHECK(calls == 1);
    } else if (loads) {
      CHECK(only<llvm::LoadInst>(*function) == expected);
    } else {
      CHECK(only<llvm::StoreInst>(*function) == expected);
    }
  }
}

TEST_CASE("an access for one run of lanes has no mask") {
  check(0x0000ffff, Access{16, 0});
  check(0x000000ff, Access{8, 0});
  check(0x00000300, Access{2, 32});
  check(0x80000000, Access{1, 124});
}

TEST_CASE("an access for other lanes keeps its mask") {
  check(0x00000007, std::nullopt);
  check(0x00000005, std::nullopt);
  check(0, std::nullopt);
}

}  // namespace
}  // namespace quern::cpu::emit
