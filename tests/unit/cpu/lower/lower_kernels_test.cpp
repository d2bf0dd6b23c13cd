// SPDX-License-Identifier: Apache-2.0
// Kernels that nvcc compiled.
#include <doctest/doctest.h>

#include "support.hpp"

using namespace quern;
using cpu::ir::Op;
using test::count;

namespace {

const cpu::ir::Location& place(const cpu::ir::Function& function, const cpu::ir::Inst& inst) {
  REQUIRE(inst.location < function.locations.size());
  return function.locations[inst.location];
}

}  // namespace

TEST_CASE("saxpy's parameters lie at their PTX offsets and its access stands behind the bounds test") {
  const cpu::ir::Module module = test::lowered(test::data("saxpy.ptx"), "saxpy");
  const cpu::ir::Function& f = module.functions.at(0);
  REQUIRE(f.params.size() == 4);
  CHECK(f.params[1].offset == 4);
  CHECK(f.params[2].offset == 8);
  CHECK(f.params[3].offset == 16);
  CHECK(count(f, Op::load) == 2);
  CHECK(count(f, Op::store) == 1);
  CHECK(count(f, Op::ret) == 1);
  CHECK(count(f, Op::phi) == 0);
  const cpu::ir::Inst& fma = test::first(f, Op::ffma);
  CHECK(place(f, fma).file == "saxpy.cu");
  CHECK(place(f, fma).line == 3);
  CHECK(place(f, fma).ptx_line == 45);
  CHECK(f.blocks[fma.block].preds.size() == 1);
}

TEST_CASE("mandelbrot's loop keeps its state in phis and leaves through one of its own") {
  const cpu::ir::Module module = test::lowered(test::data("mandelbrot.ptx"), "mandelbrot");
  const cpu::ir::Function& f = module.functions.at(0);
  // The loop carries five values. The count is used after it, in a phi with the count for the case that the
  // loop is not entered.
  CHECK(count(f, Op::phi) == 7);
  CHECK(count(f, Op::load) == 0);
  CHECK(module.static_shared_bytes == 0);
}

TEST_CASE("the tiles of a matrix product lie one behind the other in shared memory") {
  const cpu::ir::Module module = test::lowered(test::data("matmul.ptx"), "matmul");
  const cpu::ir::Function& f = module.functions.at(0);
  CHECK(module.static_shared_bytes == 2048);
  CHECK(count(f, Op::barrier) == 2);
  std::size_t shared_loads = 0;
  for (const cpu::ir::Inst& inst : f.insts)
    shared_loads += inst.op == Op::load && inst.attr.space == cpu::ir::Space::shared;
  CHECK(shared_loads == 32);
  // The widening is done once for each tile and direction, before the loop.
  CHECK(count(f, Op::zext) == 4);
}

TEST_CASE(
    "a shuffle reduction knows whom its shuffles were inlined into, and its atomic that nobody wants the old "
    "value") {
  const cpu::ir::Module module = test::lowered(test::data("reduce.ptx"), "reduce");
  const cpu::ir::Function& f = module.functions.at(0);
  CHECK(count(f, Op::shuffle) == 5);
  CHECK(count(f, Op::shuffle_valid) == 0);
  const cpu::ir::Inst& atomic = test::first(f, Op::atomic);
  CHECK(atomic.attr.atomic == cpu::ir::AtomicOp::fadd);
  CHECK(atomic.attr.unused_result);
  CHECK(atomic.attr.space == cpu::ir::Space::global);
  const cpu::ir::Location& where = place(f, test::first(f, Op::shuffle));
  CHECK(where.file == "sm_30_intrinsics.hpp");
  CHECK(where.line == 440);
  REQUIRE(where.inlined_at < f.locations.size());
  CHECK(f.locations[where.inlined_at].file == "reduce.cu");
  CHECK(f.locations[where.inlined_at].line == 4);
}

TEST_CASE("the text of a kernel shows types, constants in place, and the author's lines") {
  const std::string text = cpu::ir::print(test::lowered(test::data("saxpy.ptx"), "saxpy"));
  CHECK(text.find("kernel saxpy(4 bytes @0, 4 bytes @4, 8 bytes @8, 8 bytes @16)") != std::string::npos);
  CHECK(text.find(": i32 = special ctaid.x") != std::string::npos);
  CHECK(text.find(": f32 = param @4") != std::string::npos);
  CHECK(text.find(": i1 = icmp.sge ") != std::string::npos);
  CHECK(text.find(", 4   ") != std::string::npos);
  CHECK(text.find("; saxpy.cu:3") != std::string::npos);
}
