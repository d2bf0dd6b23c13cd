// SPDX-License-Identifier: Apache-2.0
// The code generator's second run, for functions that spill much. Spills are counted in the assembly.
#include "cpu/emit/llvm/register_pressure.hpp"

#include <doctest/doctest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>

#include <array>
#include <string>

#include "cpu/emit/llvm/llvm_target.hpp"
#include "cpu/emit/llvm/machine_code.hpp"

namespace quern::cpu::emit {
namespace {

constexpr unsigned kValues = 4;

struct Program {
  explicit Program(unsigned of_values) : module("pressure", context), b(context), lanes(of_values) {}

  /// Sorts lanes of several vectors: in the order of the IR, all lanes of a value before the next value. One
  /// register of each value at a time would need no spill.
  void add_network() {
    llvm::Function* const function = begin("network");
    auto* const type = llvm::FixedVectorType::get(b.getInt32Ty(), lanes);
    std::array<llvm::Value*, kValues> values{};
    for (unsigned i = 0; i < kValues; ++i)
      values[i] =
          b.CreateAlignedLoad(type, b.CreateConstGEP1_32(type, function->getArg(0), i), llvm::Align(4));
    for (unsigned round = 0; round < 10; ++round)
      for (unsigned i = 0; i < kValues; ++i) {
        const unsigned other = i ^ (1 + round % 2);
        if (other < i) continue;
        llvm::Value* const low = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, values[i], values[other]);
        values[other] = b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, values[i], values[other]);
        values[i] = low;
      }
    for (unsigned i = 0; i < kValues; ++i)
      b.CreateAlignedStore(values[i], b.CreateConstGEP1_32(type, function->getArg(0), i), llvm::Align(4));
    b.CreateRetVoid();
  }

  void add_stores(unsigned count) {
    llvm::Function* const function = begin("stores");
    for (unsigned i = 0; i < count; ++i)
      b.CreateStore(b.getInt32(i), function->getArg(0), /*isVolatile=*/true);
    b.CreateRetVoid();
  }

  /// Instructions of the network that have an operand on the stack.
  unsigned stack_accesses(Isa isa) {
    REQUIRE_FALSE(llvm::verifyModule(module));
    const auto machine = make_target_machine(isa, kGoodLevel, /*portable=*/true);
    module.setTargetTriple(machine->getTargetTriple().str());
    module.setDataLayout(machine->createDataLayout());
    const auto text = make_assembly(module, *machine);
    REQUIRE(text.has_value());
    unsigned found = 0;
    for (std::size_t at = text->find("(%rsp)"); at != std::string::npos; at = text->find("(%rsp)", at + 1))
      ++found;
    return found;
  }

 private:
  llvm::Function* begin(const char* name) {
    auto* const type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false);
    auto* const function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "", function));
    return function;
  }

  llvm::LLVMContext context;
  llvm::Module module;
  llvm::IRBuilder<> b;
  const unsigned lanes;
};

TEST_CASE("a function that spills much is generated again with fewer spills, unless its module is large") {
  for (const Isa isa : {Isa::avx2, Isa::avx512}) {
    CAPTURE(static_cast<int>(isa));
    const unsigned lanes = isa == Isa::avx2 ? 128 : 512;  // as many registers for each value as there are
    Program small(lanes), large(lanes);
    small.add_network();
    large.add_network();
    large.add_stores(11'000);
    const unsigned again = small.stack_accesses(isa);
    const unsigned once = large.stack_accesses(isa);
    CHECK(again > 0);
    CHECK(again * 4 < once * 3);
  }
}

TEST_CASE("three spills in ten instructions are much, and a quarter fewer pay") {
  CHECK(spills_much({.instructions = 100, .spills = 30}));
  CHECK_FALSE(spills_much({.instructions = 100, .spills = 29}));
  const SpillCount before{.instructions = 200, .spills = 80};
  CHECK(spills_less(before, {.instructions = 500, .spills = 60}));
  CHECK_FALSE(spills_less(before, {.instructions = 500, .spills = 61}));
}

}  // namespace
}  // namespace quern::cpu::emit
