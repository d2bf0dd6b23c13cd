// SPDX-License-Identifier: Apache-2.0
// Integer, bit and SIMD-in-a-word intrinsics.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

#include "harness.hpp"

using namespace quern;
using namespace quern::cuda_test;

namespace {

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;
using U = std::uint32_t;
using S = std::int32_t;
using L = std::uint64_t;
using SL = std::int64_t;

// The reference of a row, over a, b, c (unsigned) and sa, sb, sc (signed).
#define WORDS(expression)                                                                       \
  [](Bits bits_a, Bits bits_b, Bits bits_c) -> Bits {                                           \
    const U a = static_cast<U>(bits_a), b = static_cast<U>(bits_b), c = static_cast<U>(bits_c); \
    const S sa = static_cast<S>(a), sb = static_cast<S>(b), sc = static_cast<S>(c);             \
    (void)a, (void)b, (void)c, (void)sa, (void)sb, (void)sc;                                    \
    return static_cast<U>(expression);                                                          \
  }
#define LONGS(expression)                                      \
  [](Bits a, Bits b, Bits c) -> Bits {                         \
    const SL sa = static_cast<SL>(a), sb = static_cast<SL>(b); \
    (void)a, (void)b, (void)c, (void)sa, (void)sb;             \
    return static_cast<Bits>(expression);                      \
  }

SL wide(S x) { return x; }
L wide(U x) { return x; }

U reversed(U x) {
  U result = 0;
  for (unsigned i = 0; i < 32; ++i) result |= (x >> i & 1) << (31 - i);
  return result;
}
U bytes_chosen(U a, U b, U selector) {
  U result = 0;
  const L both = wide(a) | wide(b) << 32;
  for (unsigned i = 0; i < 4; ++i)
    result |= static_cast<U>(both >> ((selector >> (4 * i) & 7) * 8) & 0xff) << (8 * i);
  return result;
}
U nth_set(U mask, U base, S offset) {
  if (offset == 0) return (mask >> base & 1) != 0 ? base : ~0u;
  SL left = std::abs(static_cast<SL>(offset));
  for (SL at = base; at >= 0 && at < 32; at += offset > 0 ? 1 : -1)
    if ((mask >> at & 1) != 0 && --left == 0) return static_cast<U>(at);
  return ~0u;
}
S low24(S x) { return static_cast<S>(static_cast<U>(x) << 8) >> 8; }
U dot(U a, U b, U c, unsigned terms, unsigned first, bool is_signed) {
  SL sum = is_signed ? static_cast<S>(c) : static_cast<SL>(c);
  const unsigned width = 32 / terms;
  for (unsigned i = 0; i < terms; ++i) {
    SL x = a >> (width * i) & ((1u << (width - 1) << 1) - 1), y = b >> (first + 8 * i) & 0xff;
    if (is_signed && (x >> (width - 1) & 1) != 0) x -= SL{1} << width;
    if (is_signed && y > 127) y -= 256;
    sum += x * y;
  }
  return static_cast<U>(sum);
}

/// Applies `apply` to each lane of `bits` bits in a word.
template <class Apply>
U lanes(unsigned bits, U a, U b, Apply apply) {
  U result = 0;
  const U mask = bits == 16 ? 0xffff : 0xff;
  for (unsigned first = 0; first < 32; first += bits)
    result |=
        (static_cast<U>(apply(static_cast<S>(a >> first & mask), static_cast<S>(b >> first & mask))) & mask)
        << first;
  return result;
}
template <class Apply>
U signed_lanes(unsigned bits, U a, U b, Apply apply) {
  const auto extend = [bits](S x) { return static_cast<S>(static_cast<U>(x) << (32 - bits)) >> (32 - bits); };
  return lanes(bits, a, b, [&](S x, S y) { return apply(extend(x), extend(y)); });
}
S clamp(S x, S low, S high) { return std::min(std::max(x, low), high); }

std::vector<Row> simd_rows(unsigned n) {
  const unsigned bits = 32 / n;
  const S top = (1 << (bits - 1)) - 1, all = (1 << bits) - 1;
  const std::string width = std::to_string(n);
  std::vector<Row> rows;
  const auto add = [&](const std::string& name, bool is_signed, bool two, auto apply) {
    rows.push_back({"__v" + name + width + (two ? "(a, b)" : "(a)"), [=](Bits a, Bits b, Bits) -> Bits {
                      const U x = static_cast<U>(a), y = two ? static_cast<U>(b) : 0;
                      return is_signed ? signed_lanes(bits, x, y, apply) : lanes(bits, x, y, apply);
                    }});
  };
  add("add", false, true, [](S x, S y) { return x + y; });
  add("addss", true, true, [=](S x, S y) { return clamp(x + y, -top - 1, top); });
  add("addus", false, true, [=](S x, S y) { return clamp(x + y, 0, all); });
  add("sub", false, true, [](S x, S y) { return x - y; });
  add("subss", true, true, [=](S x, S y) { return clamp(x - y, -top - 1, top); });
  add("subus", false, true, [=](S x, S y) { return clamp(x - y, 0, all); });
  // Signed averages round a half away from zero for non-negative sums, otherwise towards minus infinity plus
  // one half.
  add("avgs", true, true, [](S x, S y) { return x + y >= 0 ? (x + y + 1) >> 1 : (x + y) >> 1; });
  add("avgu", false, true, [](S x, S y) { return (x + y + 1) >> 1; });
  add("haddu", false, true, [](S x, S y) { return (x + y) >> 1; });
  add("abs", true, false, [](S x, S) { return x < 0 ? -x : x; });
  add("absss", true, false, [=](S x, S) { return clamp(x < 0 ? -x : x, -top - 1, top); });
  add("neg", true, false, [](S x, S) { return -x; });
  add("negss", true, false, [=](S x, S) { return clamp(-x, -top - 1, top); });
  add("absdiffs", true, true, [](S x, S y) { return std::abs(x - y); });
  add("absdiffu", false, true, [](S x, S y) { return std::abs(x - y); });
  add("mins", true, true, [](S x, S y) { return std::min(x, y); });
  add("minu", false, true, [](S x, S y) { return std::min(x, y); });
  add("maxs", true, true, [](S x, S y) { return std::max(x, y); });
  add("maxu", false, true, [](S x, S y) { return std::max(x, y); });
  for (const bool mask : {true, false}) {
    const S yes = mask ? -1 : 1;
    const std::string kind = mask ? "cmp" : "set";
    add(kind + "eq", false, true, [=](S x, S y) { return x == y ? yes : 0; });
    add(kind + "ne", false, true, [=](S x, S y) { return x != y ? yes : 0; });
    for (const bool is_signed : {true, false}) {
      const std::string sign = is_signed ? "s" : "u";
      add(kind + "ge" + sign, is_signed, true, [=](S x, S y) { return x >= y ? yes : 0; });
      add(kind + "gt" + sign, is_signed, true, [=](S x, S y) { return x > y ? yes : 0; });
      add(kind + "le" + sign, is_signed, true, [=](S x, S y) { return x <= y ? yes : 0; });
      add(kind + "lt" + sign, is_signed, true, [=](S x, S y) { return x < y ? yes : 0; });
    }
  }
  for (const bool is_signed : {true, false})
    rows.push_back({std::string("__vsad") + (is_signed ? "s" : "u") + width + "(a, b)",
                    [=](Bits a, Bits b, Bits) -> Bits {
                      U sum = 0;
                      const auto count = [&](S x, S y) { return sum += static_cast<U>(std::abs(x - y)), 0; };
                      if (is_signed)
                        signed_lanes(bits, static_cast<U>(a), static_cast<U>(b), count);
                      else
                        lanes(bits, static_cast<U>(a), static_cast<U>(b), count);
                      return sum;
                    }});
  return rows;
}

}  // namespace

TEST_CASE("integer intrinsics of 32 bits") {
  Table table{.type = "unsigned", .values = interesting_words()};
  table.rows = {
      {"__brev(a)", WORDS(reversed(a))},
      {"__byte_perm(a, b, c)", WORDS(bytes_chosen(a, b, c))},
      {"__clz((int)a)", WORDS(std::countl_zero(a))},
      {"__ffs((int)a)", WORDS(a == 0 ? 0 : std::countr_zero(a) + 1)},
      {"__popc(a)", WORDS(std::popcount(a))},
      {"__hadd((int)a, (int)b)", WORDS((wide(sa) + wide(sb)) >> 1)},
      {"__rhadd((int)a, (int)b)", WORDS((wide(sa) + wide(sb) + 1) >> 1)},
      {"__uhadd(a, b)", WORDS((wide(a) + wide(b)) >> 1)},
      {"__urhadd(a, b)", WORDS((wide(a) + wide(b) + 1) >> 1)},
      {"__mul24((int)a, (int)b)", WORDS(wide(low24(sa)) * wide(low24(sb)))},
      {"__umul24(a, b)", WORDS(wide(a & 0xffffff) * wide(b & 0xffffff))},
      {"__mulhi((int)a, (int)b)", WORDS((wide(sa) * wide(sb)) >> 32)},
      {"__umulhi(a, b)", WORDS((wide(a) * wide(b)) >> 32)},
      {"__sad((int)a, (int)b, c)", WORDS(static_cast<U>(std::abs(wide(sa) - wide(sb))) + c)},
      {"__usad(a, b, c)", WORDS((a < b ? b - a : a - b) + c)},
      {"__funnelshift_l(a, b, c)", WORDS((wide(a) | wide(b) << 32) << (c & 31) >> 32)},
      {"__funnelshift_lc(a, b, c)", WORDS(c >= 32 ? a : (wide(a) | wide(b) << 32) << c >> 32)},
      {"__funnelshift_r(a, b, c)", WORDS((wide(a) | wide(b) << 32) >> (c & 31))},
      {"__funnelshift_rc(a, b, c)", WORDS((wide(a) | wide(b) << 32) >> std::min(c, 32u))},
      {"__fns(a, b & 31, (int)c)", WORDS(nth_set(a, b & 31, sc))},
      {"__dp4a((int)a, (int)b, (int)c)", WORDS(dot(a, b, c, 4, 0, true))},
      {"__dp4a(a, b, c)", WORDS(dot(a, b, c, 4, 0, false))},
      // One after the other, as in products of matrices.
      {"__dp4a((int)a, (int)b, __dp4a((int)b, (int)c, (int)a))",
       WORDS(dot(a, b, dot(b, c, a, 4, 0, true), 4, 0, true))},
      {"__dp4a(a, b, __dp4a(b, c, __dp4a(c, a, b)))",
       WORDS(dot(a, b, dot(b, c, dot(c, a, b, 4, 0, false), 4, 0, false), 4, 0, false))},
      {"__dp4a((int)a, (int)b, (int)__dp4a(b, c, a))",
       WORDS(dot(a, b, dot(b, c, a, 4, 0, false), 4, 0, true))},
      {"__dp4a((int)a, (int)b, __dp4a((int)c, (int)b, 5) - (int)c)",
       WORDS(dot(a, b, dot(c, b, 5, 4, 0, true) - c, 4, 0, true))},
      {"__dp2a_lo((int)a, (int)b, (int)c)", WORDS(dot(a, b, c, 2, 0, true))},
      {"__dp2a_hi((int)a, (int)b, (int)c)", WORDS(dot(a, b, c, 2, 16, true))},
      {"__dp2a_lo(a, b, c)", WORDS(dot(a, b, c, 2, 0, false))},
      {"__dp2a_hi(a, b, c)", WORDS(dot(a, b, c, 2, 16, false))},
      {"min((int)a, (int)b)", WORDS(std::min(sa, sb))},
      {"max(a, b)", WORDS(std::max(a, b))},
      {"abs((int)a)", WORDS(sa < 0 ? 0u - a : a)},
      {"b == 0 ? 0 : (int)a == INT_MIN ? 1 : (int)a / (int)b", WORDS(b == 0            ? 0
                                                                     : sa == INT32_MIN ? 1
                                                                                       : sa / sb)},
      {"b == 0 ? 0 : (int)a == INT_MIN ? 1 : (int)a % (int)b", WORDS(b == 0            ? 0
                                                                     : sa == INT32_MIN ? 1
                                                                                       : sa % sb)},
      {"b == 0 ? 0 : a / b", WORDS(b == 0 ? 0 : a / b)},
      {"b == 0 ? 0 : a % b", WORDS(b == 0 ? 0 : a % b)},
      {"(int)a / 7 + a % 10", WORDS(static_cast<U>(sa / 7) + a % 10)},
      {"__vimax3_s32((int)a, (int)b, (int)c)", WORDS(std::max({sa, sb, sc}))},
      {"__viaddmax_s32((int)a, (int)b, (int)c)", WORDS(std::max(static_cast<S>(a + b), sc))},
      {"__vimin_s32_relu((int)a, (int)b)", WORDS(std::max(std::min(sa, sb), 0))},
      {"__viaddmax_s16x2(a, b, c)",
       WORDS(signed_lanes(16, signed_lanes(16, a, b, [](S x, S y) { return x + y; }), c,
                          [](S x, S y) { return std::max(x, y); }))},
      {"__vibmax_u32(a, b, &flag) + flag", WORDS(std::max(a, b) + (a >= b ? 1 : 0))},
  };
  table.prologue =
      "#define INT_MIN (-2147483647 - 1)\n#define flag flag_[threadIdx.x]\n__shared__ bool flag_[128];\n";
  check(table);
}

TEST_CASE("integer intrinsics of 64 bits, and of 128 in two words") {
  Table table{.type = "unsigned long long", .values = interesting_longs()};
  table.rows = {
      {"__brevll(a)",
       LONGS(static_cast<L>(reversed(static_cast<U>(a))) << 32 | reversed(static_cast<U>(a >> 32)))},
      {"__clzll((long long)a)", LONGS(std::countl_zero(a))},
      {"__ffsll((long long)a)", LONGS(a == 0 ? 0 : std::countr_zero(a) + 1)},
      {"__popcll(a)", LONGS(std::popcount(a))},
      {"__mul64hi((long long)a, (long long)b)", LONGS((static_cast<Wide>(sa) * sb) >> 64)},
      {"__umul64hi(a, b)", LONGS((static_cast<UnsignedWide>(a) * b) >> 64)},
      {"b == 0 ? 0 : a / b", LONGS(b == 0 ? 0 : a / b)},
      {"b == 0 ? 0 : a % b", LONGS(b == 0 ? 0 : a % b)},
      {"b == 0 || b == ~0ull ? 0 : (long long)a / (long long)b", LONGS(b == 0 || b == ~0ull ? 0 : sa / sb)},
      {"b == 0 || b == ~0ull ? 0 : (long long)a % (long long)b", LONGS(b == 0 || b == ~0ull ? 0 : sa % sb)},
      {"llmin((long long)a, (long long)b)", LONGS(std::min(sa, sb))},
      {"ullmax(a, b)", LONGS(std::max(a, b))},
      {"(long long)a >> (b & 63)", LONGS(sa >> (b & 63))},
      {"a << (b & 63)", LONGS(a << (b & 63))},
      {"(u64)(((unsigned __int128)a * b + c) >> 64)", LONGS((static_cast<UnsignedWide>(a) * b + c) >> 64)},
      {"(u64)(((unsigned __int128)a << 64 | b) / (c | 1))",
       LONGS((static_cast<UnsignedWide>(a) << 64 | b) / (c | 1))},
      {"(u64)(((__int128)(long long)a * (long long)b) % (__int128)(c | 1))",
       LONGS((static_cast<Wide>(sa) * sb) % static_cast<Wide>(c | 1))},
  };
  table.options = {"--device-int128"};
  check(table);
}

TEST_CASE("SIMD intrinsics on halves and bytes of a word") {
  for (const unsigned n : {2u, 4u}) {
    Table table{.type = "unsigned", .values = interesting_words()};
    table.rows = simd_rows(n);
    check(table);
  }
}

TEST_CASE("quotients and remainders of neighbours, where warps step over multiples and where they do not") {
  if (!ready()) return;
  constexpr unsigned kThreads = 256, kBlocks = 8, kCount = kThreads * kBlocks;
  const std::string source = R"(
    extern "C" __global__ void k(const unsigned* table, unsigned size, T base, T divisor, u64* out) {
      const unsigned i = (blockIdx.y * blockDim.y + threadIdx.y) * 16 + threadIdx.x;
      const T a = base + (T)i, row = a / divisor, column = a % divisor;
      u64 result = (u64)row * 1000003u + (u64)column;
      if ((row & 1) != 0) result ^= 0x5555;
      if (column >= 0 && (u64)column < size) result += (u64)table[column] << 32;
      for (T k = 1; k < 4; ++k) result = result * 31 + (u64)((a + k) % divisor);
      out[i] = result;
    })";
  const auto compare = [&]<class T>(T, const char* type, std::span<const std::int64_t> bases) {
    using Unsigned = std::make_unsigned_t<T>;
    std::vector<std::uint32_t> table(1500);
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::uint32_t>(i * 2654435761u);
    const Kernel kernel =
        cuda_test::session()
            .load_cuda(std::string("typedef unsigned long long u64;\ntypedef ") + type + " T;\n" + source)
            .kernel();
    for (const std::int64_t start : bases)
      for (const std::int64_t by : {1, 2, 7, 16, 31, 32, 33, 64, 100, 1000, 1024, 4096, -3, -1000}) {
        const T base = static_cast<T>(start), divisor = static_cast<T>(by);
        std::vector<std::uint64_t> out(kCount), expected(kCount);
        for (std::uint32_t i = 0; i < kCount; ++i) {
          const auto plus = [](T x, std::int64_t y) {
            return static_cast<T>(static_cast<Unsigned>(x) + static_cast<Unsigned>(y));
          };
          const T a = plus(base, i), row = a / divisor, column = a % divisor;
          std::uint64_t result =
              static_cast<std::uint64_t>(row) * 1000003u + static_cast<std::uint64_t>(column);
          if ((row & 1) != 0) result ^= 0x5555;
          if (column >= 0 && static_cast<std::uint64_t>(column) < table.size())
            result += std::uint64_t{table[static_cast<std::size_t>(column)]} << 32;
          for (int k = 1; k < 4; ++k) result = result * 31 + static_cast<std::uint64_t>(plus(a, k) % divisor);
          expected[i] = result;
        }
        kernel({.grid = {1, kBlocks}, .block = {16, kThreads / 16}})(
            In(table), static_cast<std::uint32_t>(table.size()), base, divisor, Out(out));
        CHECK_MESSAGE(out == expected, type, " from ", start, " by ", by);
      }
  };
  constexpr std::int64_t kWords[] = {0, 5, 990, -20, -1500, 0x7ffff000 - 3000};
  constexpr std::int64_t kLongs[] = {
      0, 5, 990, -20, -1500, 0x7fffffff - 100, 0xffffffff - 100, INT64_MAX - 9000};
  constexpr std::int64_t kUnsigned[] = {0, 990, 0x7fffffff - 100, 0xffffffff - 100};
  constexpr std::int64_t kUnsignedLongs[] = {0, 990, 0xffffffff - 100, INT64_MAX - 100, -100};
  compare(std::int32_t{}, "int", kWords);
  compare(std::uint32_t{}, "unsigned", kUnsigned);
  compare(std::int64_t{}, "long long", kLongs);
  compare(std::uint64_t{}, "unsigned long long", kUnsignedLongs);
}

TEST_CASE("the sign of a remainder is asked for behind a loop, by lanes that came in different ways") {
  if (!ready()) return;
  constexpr int kCount = 256;
  const Kernel kernel = cuda_test::session()
                            .load_cuda(R"(
    extern "C" __global__ void k(int first, int divisor, int rounds, const int* in, int* out) {
      const int i = blockIdx.x * blockDim.x + threadIdx.x, rest = (i + first) % divisor;
      int sum = 0;
      for (int k = 0; k < rounds + (int)(threadIdx.x / 48); ++k) sum += in[k * 64 + (rest & 63)];
      out[i] = rest < 0 ? sum + rest + divisor : 3 * sum + rest;
    })")
                            .kernel();
  std::vector<std::int32_t> in(64 * 8), out(kCount), expected(kCount);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::int32_t>(i * i % 1009);
  for (const int first : {-300, -100, -16, 0, 70})
    for (const int divisor : {1000, 300, 64, 7, -500}) {
      for (int i = 0; i < kCount; ++i) {
        const int rest = (i + first) % divisor;
        int sum = 0;
        for (int k = 0; k < 3 + i % 64 / 48; ++k) sum += in[static_cast<std::size_t>(k * 64 + (rest & 63))];
        expected[static_cast<std::size_t>(i)] = rest < 0 ? sum + rest + divisor : 3 * sum + rest;
      }
      kernel({.grid = kCount / 64, .block = 64})(first, divisor, 3, In(in), Out(out));
      CHECK_MESSAGE(out == expected, first, " by ", divisor);
    }
}

TEST_CASE("the sign of remainders by one divisor is asked for in an unrolled loop, without a branch") {
  if (!ready()) return;
  constexpr int kCount = 128;
  const Kernel kernel = cuda_test::session()
                            .load_cuda(R"(
    extern "C" __global__ void k(int rounds, int divisor, int* out) {
      const int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i >= 100) return;
      const long long by = divisor;
      long long sum = 0;
      for (int q = 0; q < rounds; ++q) {
        const long long rest = q * (i - 5) % by;
        sum += (rest != 0) & (int)((unsigned long long)(rest ^ by) >> 63) ? rest + by : rest;
      }
      out[i] = (int)sum;
    })")
                            .kernel();
  std::vector<std::int32_t> out(kCount), expected(kCount);
  for (const int divisor : {7, 1, -7, 1000})
    for (const int rounds : {0, 3, 50}) {
      for (int i = 0; i < 100; ++i) {
        std::int64_t sum = 0;
        for (int q = 0; q < rounds; ++q) {
          const int rest = q * (i - 5) % divisor;
          sum += rest != 0 && (rest < 0) != (divisor < 0) ? rest + divisor : rest;
        }
        expected[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(sum);
      }
      kernel({.grid = kCount / 64, .block = 64})(rounds, divisor, Out(out));
      CHECK_MESSAGE(out == expected, rounds, " rounds, by ", divisor);
    }
}

TEST_CASE("one divisor, of which every lane asks whether it is negative, behind a loop and behind a branch") {
  if (!ready()) return;
  constexpr int kCount = 64;
  const Kernel kernel = cuda_test::session()
                            .load_cuda(R"(
    typedef long long s64;
    __device__ __forceinline__ bool is_opposite(s64 a, s64 b) { return b < 0 ? a > 0 : a < 0; }
    extern "C" __global__ void k(s64 n, int d, const int* in, s64* quotients, s64* remainders, int* sums) {
      const int i = threadIdx.x;
      int sum = 0;
      const s64 divisor = (unsigned long long)n + 1 < 2 ? 1ll : n;
      s64 quotient = i / divisor;
      quotient -= is_opposite(i, divisor) && quotient * divisor != i ? 1 : 0;
      quotients[i] = quotient;
      if ((in[i & 31] & 1) != 0) sums[i + 64] = d;
      for (int j = 0; j < d; ++j) sum += in[(i + 8 * j) & 31];
      if ((sum & 2) != 0) sums[i + 64] = i;
      s64 rest = d % divisor;
      if (is_opposite(rest, divisor)) rest += divisor;
      remainders[i] = rest;
      sums[i] = sum;
    })")
                            .kernel();
  std::vector<std::int32_t> in(32);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::int32_t>(i * i);
  for (const std::int64_t n : {7, -7, 1000, -1000, 1, -1}) {
    std::vector<std::int64_t> quotients(kCount), remainders(kCount), got[2] = {quotients, quotients};
    std::vector<std::int32_t> sums(2 * kCount), got_sums(2 * kCount);
    const auto down = [n](std::int64_t a) { return a / n - (a % n != 0 && (a < 0) != (n < 0) ? 1 : 0); };
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto number = static_cast<std::int64_t>(i);
      remainders[i] = n == -1 ? 0 : 3 - down(3) * n;
      quotients[i] = n == -1 ? number : down(number);
      for (std::size_t j = 0; j < 3; ++j) sums[i] += in[(i + 8 * j) & 31];
      if ((in[i & 31] & 1) != 0) sums[i + kCount] = 3;
      if ((sums[i] & 2) != 0) sums[i + kCount] = static_cast<std::int32_t>(i);
    }
    kernel({.grid = 1, .block = kCount})(n, std::int32_t{3}, In(in), Out(got[0]), Out(got[1]),
                                         InOut(got_sums));
    CHECK_MESSAGE(got[0] == quotients, n);
    CHECK_MESSAGE(got[1] == remainders, n);
    CHECK_MESSAGE(got_sums == sums, n);
  }
}

TEST_CASE("quotients rounded down and their remainders, as Python has them") {
  if (!ready()) return;
  constexpr int kCount = 512;
  const auto compare = [&]<class T>(T, const char* type) {
    const Kernel kernel = cuda_test::session()
                              .load_cuda(std::string(R"(
      #include <quern/cuda/arithmetic.cuh>
      typedef )") + type + R"( T;
      extern "C" __global__ void k(T first, T divisor, T* quotients, T* remainders, T* both) {
        const int i = blockIdx.x * blockDim.x + threadIdx.x;
        const T a = first + (T)i;
        if (i % 3 == 0) quotients[i] = quern::floor_div(a, divisor);
        else remainders[i] = quern::floor_mod(a, divisor);
        both[i] = quern::floor_div(a, divisor) * (T)7 + quern::floor_mod(a, divisor);
      })")
                              .kernel();
    const T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    for (const T first :
         {T{0}, T{5}, static_cast<T>(-300), static_cast<T>(-33), least, static_cast<T>(most - 100)})
      for (const T divisor : {T{0}, T{1}, static_cast<T>(-1), T{2}, T{7}, static_cast<T>(-7), T{64}, T{100},
                              static_cast<T>(-100), static_cast<T>(1000), least, most}) {
        std::vector<T> quotients(kCount), remainders(kCount), both(kCount),
            got[3] = {quotients, quotients, both};
        for (int i = 0; i < kCount; ++i) {
          const T a = static_cast<T>(static_cast<std::make_unsigned_t<T>>(first) + static_cast<unsigned>(i));
          Wide quotient = 0, rest = 0;
          if (divisor != 0) {
            quotient = Wide{a} / divisor;
            if (quotient * divisor != Wide{a} && (a < 0) != (divisor < 0)) --quotient;
            rest = Wide{a} - quotient * divisor;
            if (quotient != static_cast<T>(quotient)) quotient = 0;
          }
          const auto at = static_cast<std::size_t>(i);
          if (i % 3 == 0)
            quotients[at] = static_cast<T>(quotient);
          else
            remainders[at] = static_cast<T>(rest);
          both[at] = static_cast<T>(static_cast<std::make_unsigned_t<T>>(quotient) * 7u +
                                    static_cast<std::make_unsigned_t<T>>(rest));
        }
        kernel({.grid = kCount / 64, .block = 64})(first, divisor, InOut(got[0]), InOut(got[1]), Out(got[2]));
        CHECK_MESSAGE(got[0] == quotients, type, " quotients from ", +first, " by ", +divisor);
        CHECK_MESSAGE(got[1] == remainders, type, " remainders from ", +first, " by ", +divisor);
        CHECK_MESSAGE(got[2] == both, type, " both from ", +first, " by ", +divisor);
      }
  };
  compare(std::int8_t{}, "signed char");
  compare(std::uint8_t{}, "unsigned char");
  compare(std::int16_t{}, "short");
  compare(std::int32_t{}, "int");
  compare(std::uint32_t{}, "unsigned");
  compare(std::int64_t{}, "long long");
  compare(std::uint64_t{}, "unsigned long long");
}
