// SPDX-License-Identifier: Apache-2.0
// The list of passes and the hooks after them.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "cpu/compiler/hooks.hpp"
#include "cpu/compiler/passes.hpp"
#include "harness.hpp"
#include "ptx/ptx.hpp"

namespace quern::cpu::test {
namespace {

ptx::Module parse_file(const std::string& name) {
  std::ifstream file(std::string(QUERN_TEST_DATA "/") + name + ".ptx");
  REQUIRE(file);
  auto module = ptx::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  REQUIRE(module);
  REQUIRE(ptx::verify(*module));
  return std::move(*module);
}

std::string errors_of(const Expected<void>& done) { return done ? "" : to_string(done.errors()); }

/// A function that calls itself and synchronises its warp in each activation, so that its calls cannot remain
/// calls.
constexpr const char* kRecursive = R"(
.version 8.0
.target sm_89
.address_size 64
.func down(.param .u32 n) {
  .reg .u32 %r<3>; .reg .pred %p;
  ld.param.u32 %r1, [n];
  bar.warp.sync 0xffffffff;
  setp.eq.u32 %p, %r1, 0;
  @%p bra done;
  sub.u32 %r2, %r1, 1;
  { .param .u32 a; st.param.u32 [a], %r2; call down, (a); }
done:
  ret;
}
.visible .entry k(.param .u32 n) {
  .reg .u32 %r1;
  ld.param.u32 %r1, [n];
  { .param .u32 a; st.param.u32 [a], %r1; call down, (a); }
  ret;
}
)";

TEST_CASE("passes have names of their own, and each form is made by passes that follow each other") {
  std::set<std::string_view> names;
  std::set<Form> forms;
  Form last = pass_list().front().form;
  for (const Pass& pass : pass_list()) {
    CAPTURE(pass.name);
    CHECK(names.insert(pass.name).second);
    if (pass.form != last) CHECK(forms.insert(last).second);
    CHECK(!forms.contains(pass.form));
    last = pass.form;
  }
}

TEST_CASE("after every pass the IR of the samples is well formed") {
  for (const char* name : {"loops", "mandelbrot", "matmul", "reduce", "saxpy"}) {
    const ptx::Module module = parse_file(name);
    for (const ptx::Function& entry : module.functions) {
      if (!entry.entry || !entry.defined) continue;
      for (const Specialisation& specialisation : variants({64, 1, 1})) {
        CAPTURE(entry.name);
        Compilation compilation(module, entry, "<ptx>", specialisation);
        const AfterPass hooks[] = {verify_ir()};
        const std::string errors = errors_of(run_passes(compilation, Form::builder, Form::image, hooks));
        CHECK_MESSAGE(errors.empty(), errors);
      }
    }
  }
}

TEST_CASE("the verifier names the pass after which the IR is malformed") {
  ir::Module module;
  ir::Function& function = module.functions.emplace_back();
  function.name = "k";
  function.kernel = true;
  function.blocks.emplace_back();
  function.blocks[0].insts = {0, 1};
  function.insts.push_back({.op = ir::Op::constant, .type = ir::Type::i32, .block = 0});
  function.insts.push_back({.op = ir::Op::ret, .block = 0});
  Specialisation specialisation;
  specialisation.block = {64, 1, 1};
  const AfterPass spoil = [](const Pass& pass, Compilation& compilation,
                             std::chrono::nanoseconds) -> Expected<void> {
    if (pass.name == "cut_after_barriers") compilation.module.functions[0][0].block = 7;
    return {};
  };
  Compilation compilation(module, specialisation);
  const AfterPass hooks[] = {spoil, verify_ir()};
  const std::string errors = errors_of(run_passes(compilation, Form::checked, Form::cut, hooks));
  CHECK(errors.find("says that it is in another block (after the pass cut_after_barriers)") !=
        std::string::npos);
}

TEST_CASE("passes are timed and the kernel is printed after each") {
  const ptx::Module module = parse_file("reduce");
  const ptx::Function* entry = nullptr;
  for (const ptx::Function& function : module.functions)
    if (function.entry && function.defined) entry = &function;
  REQUIRE(entry != nullptr);
  std::vector<PassTime> times;
  std::vector<std::string> texts(pass_list().size());
  std::vector<AfterPass> hooks = {record_times(times)};
  for (std::size_t i = 0; i < texts.size(); ++i) hooks.push_back(print_after(pass_list()[i].name, texts[i]));
  Specialisation specialisation;
  specialisation.block = {64, 1, 1};
  Compilation compilation(module, *entry, "<ptx>", specialisation);
  CHECK(errors_of(run_passes(compilation, Form::builder, Form::llvm, hooks)).empty());
  for (std::size_t i = 0; i < times.size(); ++i) {
    CAPTURE(times[i].name);
    CHECK(times[i].name == pass_list()[i].name);
    CHECK(times[i].runs == 1);
    CHECK(times[i].time.count() >= 0);
    CHECK(!texts[i].empty());
  }
  CHECK(times.back().name == "keep_logic_from_selects");
}

TEST_CASE("functions in which threads wait for others are translated again as parts of the kernel") {
  auto module = ptx::parse(kRecursive);
  REQUIRE(module);
  REQUIRE(ptx::verify(*module));
  Specialisation specialisation;
  specialisation.block = {64, 1, 1};
  std::vector<PassTime> times;
  const AfterPass hooks[] = {record_times(times)};
  Compilation compilation(*module, *module->find_function("k"), "<ptx>", specialisation);
  CHECK(errors_of(run_passes(compilation, Form::builder, Form::checked, hooks)).empty());
  CHECK(compilation.module.functions.size() == 1);
  CHECK(compilation.module.functions[0].stack_bytes != 0);
  const auto runs_of = [&](std::string_view name) {
    return std::ranges::find(times, name, &PassTime::name)->runs;
  };
  CHECK(runs_of("translate") == 2);
  CHECK(runs_of("choose_call_form") == 2);
  CHECK(runs_of("check_operations") == 1);
}

}  // namespace
}  // namespace quern::cpu::test
