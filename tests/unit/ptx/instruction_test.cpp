// SPDX-License-Identifier: Apache-2.0
#include "helpers.hpp"
#include "ptx/selector.hpp"

namespace quern::ptx::test {

TEST_CASE("opcode, modifiers and types of an instruction are told apart") {
  const Instruction i = instruction("cvt.rn.ftz.f32.f64 %f1, %fd2;");
  CHECK(i.opcode == Opcode::cvt);
  CHECK(i.has(Modifier::rn));
  CHECK(i.has(Modifier::ftz));
  CHECK_FALSE(i.has(Modifier::sat));
  CHECK(i.types == std::vector<Type>{Type::f32, Type::f64});
  CHECK(i.type(2) == Type::none);
  CHECK(i.position.line == 5);
  CHECK(i.position.column == 1);
}

TEST_CASE("space and vector length come from the modifiers") {
  CHECK(instruction("ld.shared::cta.v4.f32 {%f1, %f2, %f3, %f4}, [%r1];").space() == Space::shared);
  CHECK(instruction("ld.shared::cta.v4.f32 {%f1, %f2, %f3, %f4}, [%r1];").vector_count() == 4);
  CHECK(instruction("ld.f32 %f1, [%rd1];").space() == Space::none);
  CHECK(instruction("ld.f32 %f1, [%rd1];").vector_count() == 1);
  CHECK(instruction("ld.param.u64 %rd1, [p];").space() == Space::param);
}

TEST_CASE("guards are read with their negation") {
  CHECK_FALSE(instruction("mov.u32 %r1, 0;").guard);
  CHECK_FALSE(instruction("@%p1 mov.u32 %r1, 0;").guard->negated);
  CHECK(instruction("@!%p1 mov.u32 %r1, 0;").guard->negated);
}

TEST_CASE("addresses have a register, a symbol or a number, and an offset") {
  const auto address = [](const char* text) { return *instruction(text).operands[1].as<AddressOperand>(); };
  CHECK(address("ld.global.u32 %r1, [%rd1];").register_index != kNoIndex);
  CHECK(address("ld.global.u32 %r1, [%rd1+8];").offset == 8);
  CHECK(address("ld.global.u32 %r1, [%rd1+-8];").offset == -8);
  CHECK(address("ld.global.u32 %r1, [%rd1+2*4];").offset == 8);
  CHECK(address("ld.param.u32 %r1, [p+4];").symbol == SymbolRef{SymbolKind::parameter, 0});
  CHECK(address("ld.param.u32 %r1, [p+4];").offset == 4);
  CHECK(address("ld.local.u32 %r1, [16];").register_index == kNoIndex);
  CHECK(address("ld.local.u32 %r1, [16];").offset == 16);
}

TEST_CASE("the address of an array's element counts in elements") {
  const Module module =
      parsed(module_text(".global .v2 .b32 t[4]; .func f() { .reg .b64 a; .reg .b32 b; mov.u64 a, t[3]; "
                         "ld.global.u32 b, t[2]; ret; }"));
  CHECK(module.functions[0].body[0].operands[1].as<SymbolOperand>()->offset == 24);
  CHECK(module.functions[0].body[1].operands[1].as<AddressOperand>()->offset == 16);
}

TEST_CASE("constants keep how they are written") {
  const auto constant = [](const char* text) { return instruction(text).operands[1]; };
  CHECK(constant("mov.u32 %r1, -1;").as<IntegerOperand>()->bits == ~std::uint64_t{0});
  CHECK_FALSE(constant("mov.u32 %r1, -1;").as<IntegerOperand>()->is_unsigned);
  CHECK(constant("mov.u32 %r1, 1U;").as<IntegerOperand>()->is_unsigned);
  CHECK(constant("mov.f32 %f1, 0f3F800000;").as<FloatOperand>()->single);
  CHECK(constant("mov.f64 %fd1, -2.5;").as<FloatOperand>()->bits == 0xc004000000000000u);
  CHECK(constant("mov.u32 %r1, WARP_SZ;").as<SpecialOperand>()->which == SpecialRegister::WARP_SZ);
  CHECK(constant("mov.u32 %r1, WARP_SZ-1;").as<IntegerOperand>()->bits == 31);
}

TEST_CASE("special registers are read with their component") {
  const auto special = [](const char* text) {
    return instruction(text).operands[1].as<SpecialOperand>()->which;
  };
  CHECK(special("mov.u32 %r1, %tid.x;") == SpecialRegister::tid_x);
  CHECK(special("mov.u32 %r1, %nctaid.z;") == SpecialRegister::nctaid_z);
  CHECK(special("mov.u32 %r1, %laneid;") == SpecialRegister::laneid);
  CHECK(special("mov.u64 %rd1, %clock64;") == SpecialRegister::clock64);
  CHECK(special("mov.u32 %r1, %envreg31;") == SpecialRegister::envreg31);
}

TEST_CASE("vectors, pairs, sinks and negated predicates are operands") {
  CHECK(
      instruction("mov.b64 {%r1, _}, %rd1;").operands[0].as<VectorOperand>()->elements[1].as<SinkOperand>() !=
      nullptr);
  const Instruction pair = instruction("setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;");
  CHECK(pair.operands[0].as<PairOperand>()->elements.size() == 2);
  CHECK(pair.operands[3].as<RegisterOperand>()->negated);
  CHECK(instruction("mov.u32 %r1, 1|2;").operands[1].as<IntegerOperand>()->bits == 3);
}

TEST_CASE("a register declared as a vector is used by component or whole") {
  const Module module =
      parsed(module_text(".func f() { .reg .v4 .f32 v; .reg .f32 a; .reg .b64 p; ld.global.v4.f32 v, [p]; "
                         "mov.f32 a, v.z; mov.f32 a, v.g; ret; }"));
  const Function& f = module.functions[0];
  CHECK(f.registers[f.body[0].operands[0].as<RegisterOperand>()->index].vector == 4);
  CHECK(f.body[1].operands[1].as<RegisterOperand>()->component == 2);
  CHECK(f.body[2].operands[1].as<RegisterOperand>()->component == 1);
}

TEST_CASE("video instructions select bytes and halves and negate") {
  const Instruction i = instruction("vmad.s32.s32.s32 %r1, %r2.b3, -%r3.h1, %r4;");
  CHECK(i.operands[1].as<RegisterOperand>()->component == 7);
  CHECK(i.operands[2].as<RegisterOperand>()->component == 9);
  CHECK(i.operands[2].as<RegisterOperand>()->negated);
}

TEST_CASE("SIMD video instructions select lanes of both operands, and lanes to write") {
  const auto component = [](const Instruction& i, std::size_t operand) {
    return i.operands[operand].as<RegisterOperand>()->component;
  };
  const Instruction halves = instruction("vadd2.s32.s32.s32 %r1.h1, %r2.h03, %r3, %r4;");
  CHECK(lane_mask(component(halves, 0), 2) == 2u);
  CHECK(*lane_sources(component(halves, 1), 2, 0) == std::array<std::uint8_t, 4>{3, 0});
  CHECK(*lane_sources(component(halves, 2), 2, 2) == std::array<std::uint8_t, 4>{2, 3});
  const Instruction bytes = instruction("vset4.u32.s32.lt.add %r1.b310, %r2.b7052, %r3.b3210, %r4;");
  CHECK(lane_mask(component(bytes, 0), 4) == 0b1011u);
  CHECK(*lane_sources(component(bytes, 1), 4, 0) == std::array<std::uint8_t, 4>{2, 5, 0, 7});
  CHECK(lane_mask(component(instruction("vadd4.u32.u32.u32 %r1, %r2, %r3, %r4;"), 0), 4) == 15u);
}

TEST_CASE("every form of call has returns, callee, arguments and the prototype where there is one") {
  const Module module =
      parsed(module_text(".func none() { ret; } .func (.param .b32 r) one(.param .b32 a) { ret; } .func f() "
                         "{ .reg .b64 p; .param .b32 x; .param .b32 y;\n"
                         "call none; call.uni none, (); call (x), one, (y);\n"
                         "pr: .callprototype (.param .b32 _) _ (.param .b32 _) ;\n call (x), p, (y), pr;\n "
                         "tb: .calltargets none; call p, (), tb; ret; }"));
  const std::vector<Instruction>& body = module.functions[2].body;
  const auto count = [&](std::size_t i, std::size_t operand) {
    return body[i].operands[operand].as<VectorOperand>()->elements.size();
  };
  CHECK(body[0].operands.size() == 3);
  CHECK(count(0, 0) == 0);
  CHECK(count(0, 2) == 0);
  CHECK(count(2, 0) == 1);
  CHECK(count(2, 2) == 1);
  CHECK(body[3].operands[1].as<RegisterOperand>() != nullptr);
  CHECK(body[3].operands[3].as<SymbolOperand>()->symbol.kind == SymbolKind::call_prototype);
  CHECK(body[4].operands[3].as<SymbolOperand>()->symbol.kind == SymbolKind::branch_table);
}

TEST_CASE("a table of labels may stand before its labels") {
  const Module module = parsed(kernel_text("ts: .branchtargets A, B, A; brx.idx %r1, ts; A: trap; B:"));
  const Function& k = module.functions[0];
  REQUIRE(k.branch_tables[0].targets.size() == 3);
  CHECK(k.branch_tables[0].targets[1].index == 1);
  CHECK(k.labels[1].position == 2);
}

TEST_CASE("texture operands have several parts in the brackets") {
  const Module module =
      parsed(module_text(".global .texref tex; .func f() { .reg .f32 a, b, c, d, x, y; tex.2d.v4.f32.f32 {a, "
                         "b, c, d}, [tex, {x, y}]; ret; }"));
  const auto* bracket = module.functions[0].body[0].operands[1].as<BracketOperand>();
  REQUIRE(bracket != nullptr);
  CHECK(bracket->elements[0].as<AddressOperand>()->symbol == SymbolRef{SymbolKind::module_variable, 0});
  CHECK(bracket->elements[1].as<VectorOperand>()->elements.size() == 2);
}

}  // namespace quern::ptx::test
