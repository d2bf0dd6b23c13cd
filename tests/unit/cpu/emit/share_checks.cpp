// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/share_checks.hpp"

#include <doctest/doctest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>

#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace quern::cpu::emit {
namespace {

/// The check of the address %NAME, and a load from there.
std::string access(const std::string& name, const std::string& limit = "%limit",
                   const std::string& base = "%base") {
  return fmt::format(
      "%{0}.o = sub i64 %{0}, {2}\n"
      "%{0}.i = call i64 @llvm.umin.i64(i64 %{0}.o, i64 {1})\n"
      "%{0}.a = add i64 {2}, %{0}.i\n"
      "%{0}.p = inttoptr i64 %{0}.a to ptr\n"
      "%{0}.v = load i8, ptr %{0}.p\n",
      name, limit, base);
}

/// The number of checks that are left of those in a function with this body.
std::size_t left(const std::string& body) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  const std::string text =
      "declare i64 @llvm.umin.i64(i64, i64)\n"
      "define void @k(i64 %base, i64 %limit, i64 %other, i64 %p, i64 %i, i1 %c) {\nentry:\n" +
      body + "ret void\n}\n";
  const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, error, context);
  REQUIRE_MESSAGE(module != nullptr, error.getMessage().str());
  llvm::Function& function = *module->getFunction("k");
  share_checks(function);
  CHECK_FALSE(llvm::verifyFunction(function, &llvm::errs()));
  std::size_t checks = 0;
  for (llvm::Instruction& inst : llvm::instructions(function))
    checks += llvm::isa<llvm::IntrinsicInst>(inst) ? 1 : 0;
  return checks;
}

const std::string kAt = "%scaled = shl i64 %i, 2\n%at = add i64 %p, %scaled\n" + access("at");

TEST_CASE("an address near a checked one is not checked again") {
  CHECK(left(kAt + "%next = add i64 %at, 4\n" + access("next")) == 1);
  CHECK(left(kAt + "%next = add i64 %at, -256\n" + access("next")) == 1);
  CHECK(left(kAt + "%j = add i64 %i, 1\n%four = mul i64 %j, 4\n%next = add i64 %four, %p\n" +
             access("next")) == 1);
  CHECK(left(kAt + "%next = sub i64 %at, 0\n" + access("next")) == 1);
  CHECK(left(kAt + "br i1 %c, label %then, label %end\nthen:\n%next = add i64 %at, 1\n" + access("next") +
             "br label %end\nend:\n") == 1);
}

TEST_CASE("an address that is near a checked one in either case is not checked again") {
  const std::string first = kAt + "%one = zext i1 %c to i64\n%four = shl i64 %one, 2\n";
  const std::string next = "%next = add i64 %at, %four\n" + access("next");
  CHECK(left(first + next) == 1);
  CHECK(left(first + next + "%far = sub i64 %next, 252\n" + access("far")) == 1);
  CHECK(left(first + "%large = mul i64 %one, 400\n%next = add i64 %at, %large\n" + access("next")) == 2);
  CHECK(left(first + "%chosen = select i1 %c, i64 -8, i64 0\n%next = add i64 %at, %chosen\n" +
             access("next")) == 1);
  CHECK(left(first + "%chosen = select i1 %c, i64 -800, i64 0\n%next = add i64 %at, %chosen\n" +
             access("next")) == 2);
  // The second check adds what the first one has added, and a little more: not the other way round.
  const std::string then = kAt.substr(0, kAt.find("%at.o")) + "%one = zext i1 %c to i64\n";
  CHECK(left(then + "%next = add i64 %at, %one\n" + access("next") + access("at")) == 2);
}

TEST_CASE("other addresses are checked") {
  CHECK(left(kAt + "%next = add i64 %at, 257\n" + access("next")) == 2);
  CHECK(left(kAt + "%next = add i64 %at, %i\n" + access("next")) == 2);
  CHECK(left(kAt + "%next = sub i64 %p, %scaled\n" + access("next")) == 2);
  CHECK(left(kAt + "%next = add i64 %at, 4\n" + access("next", "%other")) == 2);
  CHECK(left(kAt + "%next = add i64 %at, 4\n" + access("next", "%limit", "%other")) == 2);
  // Neither check comes before the other.
  CHECK(left("%at = add i64 %p, %i\n%next = add i64 %at, 1\nbr i1 %c, label %then, label %else\nthen:\n" +
             access("at") + "br label %end\nelse:\n" + access("next") + "br label %end\nend:\n") == 2);
}

TEST_CASE("a bounded number that is not only an address keeps its bound") {
  CHECK(left(kAt + "%next = add i64 %at, 4\n" + access("next") + "%sum = add i64 %next.a, 1\n") == 2);
  CHECK(left(kAt + "%next = add i64 %at, 4\n" + access("next") + "%sum = mul i64 %next.i, 2\n") == 2);
}

}  // namespace
}  // namespace quern::cpu::emit
