// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <functional>

#include "cpu/emit/emit.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Type;
using ir::Value;

/// The one refusal of a module; fails the test where it is not exactly one.
Diagnostic refusal(const ir::Module& module) {
  const auto checked = emit::check_emittable(module);
  REQUIRE(!checked.has_value());
  REQUIRE(checked.errors().size() == 1);
  CHECK(checked.errors()[0].code == "ptx-unsupported");
  return checked.errors()[0];
}

TEST_CASE("a recursive function may have neither barriers nor local memory nor end the thread") {
  const auto module_with = [](const std::function<void(IrBuilder&, ir::Function&)>& change) {
    IrBuilder kernel;
    kernel.op(ir::Op::call, Type::none, {}, 1);
    kernel.ret();
    ir::Module module = kernel.module();
    IrBuilder b("helper");
    ir::Function extra;
    change(b, extra);
    ir::Function function = b.finish();
    function.kernel = false;
    function.local_bytes = extra.local_bytes;
    module.functions.push_back(function);
    return module;
  };
  CHECK(refusal(module_with([](IrBuilder& b, ir::Function&) {
          b.barrier();
          b.ret();
        })).message.find("barrier in the recursive function helper") != std::string::npos);
  CHECK(refusal(module_with([](IrBuilder& b, ir::Function&) { b.exit(); })).message.find("'exit'") !=
        std::string::npos);
  CHECK(refusal(module_with([](IrBuilder& b, ir::Function& f) {
          f.local_bytes = 16;
          b.ret();
        })).message.find("local memory") != std::string::npos);
}

}  // namespace
}  // namespace quern::cpu::test
