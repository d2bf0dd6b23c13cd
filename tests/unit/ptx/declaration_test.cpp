// SPDX-License-Identifier: Apache-2.0
#include "helpers.hpp"

namespace quern::ptx::test {
namespace {

Variable variable(const std::string& declaration) {
  const Module module = parsed(module_text(declaration));
  return module.variables.back();
}

bool fails(const std::string& text) { return !parse(module_text(text), "test.ptx").has_value(); }

}  // namespace

TEST_CASE("a module has its version, target and address size") {
  const Module module = parsed(".version 8.7\n.target sm_90a, debug\n.address_size 64\n");
  CHECK(module.version_major == 8);
  CHECK(module.version_minor == 7);
  CHECK(module.sm == 90);
  CHECK(module.sm_suffix == 'a');
  CHECK(module.target_options == std::vector<std::string>{"debug"});
}

TEST_CASE("a variable has its space, type, alignment, extents and linkage") {
  const Variable a = variable(".visible .global .align 16 .b8 a[4][8];");
  CHECK(a.space == Space::global);
  CHECK(a.linkage == Linkage::visible);
  CHECK(a.type == Type::b8);
  CHECK(a.align == 16);
  CHECK(a.extents == std::vector<std::uint64_t>{4, 8});
  CHECK(a.size_bytes() == 32);
  CHECK(variable(".const .f64 c;").align == 8);
  CHECK(variable(".global .v4 .f32 v;").size_bytes() == 16);
  CHECK(variable(".global .v4 .f32 v;").align == 16);
  CHECK(variable(".extern .shared .align 16 .b8 s[];").element_count() == 0);
  CHECK(variable(".global .attribute(.managed) .align 4 .u32 m;").attributes == ".managed");
}

TEST_CASE("an initialiser gives each element's bits") {
  CHECK(variable(".global .u8 a = -1;").initializer[0].bits == 0xff);
  CHECK(variable(".global .f32 a = 1.5;").initializer[0].bits == 0x3fc00000);
  CHECK(variable(".global .f64 a = 0f3F800000;").initializer[0].bits == 0x3ff0000000000000);
  CHECK(variable(".global .b32 a[] = {1, 2, 3};").extents[0] == 3);
  const Variable rows = variable(".global .b32 a[2][3] = {{1}, {4, 5}};");
  REQUIRE(rows.initializer.size() == 5);
  CHECK(rows.initializer[0].bits == 1);
  CHECK(rows.initializer[1].bits == 0);
  CHECK(rows.initializer[3].bits == 4);
}

TEST_CASE("an initialiser may be the address of a symbol, generic, with an addend, or one byte of it") {
  const Variable a = variable(".global .u32 b; .global .u64 a[3] = {b, generic(b)+8, b+4};");
  CHECK(a.initializer[0].symbol == "b");
  CHECK_FALSE(a.initializer[0].generic);
  CHECK(a.initializer[1].generic);
  CHECK(a.initializer[1].addend == 8);
  CHECK(a.initializer[2].addend == 4);
  CHECK(variable(".global .u32 b; .global .u8 a[2] = {0xff(b), 0xff00(b)};").initializer[1].mask == 0xff00);
  CHECK(variable(".global .u64 self = self;").initializer[0].symbol == "self");
}

TEST_CASE("an extern declaration and the definition are one variable") {
  const Module module = parsed(module_text(".extern .global .b32 a; .visible .global .b32 a = 3; .extern .global .b32 a;"));
  REQUIRE(module.variables.size() == 1);
  CHECK(module.variables[0].linkage == Linkage::visible);
  CHECK(module.variables[0].initializer[0].bits == 3);
}

TEST_CASE("a declaration and the body are one function, which can be called before its body") {
  const Module module = parsed(module_text(".func g(); .func f() { call g; ret; } .func g() { call f; ret; }"));
  REQUIRE(module.functions.size() == 2);
  CHECK(module.functions[0].name == "g");
  CHECK(module.functions[0].defined);
  CHECK(module.functions[1].body[0].operands[1].as<SymbolOperand>()->symbol == SymbolRef{SymbolKind::function, 0});
}

TEST_CASE("a kernel has its parameters and performance directives") {
  const Module module = parsed(module_text(
      ".visible .entry k(.param .u64 .ptr .global .align 16 a, .param .align 8 .b8 b[24]) .maxntid 16,8 .minnctapersm 2 .maxnreg 40 { ret; }"));
  const Function& k = module.functions[0];
  CHECK(k.entry);
  CHECK(k.linkage == Linkage::visible);
  REQUIRE(k.parameters.size() == 2);
  CHECK(k.parameters[0].pointer_space == Space::global);
  CHECK(k.parameters[0].pointer_align == 16);
  CHECK(k.parameters[1].size_bytes() == 24);
  CHECK(k.performance.maxntid == std::array<std::uint32_t, 3>{16, 8, 1});
  CHECK(k.performance.minnctapersm == 2);
  CHECK(k.performance.maxnreg == 40);
}

TEST_CASE("parameters in registers are registers of the function") {
  const Module module = parsed(module_text(".func (.reg .f32 r) f(.reg .f32 a, .param .b32 b) { mov.f32 r, a; ret; }"));
  const Function& f = module.functions[0];
  CHECK(f.registers[0].name == "r");
  CHECK(f.registers[1].name == "a");
  CHECK(f.body[0].operands[0].as<RegisterOperand>()->index == 0);
  CHECK(f.body[0].operands[1].as<RegisterOperand>()->index == 1);
}

TEST_CASE("line information, files and sections are kept") {
  const Module module = parsed(module_text(".file 1 \"a.cu\", 12, 34\n.func f() { .loc 1 7 3\n trap; .loc 1 2 1, function_name $s0+4, inlined_at 1 7 3\n ret; }\n"
                                           ".section .debug_str { $s0: .b8 65, 0 }"));
  CHECK(module.files[0].path == "a.cu");
  CHECK(module.files[0].rest == "12, 34");
  const Function& f = module.functions[0];
  REQUIRE(f.locations.size() == 2);
  CHECK(f.locations[f.body[0].location].line == 7);
  CHECK(f.locations[f.body[1].location].function_name == "$s0+4");
  CHECK(f.locations[f.body[1].location].inlined_at == f.body[0].location);
  CHECK(contains(module.sections[0], "$s0: .b8 65, 0"));
}

TEST_CASE("declarations that make no sense are refused") {
  CHECK(fails(".global .b32 a[2] = {1, 2, 3};"));
  CHECK(fails(".global .b32 a[2][2] = {{1, 2, 3}};"));
  CHECK(fails(".global .f32 a = 1;"));
  CHECK(fails(".shared .b32 s = 1;"));
  CHECK(fails(".global .align 3 .b32 a;"));
  CHECK(fails(".global .pred a;"));
  CHECK(fails(".global .b32 a[];"));
  CHECK(fails(".global .b32 a; .global .b32 a;"));
  CHECK(fails(".reg .b32 r;"));
  CHECK(fails(".func f() { ret; } .func f() { ret; }"));
  CHECK(fails(".func f(.param .b32 a); .func f(.param .b64 a) { ret; }"));
  CHECK(fails(".global .b32 f; .func f() { ret; }"));
  CHECK(fails(".entry k(.reg .b32 a) { ret; }"));
}

}  // namespace quern::ptx::test
