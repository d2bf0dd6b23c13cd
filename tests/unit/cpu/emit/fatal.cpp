// SPDX-License-Identifier: Apache-2.0
// LLVM's fatal errors become diagnostics: LLVM's code generator cannot select this LLVM IR.
#include "cpu/emit/llvm/fatal.hpp"

#include <doctest/doctest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/ErrorHandling.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cpu/emit/llvm/llvm_target.hpp"
#include "cpu/emit/llvm/machine_code.hpp"

// Functions of LeakSanitizer, if the test is built with it.
extern "C" void __lsan_disable() __attribute__((weak));  // NOLINT
extern "C" void __lsan_enable() __attribute__((weak));   // NOLINT

namespace quern::cpu::emit {
namespace {

/// Work that LLVM ends leaks memory by design (fatal.hpp). Its allocations must not count as leaks.
class LeaksAllowed {
 public:
  LeaksAllowed() {
    if (__lsan_disable != nullptr) __lsan_disable();
  }
  ~LeaksAllowed() {
    if (__lsan_enable != nullptr) __lsan_enable();
  }
  LeaksAllowed(const LeaksAllowed&) = delete;
  LeaksAllowed& operator=(const LeaksAllowed&) = delete;
};

/// Generates machine code for AVX2 from a function with two pointers.
Expected<void> generate(llvm::function_ref<void(llvm::IRBuilder<>&, llvm::Value*, llvm::Value*)> emit) {
  const LeaksAllowed leaks;
  return guard_llvm("saxpy", [&] {
    auto context = std::make_unique<llvm::LLVMContext>();
    auto module = std::make_unique<llvm::Module>("test", *context);
    auto machine = make_target_machine(Isa::avx2, 2);
    module->setTargetTriple(machine->getTargetTriple().str());
    module->setDataLayout(machine->createDataLayout());
    llvm::IRBuilder<> at(*context);
    auto* type = llvm::FunctionType::get(at.getVoidTy(), {at.getPtrTy(), at.getPtrTy()}, false);
    auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", *module);
    at.SetInsertPoint(llvm::BasicBlock::Create(*context, "", function));
    emit(at, function->getArg(0), function->getArg(1));
    at.CreateRetVoid();
    CHECK(make_object(*module, *machine).has_value());
  });
}

/// The square root of 16 numbers in AVX-512.
void emit_for_wider(llvm::IRBuilder<>& at, llvm::Value* from, llvm::Value* to) {
  llvm::Type* type = llvm::FixedVectorType::get(at.getFloatTy(), 16);
  llvm::Value* values = at.CreateLoad(type, from);
  at.CreateStore(at.CreateIntrinsic(llvm::Intrinsic::x86_avx512_sqrt_ps_512, {}, {values, at.getInt32(8)}),
                 to);
}

TEST_CASE("a fatal error of LLVM's is a diagnostic with the kernel and LLVM's reason") {
  const Expected<void> refused = generate(emit_for_wider);
  REQUIRE(!refused);
  REQUIRE(refused.errors().size() == 1);
  const Diagnostic& error = refused.errors()[0];
  CHECK(error.code == "internal");
  CHECK(error.message.find("compiling kernel saxpy for the CPU device") == 0);
  CHECK(error.message.find("Do not know how to split the result of this operator") != std::string::npos);
}

TEST_CASE("a masked load whose constant mask has a hole may be stored whole") {
  const Expected<void> made = generate([](llvm::IRBuilder<>& at, llvm::Value* from, llvm::Value* to) {
    llvm::Type* type = llvm::FixedVectorType::get(at.getInt32Ty(), 8);
    std::vector<llvm::Constant*> mask(8, at.getTrue());
    mask[1] = at.getFalse();
    at.CreateStore(at.CreateMaskedLoad(type, from, llvm::Align(4), llvm::ConstantVector::get(mask)), to);
  });
  CHECK(made.has_value());
}

TEST_CASE("threads meet fatal errors at one time, each its own") {
  std::vector<std::thread> threads;
  std::vector<std::string> reasons(4);
  for (std::size_t t = 0; t < reasons.size(); ++t)
    threads.emplace_back([&reasons, t] {
      const LeaksAllowed leaks;
      for (int n = 0; n < 50; ++n) {
        const std::string mine = "thread " + std::to_string(t) + ", error " + std::to_string(n);
        const auto refused = guard_llvm("k", [&] { llvm::report_fatal_error(mine.c_str()); });
        if (!refused) reasons[t] = refused.errors()[0].message;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < reasons.size(); ++t)
    CHECK(reasons[t].find("thread " + std::to_string(t) + ", error 49") != std::string::npos);
}

TEST_CASE("the reason may be of any length") {
  const LeaksAllowed leaks;
  const auto refused =
      guard_llvm("k", [] { llvm::report_fatal_error(std::string(10'000, 'x').c_str(), false); });
  REQUIRE(!refused);
  CHECK(refused.errors()[0].message.find("xxxx") != std::string::npos);
}

TEST_CASE("guarded work may be guarded in parts") {
  const LeaksAllowed leaks;
  bool went_on = false;
  const auto outer = guard_llvm("outer", [&] {
    const auto inner = guard_llvm("inner", [] { llvm::report_fatal_error("first"); });
    went_on = !inner && inner.errors()[0].message.find("first") != std::string::npos;
    llvm::report_fatal_error("second");
  });
  CHECK(went_on);
  REQUIRE(!outer);
  CHECK(outer.errors()[0].message.find("second") != std::string::npos);
}

TEST_CASE("exhausted memory in LLVM is std::bad_alloc") {
  CHECK_THROWS_AS((void)guard_llvm("k", [] { llvm::report_bad_alloc_error("no memory"); }), std::bad_alloc);
  CHECK_THROWS_AS((void)guard_llvm("k", [] { call_llvm([] { throw std::bad_alloc(); }); }), std::bad_alloc);
  CHECK(guard_llvm("k", [] {}).has_value());
}

TEST_CASE("exceptions of the work itself pass") {
  CHECK_THROWS_AS((void)guard_llvm("k", [] { throw std::runtime_error("ours"); }), std::runtime_error);
  const auto refused = guard_llvm("k", [] { llvm::report_fatal_error("afterwards"); });
  CHECK(!refused);
}

}  // namespace
}  // namespace quern::cpu::emit
