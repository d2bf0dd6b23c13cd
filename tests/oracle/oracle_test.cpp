// SPDX-License-Identifier: Apache-2.0
// Compares the oracle with plain host loops, on PTX that NVRTC's compiler generated from the samples (data/,
// `nvcc -ptx -arch=compute_89`), and on single instructions whose results the PTX ISA gives.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "generate.hpp"
#include "machine.hpp"

using namespace quern::oracle;

namespace {

std::string data(const std::string& name) {
  std::ifstream in(std::string(QUERN_ORACLE_DATA) + "/" + name);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Parameters {
  std::vector<std::byte> bytes;
  template <class T>
  Parameters& add(T value) {
    bytes.resize((bytes.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    const auto* begin = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), begin, begin + sizeof(T));
    return *this;
  }
};

template <class T>
std::uint64_t upload(Machine& machine, const std::vector<T>& values) {
  const std::uint64_t address = machine.allocate(values.size() * sizeof(T));
  std::memcpy(machine.memory(address).data(), values.data(), values.size() * sizeof(T));
  return address;
}

template <class T>
std::vector<T> download(Machine& machine, std::uint64_t address) {
  const auto bytes = machine.memory(address);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// Runs one instruction with up to four 32-bit inputs; its result is in %r0.
std::uint32_t run_one(const std::string& instruction, std::array<std::uint32_t, 4> inputs) {
  Machine machine(
      read(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 a, "
           ".param .u32 b, .param .u32 c, "
           ".param .u32 d)\n{ .reg .b32 %r<5>; .reg .b64 %rd<2>; .reg .pred %p<2>;\n ld.param.u64 %rd0, "
           "[out]; ld.param.u32 %r1, [a]; "
           "ld.param.u32 %r2, [b]; ld.param.u32 %r3, [c]; ld.param.u32 %r4, [d];\n" +
           instruction + "\n st.global.u32 [%rd0], %r0; ret; }"));
  const std::uint64_t out = machine.allocate(4);
  Parameters parameters;
  parameters.add(out).add(inputs[0]).add(inputs[1]).add(inputs[2]).add(inputs[3]);
  REQUIRE(machine.launch("k", {}, parameters.bytes).outcome == Outcome::ok);
  return download<std::uint32_t>(machine, out)[0];
}

std::uint32_t bits(float value) {
  std::uint32_t result;
  std::memcpy(&result, &value, 4);
  return result;
}

}  // namespace

TEST_CASE("saxpy: the partial last block leaves the rest alone") {
  Machine machine(read(data("saxpy.ptx")));
  std::vector<float> x(100), y(128);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i), y[i] = static_cast<float>(2 * i);
  const auto dx = upload(machine, x), dy = upload(machine, y);
  Parameters parameters;
  parameters.add(std::int32_t{100}).add(0.5f).add(dx).add(dy);
  REQUIRE(machine.launch("saxpy", {.grid = {4, 1, 1}, .block = {32, 1, 1}}, parameters.bytes).outcome ==
          Outcome::ok);
  const auto result = download<float>(machine, dy);
  for (std::size_t i = 0; i < 128; ++i) CHECK(result[i] == (i < 100 ? 2.5f * static_cast<float>(i) : 0.0f));
}

TEST_CASE("mandelbrot: the steps of a host loop with the same fused products") {
  Machine machine(read(data("mandelbrot.ptx")));
  const int width = 24, height = 20, limit = 50;
  const auto image = machine.allocate(width * height * 4);
  Parameters parameters;
  parameters.add(image).add(width).add(height).add(limit);
  REQUIRE(machine.launch("mandelbrot", {.grid = {2, 2, 1}, .block = {16, 16, 1}}, parameters.bytes).outcome ==
          Outcome::ok);
  const auto result = download<std::int32_t>(machine, image);
  int inside = 0;
  for (int row = 0; row < height; ++row)
    for (int column = 0; column < width; ++column) {
      // Computes in double, and omits points whose result a rounding could change.
      double x = 0, y = 0, margin = 1;
      const double cx = -2.0 + 3.0 * column / width, cy = -1.0 + 2.0 * row / height;
      int steps = 0;
      while (steps < limit && x * x + y * y < 4.0) {
        const double next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
        margin = std::min(margin, std::fabs(x * x + y * y - 4.0));
        ++steps;
      }
      if (margin > 1e-3 && steps < 20) CHECK(result[static_cast<std::size_t>(row * width + column)] == steps);
      inside += steps == limit;
    }
  CHECK(inside > 50);
}

TEST_CASE("matmul: shared tiles and barriers") {
  Machine machine(read(data("matmul.ptx")));
  const int n = 32;
  std::vector<float> a(n * n), b(n * n);
  for (int i = 0; i < n * n; ++i)
    a[static_cast<std::size_t>(i)] = static_cast<float>(i % 7 - 3),
    b[static_cast<std::size_t>(i)] = static_cast<float>(i % 5 - 2);
  const auto da = upload(machine, a), db = upload(machine, b), dc = machine.allocate(n * n * 4);
  Parameters parameters;
  parameters.add(da).add(db).add(dc).add(n);
  REQUIRE(machine.launch("matmul", {.grid = {2, 2, 1}, .block = {16, 16, 1}}, parameters.bytes).outcome ==
          Outcome::ok);
  const auto c = download<float>(machine, dc);
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column) {
      float sum = 0;  // small whole numbers: exact in any order
      for (int k = 0; k < n; ++k)
        sum += a[static_cast<std::size_t>(row * n + k)] * b[static_cast<std::size_t>(k * n + column)];
      CHECK(c[static_cast<std::size_t>(row * n + column)] == sum);
    }
}

TEST_CASE("sum: shuffles and an atomic addition") {
  Machine machine(read(data("sum.ptx")));
  std::vector<float> x(1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const auto dx = upload(machine, x), total = machine.allocate(4);
  Parameters parameters;
  parameters.add(dx).add(std::int32_t{1000}).add(total);
  REQUIRE(machine.launch("sum", {.grid = {2, 1, 1}, .block = {64, 1, 1}}, parameters.bytes).outcome ==
          Outcome::ok);
  CHECK(download<float>(machine, total)[0] == 499500.0f);
}

TEST_CASE("an access outside every buffer, an unaligned one and a trap are faults") {
  const std::string head =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { .reg .b64 %rd<2>; .reg .b32 "
      "%r<2>;\n";
  CHECK(
      Machine(read(head + "mov.u64 %rd0, 64; st.global.u32 [%rd0], 1; ret; }")).launch("k", {}, {}).outcome ==
      Outcome::illegal_address);
  CHECK(
      Machine(read(head + "mov.u64 %rd0, 66; st.global.u32 [%rd0], 1; ret; }")).launch("k", {}, {}).outcome ==
      Outcome::misaligned);
  CHECK(Machine(read(head + "trap; }")).launch("k", {}, {}).outcome == Outcome::trap);
  CHECK(Machine(read(head + "$L: bra $L; }")).launch("k", {.max_steps = 1000}, {}).outcome ==
        Outcome::too_long);
}

TEST_CASE("single instructions give what the manual says") {
  CHECK(run_one("sub.cc.u32 %r0, %r1, %r2; addc.u32 %r0, 0, 0;", {5, 3, 0, 0}) ==
        1);  // carry set: nothing borrowed
  CHECK(run_one("sub.cc.u32 %r0, %r1, %r2; addc.u32 %r0, 0, 0;", {3, 5, 0, 0}) == 0);
  CHECK(run_one("shl.b32 %r0, %r1, %r2;", {1, 32, 0, 0}) == 0);
  CHECK(run_one("shr.s32 %r0, %r1, %r2;", {0x80000000u, 99, 0, 0}) == 0xffffffffu);
  CHECK(run_one("bfe.s32 %r0, %r1, 4, 4;", {0x000000f0u, 0, 0, 0}) == 0xffffffffu);
  CHECK(run_one("bfi.b32 %r0, %r1, %r2, 8, 4;", {0xf, 0xffff0000u, 0, 0}) == 0xffff0f00u);
  CHECK(run_one("prmt.b32 %r0, %r1, %r2, 0x5140;", {0x44332211u, 0x88776655u, 0, 0}) == 0x66225511u);
  CHECK(run_one("lop3.b32 %r0, %r1, %r2, %r3, 0x96;", {0xff00ff00u, 0xf0f0f0f0u, 0xccccccccu, 0}) ==
        (0xff00ff00u ^ 0xf0f0f0f0u ^ 0xccccccccu));
  CHECK(run_one("shf.l.wrap.b32 %r0, %r1, %r2, 8;", {0xaabbccddu, 0x11223344u, 0, 0}) == 0x223344aau);
  CHECK(run_one("bfind.s32 %r0, %r1;", {0xfffffffeu, 0, 0, 0}) == 0);
  CHECK(run_one("cvt.rzi.s32.f32 %r0, %r1;", {bits(3e9f), 0, 0, 0}) == 0x7fffffffu);
  CHECK(run_one("cvt.rzi.u32.f32 %r0, %r1;", {bits(-1.0f), 0, 0, 0}) == 0);
  CHECK(run_one("cvt.rzi.s32.f32 %r0, %r1;", {bits(NAN), 0, 0, 0}) == 0);
  CHECK(run_one("cvt.rp.f32.s32 %r0, %r1;", {16777217, 0, 0, 0}) == bits(16777218.0f));
  CHECK(run_one("add.rm.f32 %r0, %r1, %r2;", {bits(1.0f), bits(0x1p-30f), 0, 0}) == bits(1.0f));
  CHECK(run_one("add.rp.f32 %r0, %r1, %r2;", {bits(1.0f), bits(0x1p-30f), 0, 0}) ==
        bits(std::nextafter(1.0f, 2.0f)));
  CHECK(run_one("mul.ftz.f32 %r0, %r1, %r2;", {1, bits(1.0f), 0, 0}) == 0);
  CHECK(run_one("min.f32 %r0, %r1, %r2;", {bits(NAN), bits(2.0f), 0, 0}) == bits(2.0f));
  CHECK(run_one("max.f32 %r0, %r1, %r2;", {bits(-0.0f), bits(0.0f), 0, 0}) == bits(0.0f));
  CHECK(run_one("copysign.f32 %r0, %r1, %r2;", {bits(-1.0f), bits(2.0f), 0, 0}) == bits(-2.0f));
}

TEST_CASE("a match whose destination is its source compares what was there before") {
  Machine machine(
      read(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{ .reg .b32 "
           "%r<2>; .reg .b64 %rd<2>; .reg .pred %p<1>;\n ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; "
           "mul.wide.u32 %rd1, %r0, 4; add.s64 %rd0, %rd0, %rd1;\n match.all.sync.b32 %r0|%p0, %r0, -1; "
           "st.global.u32 [%rd0], %r0; ret; }"));
  const auto out = machine.allocate(4 * 4);
  Parameters parameters;
  parameters.add(out);
  REQUIRE(machine.launch("k", {.block = {4, 1, 1}}, parameters.bytes).outcome == Outcome::ok);
  CHECK(download<std::uint32_t>(machine, out) == std::vector<std::uint32_t>(4, 0));
}

TEST_CASE("every generated kernel runs to its end in the oracle") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const Generated kernel = generate(seed);
    Machine machine(read(kernel.ptx));
    const auto in = machine.allocate(kernel.in_bytes), out = machine.allocate(kernel.out_bytes);
    Parameters parameters;
    parameters.add(in).add(out).add(std::uint32_t{0});
    const Result result = machine.launch("k", {.grid = kernel.grid, .block = kernel.block}, parameters.bytes);
    INFO(result.message);
    CHECK(result.outcome == Outcome::ok);
  }
}
