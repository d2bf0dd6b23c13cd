// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "ir_interpreter.hpp"
#include "support.hpp"

using namespace quern;
using cpu::ir::Op;
using cpu::ir::Space;

TEST_CASE("kernel parameters are aligned as declared and read at constant offsets") {
  const std::string text = R"(.version 8.0
.target sm_80
.address_size 64
.entry k(.param .u8 a, .param .u16 b, .param .align 16 .b8 c[20], .param .f64 d, .param .u64 out)
{
  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f64 %fd<2>;
  ld.param.u64 %rd1, [out];
  ld.param.v2.u32 {%r1, %r2}, [c+8];
  ld.param.u8 %r3, [a];
  ld.param.f64 %fd1, [d];
  st.global.v2.u32 [%rd1], {%r1, %r2};
  st.global.u32 [%rd1+8], %r3;
  st.global.f64 [%rd1+16], %fd1;
})";
  const auto module = test::lowered(text);
  std::vector<std::uint32_t> offsets;
  for (const auto& parameter : module.functions[0].params) offsets.push_back(parameter.offset);
  CHECK(offsets == std::vector<std::uint32_t>{0, 2, 16, 40, 48});
  test::IrInterpreter machine(module);
  for (std::size_t i = 0; i < 48; ++i) machine.params[i] = static_cast<std::uint8_t>(i + 1);
  machine.run();
  CHECK(machine.word(0) == 0x1c1b1a19);
  CHECK(machine.word(1) == 0x201f1e1d);
  CHECK(machine.word(2) == 1);
  CHECK(machine.double_word(2) == 0x302f2e2d2c2b2a29ull);
}

TEST_CASE("values of 128 bits are moved whole and in parts") {
  const std::string text = R"(.version 8.3
.target sm_80
.address_size 64
.entry k(.param .u64 out, .param .align 16 .b8 given[16])
{
  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .b128 %q<4>; .reg .pred %p<2>;
  .local .align 16 .b8 own[16];
  ld.param.u64 %rd1, [out];
  ld.param.b128 %q0, [given];
  mov.b128 {%rd2, %rd3}, %q0;
  add.u64 %rd2, %rd2, 1;
  mov.b128 %q1, {%rd3, %rd2};
  st.local.b128 [own], %q1;
  ld.local.b128 %q2, [own];
  mov.b128 {%r1, _, %r2, %r3}, %q2;
  mov.b128 %q3, {%r3, %r2, %r1, 7};
  setp.eq.u64 %p1, %rd2, 0;
  @%p1 mov.b128 %q3, %q0;
  st.global.b128 [%rd1], %q2;
  st.global.b128 [%rd1+16], %q3;
  st.global.b128 [%rd1+32], -2;
})";
  const auto module = test::lowered(text);
  test::IrInterpreter machine(module);
  for (std::size_t i = 0; i < 16; ++i) machine.params[16 + i] = static_cast<std::uint8_t>(i);
  machine.run();
  CHECK(machine.double_word(0) == 0x0f0e0d0c0b0a0908u);
  CHECK(machine.double_word(1) == 0x0706050403020101u);
  CHECK(machine.word(4) == 0x07060504u);
  CHECK(machine.word(5) == 0x03020101u);
  CHECK(machine.word(6) == 0x0b0a0908u);
  CHECK(machine.word(7) == 7u);
  CHECK(machine.double_word(4) == ~std::uint64_t{1});
  CHECK(machine.double_word(5) == ~std::uint64_t{0});
}

TEST_CASE("a kernel parameter is read at an address that a thread computes") {
  const std::string text = R"(.version 8.0
.target sm_80
.address_size 64
.entry k(.param .u64 out, .param .align 4 .b8 table[16])
{
  .reg .b32 %r<8>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.b64 %rd2, table;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.param.u32 %r2, [%rd4+4];
  st.global.u32 [%rd1], %r2;
})";
  const auto module = test::lowered(text);
  test::IrInterpreter machine(module);
  const std::uint32_t table[] = {10, 20, 30, 40};
  std::memcpy(machine.params.data() + 8, table, sizeof table);
  machine.tid_x = 2;
  machine.run();
  CHECK(machine.word(0) == 40);
  CHECK(test::first(module.functions[0], Op::load).attr.invariant);
}

TEST_CASE("shared variables of the kernel, of the module and of callees are laid out by their alignment") {
  const auto module = test::lowered(test::kernel_text(R"(
    .shared .align 4 .b8 mine[6];
    mov.u32 %r1, mine;
    mov.u32 %r2, wide;
    mov.u64 %rd2, dynamic;
    call f, ();
    st.global.v2.u32 [%rd1], {%r1, %r2};
    st.global.u64 [%rd1+8], %rd2;)",
                                                      R"(
.shared .align 2 .b8 narrow[3];
.shared .align 16 .b8 wide[16];
.shared .align 4 .b8 not_used[400];
.extern .shared .align 32 .b8 dynamic[];
.func f()
{
  .shared .align 8 .b8 theirs[8];
  st.shared.u8 [narrow+1], 1;
  st.shared.u64 [theirs], 2;
  ret;
})"));
  test::IrInterpreter machine(module);
  machine.run();
  // narrow 0..2, wide 16..31, mine 32..37, theirs 40..47, dynamic at the next multiple of 32
  CHECK(machine.word(0) == 32);
  CHECK(machine.word(1) == 16);
  CHECK(machine.double_word(1) == 64);
  CHECK(module.static_shared_bytes == 64);
  CHECK(machine.shared[1] == 1);
  CHECK(machine.shared[40] == 2);
  const auto dynamic = std::find_if(module.symbols.begin(), module.symbols.end(),
                                    [](const auto& s) { return s.name == "dynamic"; });
  REQUIRE(dynamic != module.symbols.end());
  CHECK(dynamic->size == 0);
  CHECK(dynamic->shared_offset == 64);
}

TEST_CASE("memory that a kernel writes is read anew, read-only memory need not be") {
  const auto module = test::lowered(test::kernel_text(R"(
    ld.global.u32 %r1, [%rd1];
    ldu.global.u32 %r2, [%rd1+4];
    ld.u32 %r3, [%rd1];
    st.global.u32 [%rd1], %r2;)"));
  std::vector<bool> invariant;
  for (const cpu::ir::Inst& inst : module.functions[0].insts)
    if (inst.op == Op::load) invariant.push_back(inst.attr.invariant);
  CHECK(invariant == std::vector<bool>{false, true, false});
}

TEST_CASE("what alloca gives lies apart, and stackrestore gives it back") {
  const auto module = test::lowered(test::kernel_text(R"(
    stacksave.u64 %rd5;
    alloca.u64 %rd2, 8;
    alloca.u64 %rd3, 8;
    st.local.u32 [%rd2], 11;
    st.local.u32 [%rd3], 22;
    ld.local.u32 %r1, [%rd2];
    stackrestore.u64 %rd5;
    alloca.u64 %rd4, 8;
    sub.s64 %rd6, %rd3, %rd2;
    sub.s64 %rd7, %rd4, %rd2;
    st.global.u32 [%rd1], %r1;
    st.global.u64 [%rd1+8], %rd6;
    st.global.u64 [%rd1+16], %rd7;)"));
  test::IrInterpreter machine(module);
  machine.run();
  CHECK(machine.word(0) == 11);
  CHECK(machine.double_word(1) == 8);
  CHECK(machine.double_word(2) == 0);
}

TEST_CASE("accesses keep their space, order, scope and width") {
  const auto module = test::lowered(test::kernel_text(R"(
    ld.volatile.global.u32 %r1, [%rd1+4];
    st.release.gpu.global.u32 [%rd1], %r1;
    ld.acquire.sys.u32 %r2, [%rd1];
    ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16];
    st.global.v4.f32 [%rd1+32], {%f4, %f3, %f2, %f1};
    st.global.u32 [%rd1+48], %r2;
    fence.acq_rel.cta;
    membar.gl;)"));
  const cpu::ir::Function& f = module.functions[0];
  std::vector<const cpu::ir::Inst*> loads, stores, fences;
  for (const cpu::ir::Inst& inst : f.insts) {
    if (inst.op == Op::load) loads.push_back(&inst);
    if (inst.op == Op::store) stores.push_back(&inst);
    if (inst.op == Op::fence) fences.push_back(&inst);
  }
  REQUIRE(loads.size() == 3);
  CHECK(loads[0]->attr.is_volatile);
  CHECK(loads[0]->attr.space == Space::global);
  CHECK_FALSE(loads[0]->attr.invariant);
  CHECK(loads[0]->imm == 4);
  CHECK(loads[1]->attr.space == Space::generic);
  CHECK(loads[1]->attr.semantics == cpu::ir::Semantics::acquire);
  CHECK(loads[1]->attr.scope == cpu::ir::Scope::sys);
  CHECK(loads[2]->attr.count == 4);
  CHECK(loads[2]->attr.alignment == 16);
  CHECK(loads[2]->attr.invariant);
  CHECK(stores[0]->attr.semantics == cpu::ir::Semantics::release);
  CHECK(stores[1]->args.size() == 5);
  REQUIRE(fences.size() == 2);
  CHECK(fences[0]->attr.scope == cpu::ir::Scope::cta);
  CHECK(fences[1]->attr.semantics == cpu::ir::Semantics::sc);
  CHECK(fences[1]->attr.scope == cpu::ir::Scope::gpu);
}

TEST_CASE(
    "an asynchronous store to global memory is a store that releases, and is carried out where it says "
    ".mmio") {
  std::string text = test::kernel_text(R"(
    st.async.release.gpu.global.u32 [%rd1+4], %r1;
    st.async.mmio.release.sys.u64 [%rd1], %rd1;)");
  const std::string old = ".version 8.3\n.target sm_90";
  REQUIRE(text.starts_with(old));
  const auto module = test::lowered(text.replace(0, old.size(), ".version 8.7\n.target sm_100"));
  std::vector<const cpu::ir::Inst*> stores;
  for (const cpu::ir::Inst& inst : module.functions[0].insts)
    if (inst.op == Op::store) stores.push_back(&inst);
  REQUIRE(stores.size() == 2);
  for (const cpu::ir::Inst* store : stores) CHECK(store->attr.semantics == cpu::ir::Semantics::release);
  CHECK(stores[0]->attr.scope == cpu::ir::Scope::gpu);
  CHECK(stores[0]->attr.space == Space::global);
  CHECK(stores[0]->attr.alignment == 4);
  CHECK(stores[0]->imm == 4);
  CHECK_FALSE(stores[0]->attr.is_volatile);
  CHECK(stores[1]->attr.scope == cpu::ir::Scope::sys);
  CHECK(stores[1]->attr.space == Space::generic);
  CHECK(stores[1]->attr.alignment == 8);
  CHECK(stores[1]->attr.is_volatile);
}

TEST_CASE("global and constant memory have their generic addresses, shared and local memory do not") {
  const auto module = test::lowered(test::kernel_text(R"(
    .local .align 8 .b8 mine[8];
    .shared .align 8 .b8 ours[8];
    mov.u64 %rd2, mine;
    cvta.local.u64 %rd3, %rd2;
    cvta.to.local.u64 %rd4, %rd3;
    st.local.u32 [%rd4], 1;
    cvta.shared.u64 %rd5, ours;
    cvta.to.global.u64 %rd6, %rd1;
    cvta.const.u64 %rd7, table;
    st.u64 [%rd5], %rd7;
    st.global.u64 [%rd6], %rd3;
    isspacep.shared %p1, %rd5;
    @%p1 st.global.u32 [%rd6+8], 1;)",
                                                      ".const .align 4 .b8 table[8];"));
  const cpu::ir::Function& f = module.functions[0];
  CHECK(test::count(f, Op::to_generic) == 2);
  CHECK(test::count(f, Op::from_generic) == 0);
  CHECK(test::first(f, Op::is_space).attr.space == Space::shared);
  REQUIRE(test::first(f, Op::symbol).imm < module.symbols.size());
  CHECK(module.symbols[test::first(f, Op::symbol).imm].name == "table");
}

TEST_CASE("atomics know their operation by type, and red wants no result") {
  const auto module = test::lowered(test::kernel_text(R"(
    atom.global.max.s32 %r1, [%rd1], 5;
    st.global.u32 [%rd1], %r1;
    red.shared.add.f32 [%rd1+8], 0f3f800000;
    atom.cas.acquire.cta.b64 %rd2, [%rd1], 1, 2;
    st.global.u64 [%rd1], %rd2;)"));
  std::vector<const cpu::ir::Inst*> atomics;
  for (const cpu::ir::Inst& inst : module.functions[0].insts) {
    if (inst.op == Op::atomic) atomics.push_back(&inst);
  }
  REQUIRE(atomics.size() == 3);
  CHECK(atomics[0]->attr.atomic == cpu::ir::AtomicOp::smax);
  CHECK_FALSE(atomics[0]->attr.unused_result);
  CHECK(atomics[0]->attr.semantics == cpu::ir::Semantics::relaxed);
  CHECK(atomics[0]->attr.scope == cpu::ir::Scope::gpu);
  CHECK(atomics[1]->attr.atomic == cpu::ir::AtomicOp::fadd);
  CHECK(atomics[1]->attr.unused_result);
  CHECK(atomics[1]->imm == 8);
  CHECK(atomics[2]->args.size() == 3);
  CHECK(atomics[2]->attr.semantics == cpu::ir::Semantics::acquire);
  CHECK(atomics[2]->attr.space == Space::generic);
}

TEST_CASE("a breakpoint without a debugger is a trap") {
  const auto module = test::lowered(test::kernel_text("brkpt;"));
  CHECK(test::count(module.functions[0], cpu::ir::Op::host_call) == 1);
}

TEST_CASE("hints to caches and profilers do nothing") {
  const auto module = test::lowered(test::kernel_text(R"(
    mov.b32 %r1, 7;
    pmevent 3; pmevent.mask 5;
    prefetch.global.L1 [%rd1]; prefetchu.L1 [%rd1];
    applypriority.global.L2::evict_normal [%rd1], 128; discard.global.L2 [%rd1], 128;
    createpolicy.fractional.L2::evict_last.b64 %rd2, 1.0;
    st.global.L2::cache_hint.u32 [%rd1], %r1, %rd2;)"));
  CHECK(test::count(module.functions[0], cpu::ir::Op::store) == 1);
  CHECK(test::count(module.functions[0], cpu::ir::Op::host_call) == 0);
  test::IrInterpreter machine(module);
  machine.run();
  CHECK(machine.word(0) == 7);
}

TEST_CASE(
    "local memory is interleaved if all accesses are of one size and its addresses stay in the kernel") {
  const auto interleaved = [](const std::string& body) {
    const std::string begin = ".local .align 16 .b8 own[64];\nmov.u64 %rd2, own;\nmov.u32 %r1, %laneid;\n";
    return test::lowered(test::kernel_text(begin + body)).functions[0].interleaved_bytes;
  };
  const std::string kept = "st.global.u32 [%rd1], %r2;\n";
  CHECK(interleaved("st.local.u32 [%rd2+4], %r1;\nld.local.u32 %r2, [%rd2];\n" + kept) == 4);
  CHECK(interleaved("st.local.v2.u32 [%rd2+8], {%r1, %r1};\nld.local.f32 %f2, [%rd2];\n") == 4);
  CHECK(interleaved("st.local.u64 [%rd2+8], %rd1;\nld.local.f64 %fd2, [%rd2];\n") == 8);
  CHECK(interleaved("st.local.u32 [%rd2], %r1;\nst.local.u64 [%rd2+8], %rd1;\n") == 0);
  CHECK(interleaved("st.local.u32 [%rd2], %r1;\nld.local.u8 %r2, [%rd2];\n" + kept) == 0);
  CHECK(interleaved("st.local.u32 [%rd2], %r1;\nld.volatile.local.u32 %r2, [%rd2];\n" + kept) == 0);
  CHECK(interleaved("st.local.u32 [%rd2], %r1;\ncvta.local.u64 %rd3, %rd2;\nst.global.u64 [%rd1], %rd3;\n") ==
        0);
}
