// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/prefetch_masked.hpp"

#include <doctest/doctest.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>

#include <cstdint>
#include <vector>

namespace quern::cpu::emit {
namespace {

/// A function with masked accesses of 32 floats at its first argument.
struct Subject {
  llvm::LLVMContext context;
  llvm::Module module{"accesses", context};
  llvm::IRBuilder<> b{context};
  llvm::Type* const vector = llvm::FixedVectorType::get(b.getFloatTy(), 32);
  llvm::Type* const mask = llvm::FixedVectorType::get(b.getInt1Ty(), 32);
  llvm::Function* const function =
      llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), mask, vector}, false),
                             llvm::Function::ExternalLinkage, "k", module);

  Subject() { b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function)); }

  llvm::Value* place(std::int64_t offset) {
    return b.CreateConstGEP1_64(b.getInt8Ty(), function->getArg(0), static_cast<std::uint64_t>(offset));
  }
  llvm::Instruction* load(llvm::Value* pointer) {
    return b.CreateMaskedLoad(vector, pointer, llvm::Align(4), function->getArg(1),
                              llvm::Constant::getNullValue(vector));
  }
  void store(llvm::Value* pointer) {
    b.CreateMaskedStore(function->getArg(2), pointer, llvm::Align(4), function->getArg(1));
  }
  void set_space(llvm::Instruction* access, const char* space) {
    llvm::Metadata* const domain[] = {llvm::MDString::get(context, "quern state spaces")};
    llvm::Metadata* const scope[] = {llvm::MDString::get(context, space), llvm::MDNode::get(context, domain)};
    llvm::Metadata* const list[] = {llvm::MDNode::get(context, scope)};
    access->setMetadata(llvm::LLVMContext::MD_alias_scope, llvm::MDNode::get(context, list));
  }

  /// Runs the pass. Returns the offsets of what is prefetched, and those of masked accesses as ~offset, in
  /// order.
  std::vector<std::int64_t> run() {
    b.CreateRetVoid();
    prefetch_masked(*function);
    REQUIRE_FALSE(llvm::verifyFunction(*function, &llvm::errs()));
    std::vector<std::int64_t> found;
    for (llvm::Instruction& inst : function->getEntryBlock()) {
      const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst);
      if (call == nullptr) continue;
      const bool prefetches = call->getIntrinsicID() == llvm::Intrinsic::prefetch;
      const bool stores = call->getIntrinsicID() == llvm::Intrinsic::masked_store;
      std::int64_t offset = 0;
      llvm::GetPointerBaseWithConstantOffset(call->getArgOperand(stores ? 1 : 0), offset,
                                             module.getDataLayout());
      found.push_back(prefetches ? offset : ~offset);
      if (prefetches) written = llvm::cast<llvm::ConstantInt>(call->getArgOperand(1))->isOne();
    }
    return found;
  }
  bool written = false;  ///< the last prefetch is for writing
};

using Offsets = std::vector<std::int64_t>;

TEST_CASE("the lines of a masked load are prefetched before it") {
  Subject subject;
  subject.load(subject.place(256));
  CHECK(subject.run() == Offsets{256, 320, ~256});
  CHECK_FALSE(subject.written);
}

TEST_CASE("a masked store prefetches for writing") {
  Subject subject;
  subject.store(subject.place(-64));
  CHECK(subject.run() == Offsets{-64, 0, ~-64});
  CHECK(subject.written);
}

TEST_CASE("accesses that overlap prefetch a line once") {
  Subject subject;
  subject.load(subject.place(0));
  subject.load(subject.place(4));
  subject.load(subject.place(-4));
  subject.load(subject.place(64));
  CHECK(subject.run() == Offsets{0, 64, ~0, ~4, -4, ~-4, 128, ~64});
}

TEST_CASE("memory that is in the caches is not prefetched") {
  for (const char* const space : {"shared", "local", "param"}) {
    CAPTURE(space);
    Subject subject;
    subject.set_space(subject.load(subject.place(0)), space);
    CHECK(subject.run() == Offsets{~0});
  }
  Subject of_stack;
  of_stack.load(of_stack.b.CreateAlloca(of_stack.vector));
  CHECK(of_stack.run() == Offsets{~0});
}

TEST_CASE("the lines of a long load are prefetched in their order") {
  Subject subject;
  subject.b.CreateAlignedLoad(llvm::FixedVectorType::get(subject.b.getFloatTy(), 64), subject.place(32),
                              llvm::Align(4));
  CHECK(subject.run() == Offsets{32, 96, 160, 224});
  Subject shorter;
  shorter.b.CreateAlignedLoad(shorter.vector, shorter.place(0), llvm::Align(4));
  CHECK(shorter.run().empty());
}

TEST_CASE("global memory is prefetched, and memory of an unknown space") {
  for (const char* const space : {"global", "constant"}) {
    CAPTURE(space);
    Subject subject;
    subject.set_space(subject.load(subject.place(0)), space);
    CHECK(subject.run() == Offsets{0, 64, ~0});
  }
}

}  // namespace
}  // namespace quern::cpu::emit
