// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <limits>

namespace quern::cuda_test {
namespace {

constexpr unsigned kBlock = 128;
constexpr unsigned kTuples = 1024;

constexpr const char* kPut = R"(
using u64 = unsigned long long;
struct Put {
  static __device__ u64 of(bool v) { return v ? 1 : 0; }
  static __device__ u64 of(signed char v) { return (unsigned char)v; }
  static __device__ u64 of(unsigned char v) { return v; }
  static __device__ u64 of(char v) { return (unsigned char)v; }
  static __device__ u64 of(short v) { return (unsigned short)v; }
  static __device__ u64 of(unsigned short v) { return v; }
  static __device__ u64 of(int v) { return (unsigned)v; }
  static __device__ u64 of(unsigned v) { return v; }
  static __device__ u64 of(long long v) { return (u64)v; }
  static __device__ u64 of(long v) { return (u64)v; }
  static __device__ u64 of(unsigned long v) { return v; }
  static __device__ u64 of(u64 v) { return v; }
  static __device__ u64 of(float v) { return __float_as_uint(v); }
  static __device__ u64 of(double v) { return (u64)__double_as_longlong(v); }
#ifdef __CUDA_FP16_TYPES_EXIST__
  static __device__ u64 of(__half v) { return __half_as_ushort(v); }
  static __device__ u64 of(__half2 v) { return __half_as_ushort(__low2half(v)) | (u64)__half_as_ushort(__high2half(v)) << 16; }
#endif
#ifdef __CUDA_BF16_TYPES_EXIST__
  static __device__ u64 of(__nv_bfloat16 v) { return __bfloat16_as_ushort(v); }
  static __device__ u64 of(__nv_bfloat162 v) { return __bfloat16_as_ushort(__low2bfloat16(v)) | (u64)__bfloat16_as_ushort(__high2bfloat16(v)) << 16; }
#endif
};
template <class T> struct Get { static __device__ T from(u64 bits) { T t; unsigned long long b = bits; memcpy(&t, &b, sizeof t); return t; } };
)";

std::uint64_t mix(std::uint64_t& state) {  // splitmix64 (G. Steele, D. Lea, C. Flood, 2014)
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::string source_of(const Table& table) {
  std::string text =
      table.includes + kPut + table.prologue +
      "\nextern \"C\" __global__ void k(const u64* in, u64* out) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;\n  using T = " +
      table.type +
      ";\n  T a = Get<T>::from(in[3 * i]), b = Get<T>::from(in[3 * i + 1]), c = Get<T>::from(in[3 * i + "
      "2]);\n  (void)b; (void)c;\n";
  for (std::size_t k = 0; k < table.rows.size(); ++k)
    text += "  out[" + std::to_string(k) + "ll * n + i] = Put::of(" + table.rows[k].device + ");\n";
  return text + "}\n";
}

template <class Real>
bool within(double expected, double got, const Bound& bound) {
  if (std::isnan(expected)) return std::isnan(got);
  const auto nearest = static_cast<Real>(expected);
  if (std::isinf(nearest) || std::isinf(got)) {
    // The overflow threshold may differ a little.
    const double greatest = static_cast<double>(std::numeric_limits<Real>::max());
    return static_cast<double>(nearest) == got ||
           (bound.ulp > 0 && std::fabs(expected) > greatest * 0.9999 && std::fabs(got) > greatest * 0.9999);
  }
  const int exponent =
      std::max(expected == 0 ? -5000 : std::ilogb(expected), std::numeric_limits<Real>::min_exponent - 1);
  const double unit = std::ldexp(1.0, exponent - (std::numeric_limits<Real>::digits - 1));
  return std::fabs(got - expected) <= std::max(bound.ulp * unit, bound.absolute);
}

bool half_nan(Bits bits, Bits infinity) { return (bits & 0x7fff) > infinity; }

bool agrees(const Bound& bound, Bits expected, Bits got) {
  if (expected == got) return true;
  const bool loose = bound.ulp > 0 || bound.absolute > 0;
  switch (bound.kind) {
    case Bound::Kind::exact:
      return false;
    case Bound::Kind::f32:
      if (loose) return within<float>(f64(expected), static_cast<double>(f32(got)), bound);
      return std::isnan(f32(expected)) && std::isnan(f32(got));
    case Bound::Kind::f64:
      if (loose) return within<double>(f64(expected), f64(got), bound);
      return std::isnan(f64(expected)) && std::isnan(f64(got));
    case Bound::Kind::f16:
      return half_nan(expected, 0x7c00) && half_nan(got, 0x7c00);
    case Bound::Kind::bf16:
      return half_nan(expected, 0x7f80) && half_nan(got, 0x7f80);
  }
  return false;
}

std::vector<Bits> tuples(const std::vector<Bits>& values) {
  std::vector<Bits> in;
  std::uint64_t state = 1;
  for (unsigned i = 0; i < kTuples; ++i)
    for (unsigned k = 0; k < 3; ++k) {
      // First each value alone, later combinations.
      const std::size_t index = k == 0 && i < values.size() ? i : mix(state) % values.size();
      in.push_back(values[index]);
    }
  return in;
}

}  // namespace

bool ready() {
  static const bool found = [] {
    if (!Session::try_open({"cpu"})) return false;
    return doctor().ready;
  }();
  if (!found) MESSAGE("SKIPPED: no CPU device or no NVRTC on this machine");
  return found;
}

Session& session() {
  static Session opened("cpu");
  return opened;
}

void check(const Table& table) {
  if (!ready()) return;
  const std::vector<Bits> in = tuples(table.values);
  LoadOptions options;
  options.options = table.options;
  const Expected<Module> module = session().try_load_cuda(source_of(table), options);
  if (!module) FAIL(to_string(module.errors()));
  auto device_in = session().to_device(in);
  auto device_out = session().to_device(std::vector<Bits>(kTuples * table.rows.size()));
  module->kernel("k")({.grid = kTuples / kBlock, .block = kBlock})(device_in, device_out);
  const std::vector<Bits> out = device_out.copy_to_host();
  for (std::size_t k = 0; k < table.rows.size(); ++k) {
    const Row& row = table.rows[k];
    unsigned wrong = 0;
    for (std::size_t i = 0; i < kTuples && wrong == 0; ++i) {
      const Bits a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
      const Bits expected = row.host(a, b, c), got = out[k * kTuples + i];
      if (agrees(row.bound, expected, got)) continue;
      ++wrong;
      char text[160];
      std::snprintf(text, sizeof text, " of a = %#llx, b = %#llx, c = %#llx: expected %#llx, got %#llx",
                    static_cast<unsigned long long>(a), static_cast<unsigned long long>(b),
                    static_cast<unsigned long long>(c), static_cast<unsigned long long>(expected),
                    static_cast<unsigned long long>(got));
      FAIL_CHECK((row.device + text));
    }
    if (wrong == 0) CHECK(wrong == 0);
  }
}

std::vector<Bits> interesting_words() {
  return {0,          1,          2,          3,          5,          31,         32,         33,
          0x7f,       0x80,       0xff,       0x100,      0x7fff,     0x8000,     0xffff,     0x10000,
          0x7fffff,   0x800000,   0xffffff,   0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe,
          0xffffffff, 0xffff8000, 0xffffff80, 0x12345678, 0xdeadbeef, 0x00ff00ff, 0x80808080, 0x7f7f7f7f,
          0x01010101, 0x55555555, 0x80017fff, 0x7fff8000, 0xff00ff01};
}
std::vector<Bits> interesting_longs() {
  return {0,
          1,
          2,
          3,
          7,
          0x7f,
          0x80,
          0xffff,
          0x7fffffff,
          0x80000000,
          0xffffffff,
          0x100000000,
          0x7fffffffffffffff,
          0x8000000000000000,
          0x8000000000000001,
          0xfffffffffffffffe,
          0xffffffffffffffff,
          0xffffffff80000000,
          0x0020000000000001,
          0x0123456789abcdef,
          0xfedcba9876543210,
          0x7fffffbfffffffff,
          63,
          1000003};
}
std::vector<Bits> interesting_floats() {
  std::vector<Bits> values;
  for (const float x : {0.0f,
                        -0.0f,
                        1.0f,
                        -1.0f,
                        INFINITY,
                        -INFINITY,
                        NAN,
                        1e-45f,
                        -1e-45f,
                        1.17549421e-38f,
                        1.17549435e-38f,
                        3.40282347e38f,
                        -3.40282347e38f,
                        0.5f,
                        -0.5f,
                        1.5f,
                        2.5f,
                        -2.5f,
                        3.14159274f,
                        0.1f,
                        100.25f,
                        -7.75f,
                        1e10f,
                        -1e10f,
                        2147483520.0f,
                        2147483648.0f,
                        4294967040.0f,
                        4294967296.0f,
                        9.2233720e18f,
                        1.8446744e19f,
                        16777216.0f,
                        1e-20f,
                        1e20f,
                        88.0f,
                        -88.0f,
                        0.99999994f,
                        1.00000012f,
                        2.0f,
                        10.0f,
                        127.0f,
                        -128.5f})
    values.push_back(bits_of(x));
  return values;
}
std::vector<Bits> interesting_doubles() {
  std::vector<Bits> values;
  for (const double x : {0.0,
                         -0.0,
                         1.0,
                         -1.0,
                         double{INFINITY},
                         -double{INFINITY},
                         double{NAN},
                         5e-324,
                         -5e-324,
                         2.2250738585072009e-308,
                         2.2250738585072014e-308,
                         1.7976931348623157e308,
                         -1.7976931348623157e308,
                         0.5,
                         -0.5,
                         1.5,
                         2.5,
                         -2.5,
                         3.14159265358979312,
                         0.1,
                         100.25,
                         -7.75,
                         1e10,
                         -1e10,
                         2147483647.5,
                         -2147483648.5,
                         4294967295.5,
                         9.2233720368547748e18,
                         1.8446744073709550e19,
                         1.8446744073709552e19,
                         9007199254740993.0,
                         1e-20,
                         1e20,
                         700.0,
                         -700.0,
                         0.99999999999999989,
                         1.0000000000000002,
                         2.0,
                         10.0,
                         3.4028235677973366e38,
                         1.4e-45})
    values.push_back(bits_of(x));
  return values;
}

std::vector<std::uint32_t> run(const std::string& source, const std::string& name,
                               std::vector<std::uint32_t> words, unsigned threads, unsigned blocks,
                               unsigned shared_bytes) {
  const Expected<Module> module = session().try_load_cuda(source);
  if (!module) {
    FAIL_CHECK(to_string(module.errors()));
    return words;
  }
  auto data = session().to_device(words);
  LaunchConfig config{.grid = blocks, .block = threads};
  config.shared_bytes = shared_bytes;
  module->kernel(name)(config)(data);
  return data.copy_to_host();
}

std::uint32_t mixed(std::uint32_t i) {
  i *= 0x9e3779b9u;
  i ^= i >> 15;
  return i * 0x85ebca6bu;
}

}  // namespace quern::cuda_test
