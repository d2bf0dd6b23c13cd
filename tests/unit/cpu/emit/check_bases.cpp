// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/check_bases.hpp"

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

#include <memory>
#include <string>

namespace quern::cpu::emit {
namespace {

/// The check of the address %at, and an access there.
std::string access(const std::string& how = "%v = load i8, ptr %pointer\n") {
  return "%offset = sub i64 %at, %base\n"
         "%inside = call i64 @llvm.umin.i64(i64 %offset, i64 %limit)\n"
         "%address = add i64 %base, %inside\n"
         "%pointer = inttoptr i64 %address to ptr\n" +
         how;
}

/// True if the check is before the loop with this body, in which %n counts.
bool hoisted(const std::string& body) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  const std::string text =
      "declare i64 @llvm.umin.i64(i64, i64)\ndeclare void @use(ptr)\n"
      "define void @k(i64 %base, i64 %limit, i64 %p, ptr %indices, i32 %end) {\nentry:\nbr label %loop\n"
      "loop:\n%n = phi i32 [0, %entry], [%next, %loop]\n"
      "%place = getelementptr i32, ptr %indices, i32 %n\n%i = load i32, ptr %place\n" +
      body +
      "%next = add i32 %n, 1\n%more = icmp slt i32 %next, %end\n"
      "br i1 %more, label %loop, label %exit\nexit:\nret void\n}\n";
  const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, error, context);
  REQUIRE_MESSAGE(module != nullptr, error.getMessage().str());
  llvm::Function& function = *module->getFunction("k");
  check_bases(function);
  CHECK_FALSE(llvm::verifyFunction(function, &llvm::errs()));
  unsigned before = 0, checks = 0;
  for (llvm::Instruction& inst : llvm::instructions(function)) {
    if (!llvm::isa<llvm::IntrinsicInst>(inst)) continue;
    ++checks;
    before += inst.getParent() == &function.getEntryBlock() ? 1 : 0;
  }
  CHECK(checks == 1);
  return before == 1;
}

std::string indexed(const std::string& extension, unsigned scale) {
  return fmt::format("%wide = {} i64\n%scaled = mul i64 %wide, {}\n%at = add i64 %p, %scaled\n", extension,
                     scale);
}

TEST_CASE("the base of an indexed address is checked before the loop") {
  CHECK(hoisted(indexed("sext i32 %i to", 4) + access()));
  CHECK(hoisted(indexed("zext i32 %i to", 8) + access()));
  CHECK(hoisted(indexed("sext i32 %i to", 4) + access("store i8 0, ptr %pointer\n")));
  CHECK(hoisted(indexed("sext i32 %i to", 4) +
                access("%q = getelementptr i8, ptr %pointer, i64 4\n%v = load i8, ptr %q\n")));
  CHECK(
      hoisted("%wide = sext i32 %i to i64\n%sum = add i64 %p, %wide\n%at = add i64 %sum, 1000\n" + access()));
}

TEST_CASE("indices that might reach over a gap are checked each time") {
  CHECK(hoisted(indexed("sext i32 %i to", 18) + access()));  // 36 GiB
  CHECK(!hoisted(indexed("sext i32 %i to", 19) + access()));
  CHECK(!hoisted(indexed("zext i32 %i to", 10) + access()));
  // two indices, of 16 and 32 GiB
  CHECK(
      !hoisted("%a = sext i32 %i to i64\n%b = zext i32 %i to i64\n%c = mul i64 %a, 8\n%d = mul i64 %b, 8\n"
               "%e = add i64 %c, %d\n%at = add i64 %e, %p\n" +
               access()));
  // a number of 64 bits
  CHECK(!hoisted("%wide = load i64, ptr %place\n%at = add i64 %p, %wide\n" + access()));
}

TEST_CASE("checks stay where a loop changes the base, or anything else sees the address") {
  CHECK(!hoisted("%q = load i64, ptr %place\n%wide = sext i32 %i to i64\n%at = add i64 %q, %wide\n" +
                 access()));
  const std::string at = indexed("sext i32 %i to", 4);
  CHECK(!hoisted(at + access("call void @use(ptr %pointer)\n")));
  CHECK(!hoisted(at + access("store ptr %pointer, ptr %indices\n")));
  CHECK(!hoisted(at + access("%v = load <4 x i32>, ptr %pointer\n")));
  CHECK(!hoisted(at + access("store <4 x i32> zeroinitializer, ptr %pointer\n")));
}

}  // namespace
}  // namespace quern::cpu::emit
