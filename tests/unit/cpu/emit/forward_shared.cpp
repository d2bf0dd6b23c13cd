// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/forward_shared.hpp"

#include <doctest/doctest.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <vector>

namespace quern::cpu::emit {
namespace {

constexpr std::size_t kBytes = 1024;
using Bytes = std::array<std::uint8_t, kBytes>;
using Numbers = std::vector<std::uint64_t>;

/// A function of two pointers. The first one is to 1,024 bytes of shared memory.
struct Program {
  Program() : module("forward", context), b(context) {
    function =
        llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}, false),
                               llvm::Function::ExternalLinkage, "k", module);
    function->addDereferenceableParamAttr(0, kBytes);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  }

  llvm::Value* place(std::uint64_t offset, unsigned array = 0) {
    return b.CreateConstGEP1_64(b.getInt8Ty(), function->getArg(array), offset);
  }
  /// `inst` accesses the memory of argument `array`.
  template <class Inst>
  Inst* in(unsigned array, Inst* inst) {
    const auto list = [&](const char* name) {
      llvm::Metadata* const domain[] = {llvm::MDString::get(context, "spaces")};
      llvm::Metadata* const scope[] = {llvm::MDString::get(context, name),
                                       llvm::MDNode::get(context, domain)};
      llvm::Metadata* const scopes[] = {llvm::MDNode::get(context, scope)};
      return llvm::MDNode::get(context, scopes);
    };
    inst->setMetadata(llvm::LLVMContext::MD_alias_scope, list(array == 0 ? "shared" : "global"));
    inst->setMetadata(llvm::LLVMContext::MD_noalias, list(array == 0 ? "global" : "shared"));
    return inst;
  }
  llvm::Constant* numbers(llvm::Type* element, unsigned count, std::uint64_t first) {
    llvm::SmallVector<llvm::Constant*, 32> made;
    for (unsigned lane = 0; lane < count; ++lane)
      made.push_back(llvm::ConstantExpr::getBitCast(
          llvm::ConstantInt::get(b.getIntNTy(element->getScalarSizeInBits()), first + lane), element));
    return count == 1 ? made[0] : llvm::ConstantVector::get(made);
  }
  llvm::Constant* mask(unsigned count, std::uint64_t lanes) {
    llvm::SmallVector<llvm::Constant*, 32> bits;
    for (unsigned lane = 0; lane < count; ++lane) bits.push_back(b.getInt1((lanes >> lane & 1) != 0));
    return llvm::ConstantVector::get(bits);
  }
  llvm::StoreInst* store(llvm::Value* value, std::uint64_t offset, unsigned array = 0) {
    return in(array, b.CreateAlignedStore(value, place(offset, array), llvm::Align(1)));
  }
  llvm::LoadInst* load(llvm::Type* type, std::uint64_t offset) {
    return in(0, b.CreateAlignedLoad(type, place(offset), llvm::Align(1)));
  }
  void finish() {
    b.CreateRetVoid();
    REQUIRE_FALSE(llvm::verifyFunction(*function));
  }
  template <class Inst>
  unsigned count() const {
    unsigned found = 0;
    for (const llvm::Instruction& inst : llvm::instructions(*function))
      found += llvm::isa<Inst>(inst) ? 1 : 0;
    return found;
  }

  llvm::LLVMContext context;
  llvm::Module module;
  llvm::IRBuilder<> b;
  llvm::Function* function = nullptr;
};

/// Runs loads, stores and permutations on the two arrays.
class Interpreter {
 public:
  Interpreter() {
    for (std::size_t at = 0; at < kBytes; ++at) memory[0][at] = static_cast<std::uint8_t>(at * 29 + 7);
  }
  void run(const llvm::Function& function) {
    for (const llvm::Instruction& inst : llvm::instructions(function)) step(inst);
  }
  std::array<Bytes, 2> memory{};

 private:
  void step(const llvm::Instruction& inst) {
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&inst)) {
      values_[&inst] = read(*load->getPointerOperand(), *load->getType(), nullptr, nullptr);
    } else if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&inst)) {
      write(*store->getPointerOperand(), *store->getValueOperand(), nullptr);
    } else if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst)) {
      if (call->getIntrinsicID() == llvm::Intrinsic::masked_load)
        values_[&inst] =
            read(*call->getArgOperand(0), *call->getType(), call->getArgOperand(2), call->getArgOperand(3));
      else
        write(*call->getArgOperand(1), *call->getArgOperand(0), call->getArgOperand(3));
    } else if (const auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&inst)) {
      Numbers both = value_of(*shuffle->getOperand(0));
      const Numbers second = value_of(*shuffle->getOperand(1));
      both.insert(both.end(), second.begin(), second.end());
      for (const int from : shuffle->getShuffleMask())
        values_[&inst].push_back(from < 0 ? 0 : both[static_cast<std::size_t>(from)]);
    } else if (llvm::isa<llvm::BitCastInst>(inst)) {
      values_[&inst] = value_of(*inst.getOperand(0));
    }
  }

  Numbers value_of(const llvm::Value& value) const {
    const auto* constant = llvm::dyn_cast<llvm::Constant>(&value);
    if (constant == nullptr) return values_.at(&value);
    Numbers numbers;
    for (unsigned lane = 0; lane < lanes_in(*value.getType()); ++lane) {
      const llvm::Constant* each =
          value.getType()->isVectorTy() ? constant->getAggregateElement(lane) : constant;
      const auto* integer = llvm::dyn_cast<llvm::ConstantInt>(each);
      const auto* real = llvm::dyn_cast<llvm::ConstantFP>(each);
      numbers.push_back(integer != nullptr ? integer->getZExtValue()
                        : real != nullptr  ? real->getValueAPF().bitcastToAPInt().getZExtValue()
                                           : 0);
    }
    return numbers;
  }
  static unsigned lanes_in(const llvm::Type& type) {
    const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(&type);
    return vector == nullptr ? 1 : vector->getNumElements();
  }

  std::uint8_t* at(const llvm::Value& pointer) {
    llvm::APInt offset(64, 0);
    const llvm::Value* base =
        pointer.stripAndAccumulateConstantOffsets(llvm::DataLayout(""), offset, /*AllowNonInbounds=*/true);
    return memory[llvm::cast<llvm::Argument>(base)->getArgNo()].data() + offset.getZExtValue();
  }
  Numbers read(const llvm::Value& pointer, const llvm::Type& type, const llvm::Value* mask,
               const llvm::Value* rest) {
    Numbers numbers = rest == nullptr ? Numbers(lanes_in(type)) : value_of(*rest);
    const std::size_t bytes = type.getScalarSizeInBits() / 8;
    for (std::size_t lane = 0; lane < numbers.size(); ++lane) {
      if (mask != nullptr && value_of(*mask)[lane] == 0) continue;
      numbers[lane] = 0;
      std::memcpy(&numbers[lane], at(pointer) + lane * bytes, bytes);
    }
    return numbers;
  }
  void write(const llvm::Value& pointer, const llvm::Value& value, const llvm::Value* mask) {
    const Numbers numbers = value_of(value);
    const std::size_t bytes = value.getType()->getScalarSizeInBits() / 8;
    for (std::size_t lane = 0; lane < numbers.size(); ++lane)
      if (mask == nullptr || value_of(*mask)[lane] != 0)
        std::memcpy(at(pointer) + lane * bytes, &numbers[lane], bytes);
  }

  std::map<const llvm::Value*, Numbers> values_;
};

std::array<Bytes, 2> memory_after(const Program& program) {
  Interpreter interpreter;
  interpreter.run(*program.function);
  return interpreter.memory;
}

}  // namespace

TEST_CASE("a load of the elements of two stores becomes a permutation") {
  Program p;
  llvm::Type* const vector = llvm::FixedVectorType::get(p.b.getInt32Ty(), 16);
  p.store(p.numbers(p.b.getInt32Ty(), 16, 100), 64);
  p.store(p.numbers(p.b.getInt32Ty(), 16, 200), 128);
  p.store(p.load(vector, 68), 0, 1);
  p.finish();
  const auto expected = memory_after(p);
  forward_shared(*p.function);
  CHECK(p.count<llvm::LoadInst>() == 0);
  CHECK(p.count<llvm::StoreInst>() == 3);
  CHECK(memory_after(p) == expected);
}

TEST_CASE("a load of memory that something else may have written, and a short one, stay loads") {
  enum class Between { nothing, global_store, unknown_store, fence };
  for (const Between between :
       {Between::nothing, Between::global_store, Between::unknown_store, Between::fence}) {
    Program p;
    llvm::Type* const vector = llvm::FixedVectorType::get(p.b.getInt32Ty(), 16);
    p.store(p.numbers(p.b.getInt32Ty(), 32, 100), 0);
    p.store(p.numbers(p.b.getInt32Ty(), 32, 200), 128);
    if (between == Between::global_store) p.store(p.b.getInt32(1), 512, 1);
    if (between == Between::unknown_store) p.b.CreateStore(p.b.getInt32(1), p.function->getArg(1));
    if (between == Between::fence) p.b.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
    p.store(p.load(vector, 32), 0, 1);    // of the first store
    p.store(p.load(vector, 112), 64, 1);  // of both
    p.store(p.load(llvm::FixedVectorType::get(p.b.getInt32Ty(), 2), 8), 128, 1);
    p.finish();
    forward_shared(*p.function);
    const bool known = between == Between::nothing || between == Between::global_store;
    CHECK(p.count<llvm::LoadInst>() == (known ? 1 : 3));
  }
}

TEST_CASE(
    "a store whose bytes are stored again is removed if nothing reads them before and it cannot fault") {
  enum class Case { overwritten, read, partly, outside, fence, is_volatile };
  for (const Case which :
       {Case::overwritten, Case::read, Case::partly, Case::outside, Case::fence, Case::is_volatile}) {
    Program p;
    llvm::Type* const word = p.b.getInt32Ty();
    const std::uint64_t offset = which == Case::outside ? kBytes - 60 : 64;
    llvm::StoreInst* const first = p.store(p.numbers(word, 16, 100), offset);
    if (which == Case::is_volatile) first->setVolatile(true);
    if (which == Case::read) p.store(p.load(word, 72), 0, 1);
    if (which == Case::fence) p.b.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
    p.store(p.numbers(word, which == Case::partly ? 8 : 16, 200), offset);
    p.finish();
    const unsigned before = p.count<llvm::StoreInst>();
    forward_shared(*p.function);
    CHECK(p.count<llvm::StoreInst>() == before - (which == Case::overwritten ? 1 : 0));
  }
}

TEST_CASE("a store is removed if its block ends before anything reads it") {
  enum class Case { ends, goes_on, read, read_before, outside, fence, is_volatile, unknown_mask };
  for (const Case which : {Case::ends, Case::goes_on, Case::read, Case::read_before, Case::outside,
                           Case::fence, Case::is_volatile, Case::unknown_mask}) {
    CAPTURE(static_cast<int>(which));
    Program p;
    llvm::Type* const word = p.b.getInt32Ty();
    if (which == Case::read_before) p.store(p.load(word, 72), 0, 1);
    llvm::StoreInst* const first =
        p.store(p.numbers(word, 16, 100), which == Case::outside ? kBytes - 60 : 64);
    if (which == Case::is_volatile) first->setVolatile(true);
    if (which == Case::read) p.store(p.load(p.b.getInt64Ty(), 120), 0, 1);  // its last word
    if (which == Case::fence) p.b.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
    if (which == Case::unknown_mask) {
      llvm::Value* const lanes =
          p.b.CreateICmpNE(p.b.CreateLoad(llvm::FixedVectorType::get(word, 16), p.function->getArg(1)),
                           llvm::Constant::getNullValue(llvm::FixedVectorType::get(word, 16)));
      p.in(0, p.b.CreateMaskedStore(p.numbers(word, 16, 300), p.place(512), llvm::Align(1), lanes));
    }
    llvm::BasicBlock* const next = llvm::BasicBlock::Create(p.context, "next", p.function);
    llvm::BranchInst* const branch = p.b.CreateBr(next);
    if (which != Case::goes_on) branch->setMetadata(kBlockEnds, llvm::MDNode::get(p.context, {}));
    p.b.SetInsertPoint(next);
    p.finish();
    forward_shared(*p.function);
    const unsigned elsewhere = which == Case::read || which == Case::read_before ? 1 : 0;
    const bool removed = which == Case::ends || which == Case::read_before;
    CHECK(p.count<llvm::StoreInst>() == elsewhere + (removed ? 0 : 1));
  }
}

TEST_CASE("programs leave the same memory behind") {
  std::mt19937 random(1);
  const auto below = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
  unsigned forwarded = 0, removed = 0;
  for (unsigned round = 0; round < 300; ++round) {
    Program p;
    std::uint64_t results = 0;
    const std::array<llvm::Type*, 5> elements{p.b.getInt32Ty(), p.b.getFloatTy(), p.b.getInt64Ty(),
                                              p.b.getInt8Ty(), p.b.getDoubleTy()};
    for (unsigned each = 0; each < 40; ++each) {
      llvm::Type* const element = elements[below(6) < 4 ? 0 : below(5)];
      const unsigned bytes = element->getScalarSizeInBits() / 8;
      const unsigned count = below(8) == 0 ? 1 : 8u << below(3);
      const std::uint64_t offset = below(12) == 0 ? below(100) : below(25) * 4;
      const bool masked = count > 1 && below(2) == 0;
      llvm::Constant* const lanes = masked ? p.mask(count, random()) : nullptr;
      llvm::Type* const type = count == 1 ? element : llvm::FixedVectorType::get(element, count);
      llvm::Constant* const value = p.numbers(element, count, each * 64 + 1);
      if (below(3) != 0) {
        if (masked)
          p.in(0, p.b.CreateMaskedStore(value, p.place(offset), llvm::Align(1), lanes));
        else
          p.store(value, offset);
      } else if (results + count * bytes <= kBytes) {
        llvm::Value* loaded = p.load(type, offset);
        if (masked) {
          llvm::cast<llvm::Instruction>(loaded)->eraseFromParent();
          loaded = p.in(0, p.b.CreateMaskedLoad(type, p.place(offset), llvm::Align(1), lanes, value));
        }
        p.store(loaded, results, 1);
        results += count * bytes;
      }
    }
    p.finish();
    const auto expected = memory_after(p);
    const unsigned loads = p.count<llvm::LoadInst>(), stores = p.count<llvm::StoreInst>();
    forward_shared(*p.function);
    REQUIRE_FALSE(llvm::verifyFunction(*p.function));
    REQUIRE(memory_after(p) == expected);
    forwarded += loads - p.count<llvm::LoadInst>();
    removed += stores - p.count<llvm::StoreInst>();
  }
  CHECK(forwarded > 100);
  CHECK(removed > 100);
}

}  // namespace quern::cpu::emit
