// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/keep_load_order.hpp"

#include <doctest/doctest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>

#include <cstdint>
#include <string>

namespace quern::cpu::emit {
namespace {

/// A block of loads at its argument, of which the test sees the order.
struct Subject {
  llvm::LLVMContext context;
  llvm::Module module{"loads", context};
  llvm::IRBuilder<> b{context};
  llvm::Function* const function =
      llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false),
                             llvm::Function::ExternalLinkage, "k", module);

  Subject() { b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function)); }

  llvm::LoadInst* load(unsigned floats, const char* space = nullptr, llvm::Value* pointer = nullptr) {
    llvm::LoadInst* const made =
        b.CreateAlignedLoad(llvm::FixedVectorType::get(b.getFloatTy(), floats),
                            pointer == nullptr ? function->getArg(0) : pointer, llvm::Align(4));
    if (space == nullptr) return made;
    llvm::Metadata* const domain[] = {llvm::MDString::get(context, "quern state spaces")};
    llvm::Metadata* const scope[] = {llvm::MDString::get(context, space), llvm::MDNode::get(context, domain)};
    llvm::Metadata* const list[] = {llvm::MDNode::get(context, scope)};
    made->setMetadata(llvm::LLVMContext::MD_alias_scope, llvm::MDNode::get(context, list));
    return made;
  }

  /// Runs the pass. Returns a letter for each instruction: a load, a barrier, another one.
  std::string run() {
    b.CreateRetVoid();
    keep_load_order(*function);
    REQUIRE_FALSE(llvm::verifyFunction(*function, &llvm::errs()));
    std::string letters;
    for (const llvm::Instruction& inst : function->getEntryBlock()) {
      if (const auto* const fence = llvm::dyn_cast<llvm::FenceInst>(&inst))
        CHECK(fence->getSyncScopeID() == llvm::SyncScope::SingleThread);  // no instruction
      letters += llvm::isa<llvm::LoadInst>(inst) ? 'l' : llvm::isa<llvm::FenceInst>(inst) ? '|' : '.';
    }
    return letters;
  }
};

TEST_CASE("blocks that load a KiB and more have a barrier after each half KiB") {
  Subject subject;
  for (int i = 0; i < 10; ++i) subject.load(32);
  CHECK(subject.run() == "llll|llll|ll.");
}

TEST_CASE("loads that are long have a barrier each") {
  Subject subject;
  for (int i = 0; i < 3; ++i) subject.load(128);
  CHECK(subject.run() == "l|l|l|.");
}

TEST_CASE("blocks that load less than a KiB are left alone, and scalars do not count") {
  Subject subject;
  for (int i = 0; i < 7; ++i) subject.load(32);
  for (int i = 0; i < 100; ++i) subject.load(2);
  CHECK(subject.run().find('|') == std::string::npos);
}

TEST_CASE("loads of shared, local and parameter memory, and of the stack, do not count") {
  Subject subject;
  for (const char* const space : {"shared", "local", "param"})
    for (int i = 0; i < 16; ++i) subject.load(32, space);
  llvm::Value* const slot = subject.b.CreateAlloca(llvm::FixedVectorType::get(subject.b.getFloatTy(), 32));
  for (int i = 0; i < 16; ++i) subject.load(32, nullptr, slot);
  CHECK(subject.run().find('|') == std::string::npos);
}

}  // namespace
}  // namespace quern::cpu::emit
