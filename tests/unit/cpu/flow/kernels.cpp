// SPDX-License-Identifier: Apache-2.0
// Kernels that nvcc compiled, from PTX to results.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

#include "harness.hpp"
#include "ptx/ptx.hpp"

namespace quern::cpu::test {
namespace {

ptx::Module parse_kernel(const std::string& name) {
  std::ifstream file(std::string(QUERN_TEST_DATA) + "/" + name + ".ptx");
  std::stringstream text;
  text << file.rdbuf();
  auto module = ptx::parse(text.str(), name + ".ptx");
  REQUIRE(module.has_value());
  REQUIRE(ptx::verify(*module).has_value());
  return std::move(*module);
}

std::shared_ptr<const KernelCode> compiled(const std::string& name, const Specialisation& variant) {
  auto code = compile(parse_kernel(name), name, variant);
  if (!code) FAIL(to_string(code.errors()));
  return *code;
}

float noise(std::uint32_t i) { return static_cast<float>((i * 2654435761u) >> 20) / 1024.0f - 2.0f; }

TEST_CASE("saxpy touches n elements and no more") {
  TestDevice device;
  for (const std::uint32_t size : {32u, 100u, 256u})
    for (const Specialisation& variant : variants({size, 1, 1}))
      for (const std::uint32_t n : {1u, 1000u, 4096u}) {
        CAPTURE(name(variant));
        device.clear();
        auto x = device.allocate<float>(5000);
        auto y = device.allocate<float>(5000);
        for (std::uint32_t i = 0; i < 5000; ++i) {
          x[i] = noise(i);
          y[i] = noise(i + 77777);
        }
        const auto code = compiled("saxpy", variant);
        const Extents grid{(n + size - 1) / size, 1, 1};
        CHECK(!device.launch(*code, variant, grid, Params().add(n).add(2.5f).add(x.data()).add(y.data())));
        for (std::uint32_t i = 0; i < 5000; ++i)
          REQUIRE(y[i] == (i < n ? std::fma(noise(i), 2.5f, noise(i + 77777)) : noise(i + 77777)));
      }
}

/// One point of the kernel's picture, computed operation by operation as in its PTX.
std::int32_t mandelbrot_count(float cx, float cy, std::int32_t limit) {
  float x = 0, y = 0, x2 = 0, y2 = 0;
  std::int32_t count = 0;
  if (limit < 1) return 0;
  do {
    const float next = cx + (x2 - y2);
    y = std::fma(x + x, y, cy);
    x = next;
    ++count;
    x2 = x * x;
    y2 = y * y;
  } while (count < limit && x2 + y2 < 4.0f);
  return count;
}

TEST_CASE("mandelbrot counts the iterations of every point by itself") {
  TestDevice device;
  constexpr std::int32_t kWidth = 75, kHeight = 50;
  for (const Extents block : {Extents{16, 16, 1}, Extents{32, 8, 1}, Extents{10, 7, 1}})
    for (const Specialisation& variant : variants(block)) {
      CAPTURE(name(variant));
      device.clear();
      auto out = device.allocate<std::int32_t>(kWidth * kHeight);
      const auto code = compiled("mandelbrot", variant);
      const Extents grid{(kWidth + block[0] - 1) / block[0], (kHeight + block[1] - 1) / block[1], 1};
      CHECK(!device.launch(*code, variant, grid,
                           Params()
                               .add(out.data())
                               .add(kWidth)
                               .add(kHeight)
                               .add(200)
                               .add(-2.0f)
                               .add(-1.0f)
                               .add(0.04f)
                               .add(0.04f)));
      for (std::int32_t y = 0; y < kHeight; ++y)
        for (std::int32_t x = 0; x < kWidth; ++x)
          REQUIRE(out[static_cast<std::size_t>(y * kWidth + x)] ==
                  mandelbrot_count(std::fma(static_cast<float>(x), 0.04f, -2.0f),
                                   std::fma(static_cast<float>(y), 0.04f, -1.0f), 200));
    }
}

TEST_CASE("a 16x16 tiled matrix product is that of plain loops") {
  TestDevice device;
  constexpr std::uint32_t kSize = 64;
  for (const Specialisation& variant : variants({16, 16, 1})) {
    CAPTURE(name(variant));
    device.clear();
    device.symbols = {0, 1024};
    auto a = device.allocate<float>(kSize * kSize);
    auto b = device.allocate<float>(kSize * kSize);
    auto c = device.allocate<float>(kSize * kSize);
    for (std::uint32_t i = 0; i < kSize * kSize; ++i) {
      a[i] = noise(i);
      b[i] = noise(i + 99999);
    }
    const auto code = compiled("matmul", variant);
    CHECK(!device.launch(*code, variant, {kSize / 16, kSize / 16, 1},
                         Params().add(a.data()).add(b.data()).add(c.data()).add(kSize)));
    for (std::uint32_t row = 0; row < kSize; ++row)
      for (std::uint32_t column = 0; column < kSize; ++column) {
        float sum = 0;
        for (std::uint32_t k = 0; k < kSize; ++k)
          sum = std::fma(a[row * kSize + k], b[k * kSize + column], sum);
        REQUIRE(c[row * kSize + column] == sum);
      }
  }
}

TEST_CASE("a shuffle reduction adds up every element") {
  TestDevice device;
  for (const Specialisation& variant : variants({128, 1, 1}))
    for (const std::uint32_t n : {1u, 31u, 5000u}) {
      CAPTURE(name(variant));
      device.clear();
      auto in = device.allocate<float>(6000);
      auto out = device.allocate<float>(1);
      for (std::uint32_t i = 0; i < 6000; ++i) in[i] = static_cast<float>(i % 64);
      const auto code = compiled("reduce", variant);
      CHECK(!device.launch(*code, variant, {7, 1, 1}, Params().add(in.data()).add(out.data()).add(n)));
      CHECK(out[0] ==
            std::accumulate(in.begin(), in.begin() + n, 0.0f));  // small whole numbers: exact in any order
    }
}

/// The kernel of loops.ptx, as one thread executes it.
std::int32_t loops_result(std::int32_t start) {
  for (std::int32_t round = 1; round <= 3; ++round) {
    if (start > -1) return round;
    bool again = false;
    for (std::int32_t i = 1; i <= 3 && !again; ++i) again = start + i == 0;
    if (!again) return 50;
  }
  return 100;
}

TEST_CASE("lanes that left nested loops early wait behind them, whatever way the others take out") {
  TestDevice device;
  for (const std::uint32_t size : {32u, 50u, 64u})
    for (const Specialisation& variant : variants({size, 1, 1})) {
      CAPTURE(name(variant));
      device.clear();
      auto x = device.allocate<std::int32_t>(size);
      for (std::uint32_t i = 0; i < size; ++i) x[i] = static_cast<std::int32_t>(i % 13) - 6;
      const auto code = compiled("loops", variant);
      CHECK(!device.launch(*code, variant, {1, 1, 1}, Params().add(x.data())));
      for (std::uint32_t i = 0; i < size; ++i)
        REQUIRE(x[i] == loops_result(static_cast<std::int32_t>(i % 13) - 6));
    }
}

TEST_CASE("what a kernel needs is known without a block shape") {
  const auto kernels = inspect(parse_kernel("matmul"), "matmul.ptx");
  REQUIRE(kernels.has_value());
  REQUIRE(kernels->size() == 1);
  const KernelInfo& info = kernels->front();
  CHECK(info.name == "matmul");
  CHECK(info.params.size() == 4);
  CHECK(info.param_bytes == 28);
  CHECK(info.static_shared_bytes == 2048);
  CHECK(info.max_threads == 1024);
  CHECK(info.register_count >= 16);
}

}  // namespace
}  // namespace quern::cpu::test
