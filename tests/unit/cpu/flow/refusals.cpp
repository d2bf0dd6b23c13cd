// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <functional>

#include "cpu/emit/emit.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Type;
using ir::Value;

/// The only refusal of a module. Fails the test if there is not exactly one.
Diagnostic refusal(const ir::Module& module) {
  const auto checked = emit::check_emittable(module);
  REQUIRE(!checked.has_value());
  REQUIRE(checked.errors().size() == 1);
  CHECK(checked.errors()[0].code == "ptx-unsupported");
  return checked.errors()[0];
}

TEST_CASE("a recursive function may neither have barriers nor end the thread by itself; its line is named") {
  const auto module_with = [](const std::function<void(IrBuilder&)>& fill) {
    IrBuilder kernel;
    kernel.op(ir::Op::call, Type::none, {}, 1);
    kernel.ret();
    ir::Module module = kernel.module();
    IrBuilder b("helper");
    b.line(12);
    fill(b);
    ir::Function function = b.finish();
    function.kernel = false;
    module.functions.push_back(function);
    return module;
  };
  const Diagnostic barrier = refusal(module_with([](IrBuilder& b) {
    b.barrier();
    b.ret();
  }));
  CHECK(barrier.message.find("barrier in the recursive function helper") != std::string::npos);
  CHECK(barrier.message.find("PTX line 1012") != std::string::npos);
  CHECK(barrier.span.line == 12);
  CHECK(refusal(module_with([](IrBuilder& b) { b.exit(); })).message.find("'exit'") != std::string::npos);
}

}  // namespace
}  // namespace quern::cpu::test
