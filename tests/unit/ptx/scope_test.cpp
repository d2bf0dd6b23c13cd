// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "helpers.hpp"

namespace quern::ptx::test {
namespace {

std::uint32_t register_of(const Instruction& instruction, std::size_t operand) {
  return instruction.operands[operand].as<RegisterOperand>()->index;
}

}  // namespace

TEST_CASE("only labels may be named before they are declared") {
  CHECK(contains(first_error("L: brx.idx %r1, T; T: .branchtargets L, L;"),
                 "'T' is used before it is declared"));
  CHECK(contains(first_error("call %rd1, P; P: .callprototype _ ();"), "'P' is used before it is declared"));
  CHECK(accepted("bra L; L: T: .branchtargets L, M; brx.idx %r1, T; M:"));
  CHECK(accepted("P: .callprototype _ (); call %rd1, P;"));
}

TEST_CASE("a register declared again in an inner block is another register, with a name of its own") {
  const Module module =
      parsed(module_text(".func f() { .reg .b32 x; mov.u32 x, 1; { .reg .b32 x; mov.u32 x, 2; } { .reg .b64 "
                         "x; mov.u64 x, 3; } mov.u32 x, 4; ret; }"));
  const Function& f = module.functions[0];
  REQUIRE(f.registers.size() == 3);
  CHECK(register_of(f.body[0], 0) == register_of(f.body[3], 0));
  CHECK(register_of(f.body[0], 0) != register_of(f.body[1], 0));
  CHECK(f.registers[register_of(f.body[2], 0)].type == Type::b64);
  CHECK(f.registers[register_of(f.body[0], 0)].name == "x");
  CHECK(std::set<std::string>{f.registers[0].name, f.registers[1].name, f.registers[2].name}.size() == 3);
}

TEST_CASE("registers of a counted name come into being when they are used, in the order of their numbers") {
  const Module module =
      parsed(module_text(".func f() { .reg .b32 %r<4000000>; mov.u32 %r7, 1; mov.u32 %r3, %r7; ret; }"));
  const Function& f = module.functions[0];
  REQUIRE(f.registers.size() == 2);
  CHECK(f.registers[0].name == "%r3");
  CHECK(f.registers[1].name == "%r7");
  CHECK(register_of(f.body[0], 0) == 1);
}

TEST_CASE("a counted name in an inner block hides the outer one's registers") {
  const Module module = parsed(module_text(
      ".func f() { .reg .b32 t<3>; mov.u32 t1, 1; { .reg .b64 t<3>; mov.u64 t1, 2; } mov.u32 t1, 3; ret; }"));
  const Function& f = module.functions[0];
  CHECK(f.registers[register_of(f.body[0], 0)].type == Type::b32);
  CHECK(f.registers[register_of(f.body[1], 0)].type == Type::b64);
  CHECK(register_of(f.body[0], 0) == register_of(f.body[2], 0));
}

TEST_CASE("a counted name and a single register of it clash, in either order") {
  CHECK_FALSE(parse(module_text(".func f() { .reg .b32 a<3>; .reg .b32 a2; ret; }")).has_value());
  CHECK_FALSE(parse(module_text(".func f() { .reg .b32 a2; .reg .b32 a<3>; ret; }")).has_value());
  CHECK(parse(module_text(".func f() { .reg .b32 a3; .reg .b32 a<3>; ret; }")).has_value());
  CHECK_FALSE(parse(module_text(".func f() { .reg .b32 a, a; ret; }")).has_value());
}

TEST_CASE("labels belong to their block: the same one may stand in two, and a branch finds the innermost") {
  const Module module =
      parsed(module_text(".func f() { { bra L; L: } { bra L; L: } bra L; { bra L; } L: ret; }"));
  const Function& f = module.functions[0];
  REQUIRE(f.labels.size() == 3);
  const auto target = [&](std::size_t i) { return f.body[i].operands[0].as<SymbolOperand>()->symbol.index; };
  CHECK(target(0) == 0);
  CHECK(target(1) == 1);
  CHECK(target(2) == 2);
  CHECK(target(3) == 2);
  CHECK(f.labels[0].position == 1);
  CHECK(f.labels[2].position == 4);
  CHECK(f.labels[1].name != f.labels[0].name);
}

TEST_CASE("no branch reaches into another block") {
  CHECK_FALSE(parse(module_text(".func f() { bra L; { L: } ret; }")).has_value());
  CHECK_FALSE(parse(module_text(".func f() { { L: } { bra L; } ret; }")).has_value());
}

TEST_CASE("the parameters of one call after another are variables of their own") {
  const Module module =
      parsed(module_text(".func g(.param .b32 a) { ret; } .func f() { { .param .b32 param0; st.param.b32 "
                         "[param0], 1; call g, (param0); }"
                         "{ .param .b32 param0; st.param.b32 [param0], 2; call g, (param0); } ret; }"));
  const Function& f = module.functions[1];
  REQUIRE(f.variables.size() == 2);
  CHECK(f.variables[0].name != f.variables[1].name);
  CHECK(f.body[2].operands[0].as<AddressOperand>()->symbol == SymbolRef{SymbolKind::function_variable, 1});
}

TEST_CASE("a local name that hides one of the module is renamed") {
  const Module module = parsed(module_text(
      ".global .b32 g; .func f() { .reg .b64 a; mov.u64 a, g; { .reg .b64 g; mov.u64 g, a; } ret; }"));
  const Function& f = module.functions[0];
  CHECK(f.body[0].operands[1].as<SymbolOperand>()->symbol.kind == SymbolKind::module_variable);
  CHECK(f.registers[1].name != "g");
}

}  // namespace quern::ptx::test
