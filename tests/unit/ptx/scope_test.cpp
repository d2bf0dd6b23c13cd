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

TEST_CASE("a .global or .const variable of a body is one of the module, known in its scope only") {
  const Module module = parsed(module_text(
      ".global .u32 g = 1; .func f() { .reg .u64 a; mov.u64 a, g; { .global .u32 g = 2; .const .u64 "
      "p[2] = {g, p}; mov.u64 a, g; { .shared .u64 g; mov.u64 a, g; } } mov.u64 a, g; ret; } .func h() "
      "{ .global .u32 g, g__1; .reg .u64 a; mov.u64 a, g; ret; } .visible .global .u32 g__2;"));
  const auto variable_of = [&](std::size_t function, std::size_t instruction) -> const Variable& {
    const SymbolRef symbol =
        module.functions[function].body[instruction].operands[1].as<SymbolOperand>()->symbol;
    return symbol.kind == SymbolKind::module_variable ? module.variables[symbol.index]
                                                      : module.functions[function].variables[symbol.index];
  };
  REQUIRE(module.variables.size() == 6);
  CHECK(variable_of(0, 0).name == "g");
  CHECK(variable_of(0, 0).initializer[0].bits == 1);
  CHECK(variable_of(0, 1).initializer[0].bits == 2);
  CHECK(variable_of(0, 2).space == Space::shared);
  CHECK(variable_of(0, 3).name == "g");
  CHECK(&variable_of(1, 0) != &variable_of(0, 0));
  CHECK(variable_of(1, 0).initializer.empty());
  // A name in an initialiser refers to the visible variable.
  const std::vector<Initializer>& pointers = module.variables[2].initializer;
  CHECK(pointers[0].symbol == variable_of(0, 1).name);
  CHECK(pointers[1].symbol == module.variables[2].name);
  std::set<std::string> names;
  for (const Variable& variable : module.variables) names.insert(variable.name);
  CHECK(names.size() == 6);
  CHECK(names.contains("g__2"));
  CHECK(module.variables[5].name == "g__2");
}

TEST_CASE("a .global variable of a body is not known before it, behind its scope or in other functions") {
  CHECK_FALSE(parse(module_text(".func f() { .reg .u32 a; ld.global.u32 a, [g]; .global .u32 g; ret; }"))
                  .has_value());
  CHECK_FALSE(parse(module_text(".func f() { .reg .u32 a; { .global .u32 g; } ld.global.u32 a, [g]; ret; }"))
                  .has_value());
  CHECK_FALSE(parse(module_text(".func f() { .global .u32 g; ret; } .global .u64 p = g;")).has_value());
  CHECK_FALSE(parse(module_text(".func f() { .global .u32 g, g; ret; }")).has_value());
  CHECK_FALSE(parse(module_text(".func f() { .global .u32 g[]; ret; }")).has_value());
  CHECK(
      parse(module_text(".func f() { .global .u32 g[] = {1, 2}; .global .attribute(.managed) .u32 m; ret; }"))
          .has_value());
}

TEST_CASE("a local name that hides one of the module is renamed") {
  const Module module = parsed(module_text(
      ".global .b32 g; .func f() { .reg .b64 a; mov.u64 a, g; { .reg .b64 g; mov.u64 g, a; } ret; }"));
  const Function& f = module.functions[0];
  CHECK(f.body[0].operands[1].as<SymbolOperand>()->symbol.kind == SymbolKind::module_variable);
  CHECK(f.registers[1].name != "g");
}

}  // namespace quern::ptx::test
