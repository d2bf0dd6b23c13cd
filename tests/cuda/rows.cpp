// SPDX-License-Identifier: Apache-2.0
#include "rows.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

namespace quern::cuda_test::rows {

std::string prologue() {
  return R"(
    using u64 = unsigned long long;
    #define NOINLINE __noinline__
    inline unsigned bits(float x) { return __float_as_uint(x); }
    inline u64 bits(double x) { return (u64)__double_as_longlong(x); }
  )" + kData +
         "\n";
}

std::string function_of(const Loop& loop, const std::string& attributes, const std::string& name) {
  return attributes + " u64 " + name + "_row(const Data& g, int i, int t, int b, int n) " + loop.text +
         "\n__forceinline__ u64 " + name + "(const Data& g, int i, int t) { return " + name +
         "_row(g, i, t, g.first[i], g.first[i + 1]); }\n";
}

Data data_of(Shape shape) {
  const auto made = std::make_unique<Data>();
  Data& g = *made;
  g.rows = shape == Shape::alone ? 1 : 250;
  for (std::uint32_t i = 0; i < 259; ++i) {
    const std::uint32_t m = mixed(i + 1) >> 8;
    int length = 0;
    switch (shape) {
      case Shape::various:
        length = m % 23 == 0 ? 100 + m % 150 : m % 8;
        break;
      case Shape::equal:
        length = 9;
        break;
      case Shape::empty:
        break;
      case Shape::single:
        length = i == 45 ? 333 : 0;
        break;
      case Shape::alone:
        length = i == 0 ? 77 : 0;
        break;
    }
    g.first[i + 1] = g.first[i] + length;
  }
  REQUIRE(g.first[259] < 8192);
  for (std::uint32_t e = 0; e < 8192; ++e)
    g.sorted[e] = g.column[e] = static_cast<int>(mixed(e + 7777) >> 23);
  for (unsigned i = 0; i < 259; ++i) std::sort(g.sorted + g.first[i], g.sorted + g.first[i + 1]);
  for (std::uint32_t p = 0; p < 512; ++p) {
    const std::uint32_t m = mixed(p + 99);
    const auto small = [&](std::uint32_t k) { return static_cast<int>(mixed(p * 16 + k) >> 20) - 2048; };
    g.x[p] = m;
    g.f[p] = static_cast<float>(small(1)) * 0.1f;
    g.r[p] = small(2) / 3.0;
    g.s[p] = static_cast<short>(m >> 7);
    g.c[p] = static_cast<signed char>(m >> 11);
    g.w[p] = static_cast<long long>(small(3)) * 0x100000001ll;
    g.f2[p] = {static_cast<float>(small(4)) / 7, static_cast<float>(small(5))};
    g.f4[p] = {static_cast<float>(small(6)), static_cast<float>(small(7)) / 3, static_cast<float>(small(8)),
               static_cast<float>(small(9)) / 9};
    g.s2[p] = {static_cast<short>(m), static_cast<short>(m >> 16)};
  }
  for (unsigned k = 0; k < 512; ++k)
    g.next[k * 77 % 512] = k == 511 || mixed(k) >> 29 == 0 ? -1 : static_cast<int>((k + 1) * 77 % 512);
  for (std::uint32_t at = 0; at + 1 < 2048; ++at)
    g.text[at] = mixed(at + 5) >> 29 == 0 ? '\0' : static_cast<char>('a' + (mixed(at + 5) >> 9) % 3);
  return g;
}

std::vector<std::uint32_t> words_of(const Data& data) {
  std::vector<std::uint32_t> words(sizeof(Data) / 4);
  std::memcpy(words.data(), &data, sizeof data);
  return words;
}

OnDevice::OnDevice(const Data& data) : words_(session().to_device(words_of(data))) {}

std::vector<u64> OnDevice::run(const Kernel& kernel, Dim3 grid, Dim3 block, std::size_t count) const {
  auto out = session().to_device(std::vector<std::uint64_t>(count));
  kernel({.grid = grid, .block = block})(words_, out);
  const std::vector<std::uint64_t> values = out.copy_to_host();
  return {values.begin(), values.end()};
}

Module load(const std::string& source) {
  LoadOptions options;
  options.options = {"-default-device", "--fmad=false"};
  const Expected<Module> module = session().try_load_cuda(prologue() + source, options);
  if (!module) FAIL(to_string(module.errors()));
  return *module;
}

}  // namespace quern::cuda_test::rows
