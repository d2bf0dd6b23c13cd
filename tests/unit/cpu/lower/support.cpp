// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "cpu/compiler/lowering.hpp"
#include "cpu/lower/lower.hpp"
#include "cpu/lower/ssa/verify.hpp"
#include "ptx/ptx.hpp"

namespace quern::test {
namespace {

ptx::Module parsed(const std::string& text) {
  Expected<ptx::Module> module = ptx::parse(text);
  if (!module) throw std::runtime_error("the test's PTX: " + to_string(module.errors()));
  if (const Expected<void> good = ptx::verify(*module); !good) {
    throw std::runtime_error("the test's PTX: " + to_string(good.errors()));
  }
  return std::move(module).value();
}

}  // namespace

std::string kernel_text(std::string_view body, std::string_view before) {
  return fmt::format(R"(.version 8.3
.target sm_90
.address_size 64
{}
.visible .entry k(.param .u64 out)
{{
.reg .pred %p<40>;
.reg .b16 %rs<40>;
.reg .b32 %r<80>;
.reg .b64 %rd<40>;
.reg .f32 %f<40>;
.reg .f64 %fd<40>;
ld.param.u64 %rd1, [out];
{}
}}
)",
                     before, body);
}

cpu::ir::Module lowered(const std::string& text, std::string_view kernel, cpu::lower::CallForm calls) {
  Expected<cpu::ir::Module> module = cpu::lower_kernel(parsed(text), kernel, "<ptx>", calls);
  if (!module) throw std::runtime_error(to_string(module.errors()));
  if (const Expected<void> good = cpu::lower::verify(*module); !good) {
    throw std::runtime_error(to_string(good.errors()) + cpu::ir::print(*module));
  }
  return std::move(module).value();
}

Diagnostics refusals(const std::string& text, std::string_view kernel) {
  Expected<cpu::ir::Module> module = cpu::lower_kernel(parsed(text), kernel, "test.ptx");
  return module ? Diagnostics{} : std::move(module).errors();
}

std::string data(std::string_view file) {
  std::ifstream stream(fmt::format("{}/{}", QUERN_TEST_DATA, file));
  if (!stream) throw std::runtime_error(fmt::format("cannot read {}", file));
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::size_t count(const cpu::ir::Function& function, cpu::ir::Op op) {
  return static_cast<std::size_t>(std::count_if(function.insts.begin(), function.insts.end(),
                                                [op](const cpu::ir::Inst& inst) { return inst.op == op; }));
}

const cpu::ir::Inst& first(const cpu::ir::Function& function, cpu::ir::Op op) {
  const auto found = std::find_if(function.insts.begin(), function.insts.end(),
                                  [op](const cpu::ir::Inst& inst) { return inst.op == op; });
  if (found == function.insts.end())
    throw std::runtime_error(fmt::format("no {} in\n{}", name(op), print(function)));
  return *found;
}

const cpu::ir::Inst& operand(const cpu::ir::Function& function, const cpu::ir::Inst& inst,
                             std::size_t index) {
  return function[inst.args.at(index)];
}

}  // namespace quern::test
