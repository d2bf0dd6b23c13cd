// SPDX-License-Identifier: Apache-2.0
// Loops over rows at their limits: what threads must not load, operations that some processors refuse,
// faults, loops without an end, and loops in which threads wait for or talk to others.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "rows.hpp"

namespace quern::cuda_test::rows {
namespace {

/// An index that is outside of every allocation.
constexpr std::int64_t kFar = std::int64_t{1} << 43;

using Longs = std::vector<std::int64_t>;

/// Rows with an index that must not be used before and behind each of them.
struct Guarded {
  Longs first, end, column;
};
Guarded guarded_rows(std::size_t rows) {
  Guarded made;
  for (std::uint32_t i = 0; i < rows; ++i) {
    made.column.push_back(kFar);
    made.first.push_back(static_cast<std::int64_t>(made.column.size()));
    for (std::uint32_t e = 0; e < (i % 29 == 3 ? 90u : mixed(i) >> 29); ++e)
      made.column.push_back(mixed(i * 100 + e) >> 23);
    made.end.push_back(static_cast<std::int64_t>(made.column.size()));
  }
  made.column.push_back(-kFar);
  return made;
}

struct Fault {
  const char* name;
  const char* body;  ///< its load in line 6 is the one that fails
  const char* result = "CUDA_ERROR_ILLEGAL_ADDRESS";
};
/// In a kernel of (first, column, x, out): long long column has the index kFar in the row of one thread.
const std::vector<Fault> kFaults = {
    {"a sum", R"(
 for (int e = b; e < n; ++e) { const long long p = column[e];
#line 6
  sum += x[p];
  if (sum % 1024 == 1023) break; })"},
    {"other threads absent", R"(
 if (i % 3 == wrong % 3)
  for (int e = b; e < n; ++e) { const long long p = column[e];
#line 6
   sum = sum * 3 + x[p];
  })"},
    {"nested loops", R"(
 for (int e = b; e < n; ++e)
  for (unsigned k = 0; k < 1 + (unsigned long long)column[e] % 3; ++k) {
#line 6
   sum += x[column[e] + k];
   if (sum % 64 == 63) break; })"},
    {"a call", R"(
 sum = far_row(x, column, b, n);)"},
    {"the second of three loads", R"(
 for (int e = b; e < n; ++e) { const long long p = column[e];
  sum += x[p % 256];
#line 6
  sum += x[p];
  sum += x[p % 128]; })"},
    {"an address between two elements", R"(
 for (int e = b; e < n; ++e) { const long long p = column[e];
#line 6
  sum += *(const unsigned*)((const char*)x + (p == far ? 2 : 4 * p));
 })",
     "CUDA_ERROR_MISALIGNED_ADDRESS"},
    {"a trap", R"(
 for (int e = b; e < n; ++e) { const long long p = column[e];
#line 6
  if (p == far) __trap();
  sum += x[p]; })",
     "CUDA_ERROR_LAUNCH_FAILED"},
    {"an assertion", R"(
 for (int e = b; e < n; ++e) { const long long p = column[e];
#line 6
  assert(p < far);
  sum += x[p]; })",
     "CUDA_ERROR_ASSERT"},
};

}  // namespace

TEST_CASE("threads load nothing beyond their rows, and threads without a row load nothing") {
  if (!ready()) return;
  const Module module = load(R"(
    #define KERNEL(name) extern "C" __global__ void name(const long long* first, const long long* end, const long long* column, const unsigned* x, u64* out, int rows)
    #define ROW const int i = blockIdx.x * blockDim.x + threadIdx.x; const bool mine = i < rows; long long e = mine ? first[i] : 1ll << 50; const long long n = mine ? end[i] : 1ll << 51; u64 s = 0;
    KERNEL(sum) { ROW if (mine) for (; e < n; ++e) s = s * 3 + x[column[e]]; out[i] = s; }
    KERNEL(search) { ROW if (mine) { while (e < n && x[column[e]] % 5 != 0) { ++e; ++s; } out[i] = s; } }
    KERNEL(ahead) { ROW if (!mine) return; unsigned v = e < n ? x[column[e]] : 0; while (e < n) { const unsigned now = v; if (e + 1 < n) v = x[column[e + 1]]; s = s * 3 + now; ++e; } out[i] = s; }
    KERNEL(ended) { ROW if (mine && first[i] < n) for (;; ++e) { const long long p = column[e]; if (p >= 512 || p < 0) break; s = s * 3 + x[p]; } out[i] = s; }
    KERNEL(chosen) { ROW if (mine) for (--e; e <= n; ++e) { const long long p = column[e]; const unsigned* q = p >= 0 && p < 512 ? x + p : (const unsigned*)0; if (q) s = s * 3 + *q; } out[i] = s; })");
  constexpr std::size_t kRows = 180;
  const Guarded rows = guarded_rows(kRows);
  std::vector<std::uint32_t> x(512);
  for (std::uint32_t p = 0; p < 512; ++p) x[p] = mixed(p + 3);
  std::vector<std::uint64_t> sums(192), searches(192);
  for (std::size_t i = 0; i < kRows; ++i) {
    bool found = false;
    for (auto e = static_cast<std::size_t>(rows.first[i]); e < static_cast<std::size_t>(rows.end[i]); ++e) {
      const std::uint32_t v = x[static_cast<std::size_t>(rows.column[e])];
      sums[i] = sums[i] * 3 + v;
      found = found || v % 5 == 0;
      if (!found) ++searches[i];
    }
  }
  auto first = session().to_device(rows.first);
  auto end = session().to_device(rows.end);
  auto column = session().to_device(rows.column);
  auto places = session().to_device(x);
  for (const char* const name : {"sum", "search", "ahead", "ended", "chosen"}) {
    INFO(std::string(name));
    auto out = session().to_device(std::vector<std::uint64_t>(192));
    module.kernel(name)({.grid = 2, .block = 96})(first, end, column, places, out,
                                                  static_cast<std::int32_t>(kRows));
    CHECK(out.copy_to_host() == (std::string(name) == "search" ? searches : sums));
  }
}

// PTX leaves the quotient by zero open, but it is no fault; shifts by more than the width give 0 or the sign.
TEST_CASE("quotients by zero and of the least integer by -1 are no faults in a loop over a row") {
  if (!ready()) return;
  const Module module = load(R"(
    #define PTX2(name, T, U, op, c) __forceinline__ T name(T a, U b) { T r; asm(op " %0, %1, %2;" : "=" c(r) : c(a), PTX_B(b)); return r; }
    #define PTX_B(b) "r"(b)
    PTX2(shl, unsigned, unsigned, "shl.b32", "r") PTX2(shr, unsigned, unsigned, "shr.u32", "r") PTX2(sar, int, unsigned, "shr.s32", "r")
    PTX2(shl64, u64, unsigned, "shl.b64", "l") PTX2(sar64, long long, unsigned, "shr.s64", "l") PTX2(div_u, unsigned, unsigned, "div.u32", "r")
    PTX2(div_s, int, int, "div.s32", "r") PTX2(rem_s, int, int, "rem.s32", "r") PTX2(rem_u, unsigned, unsigned, "rem.u32", "r")
    #undef PTX_B
    #define PTX_B(b) "l"(b)
    PTX2(div_l, long long, long long, "div.s64", "l") PTX2(rem_l, long long, long long, "rem.s64", "l") PTX2(div_m, u64, u64, "div.u64", "l")
    extern "C" __global__ void k(const Data* g, u64* out) { const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= g->rows) return; u64 h = 0;
      for (int e = g->first[i]; e < g->first[i + 1]; ++e) { const unsigned v = g->x[g->column[e]]; const int d = (int)(v % 5) - 2; const int a = v % 3 == 0 ? (int)0x80000000 : (int)v; const long long b = v % 7 == 0 ? (long long)(1ull << 63) : (long long)v << 20;
        const bool usual = d != 0 && d != -1;
        const unsigned q = div_u(v, d), r = rem_u(v, d); const int s = div_s(a, d), m = rem_s(a, d); const long long l = div_l(b, d), n = rem_l(b, d); const u64 w = div_m(b, d);
        if (usual) { h = mix(mix(h, (u64)q << 32 | r), (u64)s); h = mix(mix(h, m), mix(l, n)); h = mix(h, w); }
        const unsigned by = v >> 9 & 127; h = mix(mix(h, shl(v, by)), mix(shr(v, by), sar(a, by))); h = mix(h, mix(shl64(b, by), sar64(b, by))); if (h % 43 == 1) break; }
      out[i] = h; })");
  for (const Shape shape : {Shape::various, Shape::equal}) {
    const Data g = data_of(shape);
    std::vector<u64> expected(256);
    for (int i = 0; i < g.rows; ++i) {
      u64 h = 0;
      for (int e = g.first[i]; e < g.first[i + 1]; ++e) {
        const unsigned v = g.x[g.column[e]];
        const int d = static_cast<int>(v % 5) - 2;
        const int a = v % 3 == 0 ? INT32_MIN : static_cast<int>(v);
        const long long b = v % 7 == 0 ? INT64_MIN : static_cast<long long>(v) << 20;
        const auto u = static_cast<unsigned>(d);
        if (d != 0 && d != -1) {
          h = mix(mix(h, static_cast<u64>(v / u) << 32 | v % u), static_cast<u64>(a / d));
          h = mix(mix(h, static_cast<u64>(a % d)), mix(static_cast<u64>(b / d), static_cast<u64>(b % d)));
          h = mix(h, static_cast<u64>(b) / static_cast<u64>(static_cast<long long>(d)));
        }
        const unsigned by = v >> 9 & 127;
        h = mix(mix(h, by < 32 ? v << by : 0),
                mix(by < 32 ? v >> by : 0, static_cast<u64>(a >> std::min(by, 31u))));
        h = mix(h, mix(by < 64 ? static_cast<u64>(b) << by : 0, static_cast<u64>(b >> std::min(by, 63u))));
        if (h % 43 == 1) break;
      }
      expected[i] = h;
    }
    CHECK(OnDevice(g).run(module.kernel("k"), 2, 128, 256) == expected);
  }
}

TEST_CASE("faults in loops over rows are reported for their line and thread") {
  if (!ready()) return;
  for (const Fault& fault : kFaults)
    for (const unsigned threads : {64u, 48u}) {
      INFO(std::string(fault.name));
      CAPTURE(threads);
      const std::size_t all = 5 * threads, wrong = 2 * threads + 45;
      const Session own(SessionOptions{.device = "cpu", .isolated = true});
      LoadOptions options;
      options.options = {"-lineinfo"};
      options.file_name = "rows.cu";
      const Module module = own.load_cuda(
          R"(__device__ unsigned far_row(const unsigned*, const long long*, int, int);
extern "C" __global__ void reach(const int* first, const long long* column, const unsigned* x, unsigned* out, int wrong, long long far) {
 const int i = blockIdx.x * blockDim.x + threadIdx.x, b = first[i], n = first[i + 1]; unsigned sum = 0;)" +
              std::string(fault.body) + R"(
 out[i] = sum; }
__device__ __noinline__ unsigned far_row(const unsigned* x, const long long* column, int b, int n) { unsigned sum = 0; for (int e = b; e < n; ++e) {
#line 6
 sum += x[column[e]];
 } return sum; })",
          options);
      std::vector<std::int32_t> first(all + 1);
      for (std::uint32_t i = 0; i < all; ++i)
        first[i + 1] = first[i] + (i == wrong ? 5 : static_cast<std::int32_t>(mixed(i) >> 29));
      Longs column(static_cast<std::size_t>(first[all]));
      for (std::uint32_t e = 0; e < column.size(); ++e) column[e] = mixed(e) >> 24;
      column[static_cast<std::size_t>(first[wrong]) + 3] = kFar;
      auto first_there = own.to_device(first);
      auto column_there = own.to_device(column);
      auto x = own.to_device(std::vector<std::uint32_t>(258, 4));
      auto out = own.to_device(std::vector<std::uint32_t>(all));
      module.kernel("reach")({.grid = 5, .block = threads})(first_there, column_there, x, out,
                                                            static_cast<std::int32_t>(wrong), kFar);
      try {
        own.synchronize();
        FAIL_CHECK("no fault was reported");
      } catch (const DriverError& error) {
        INFO(std::string(error.what()));
        const DeviceFault& found = error.fault();
        CHECK(error.code() == ErrorCode::device_fault);
        CHECK(error.result_name() == fault.result);
        CHECK(found.kernel == "reach");
        REQUIRE(found.block.has_value());
        CHECK(*found.block == DeviceFault::Index{2, 0, 0});
        // A field that the device does not know is empty.
        if (found.thread) CHECK(*found.thread == DeviceFault::Index{45, 0, 0});
        if (found.threads) CHECK((found.threads->first[0] <= 45 && found.threads->second[0] >= 45));
        if (!found.file.empty()) CHECK(found.line == 6);
        if (found.access_bytes != 0) CHECK(found.access_bytes == 4);
      }
    }
}

// The vectors of constants are not part of the instructions.
TEST_CASE("kernels that differ in a constant have their own faults") {
  if (!ready()) return;
  for (const unsigned wrong : {20u, 30u, 9u}) {
    CAPTURE(wrong);
    const Session own(SessionOptions{.device = "cpu", .isolated = true});
    const Module module = own.load_cuda(
        "extern \"C\" __global__ void k(unsigned* d, long long far) { const unsigned i = threadIdx.x; d[i + "
        "(i == " +
        std::to_string(wrong) + " ? far : 0)] = i; }");
    auto data = own.to_device(std::vector<std::uint32_t>(64));
    module.kernel("k")({.grid = 1, .block = 64})(data, kFar);
    try {
      own.synchronize();
      FAIL_CHECK("no fault was reported");
    } catch (const DriverError& error) {
      INFO(std::string(error.what()));
      REQUIRE(error.fault().thread.has_value());
      CHECK(*error.fault().thread == DeviceFault::Index{wrong, 0, 0});
    }
  }
}

TEST_CASE("a time limit ends a loop over a row that has no end") {
  if (!ready()) return;
  for (const unsigned threads : {64u, 17u}) {
    const Session own(
        SessionOptions{.device = "cpu", .isolated = true, .launch_timeout = std::chrono::milliseconds(100)});
    const Module module =
        own.load_cuda(R"(extern "C" __global__ void k(const int* next, const unsigned* x, unsigned* out) {
      const int i = threadIdx.x; int p = i; unsigned sum = 0; if (i != 3) while (x[p] != 0) { sum += x[p]; p = next[p]; } out[i] = sum; })");
    std::vector<std::int32_t> next(64);
    for (std::int32_t i = 0; i < 64; ++i) next[i] = (i + 7) % 64;
    auto next_there = own.to_device(next);
    auto x = own.to_device(std::vector<std::uint32_t>(64, 4));
    auto out = own.to_device(std::vector<std::uint32_t>(64));
    module.kernel("k")({.grid = 3, .block = threads})(next_there, x, out);
    CHECK_THROWS_AS(own.synchronize(), DriverError);
  }
}

// A triangular system: a thread needs the values of the rows before its own, of its own warp, too.
TEST_CASE("threads that wait for the rows of other threads of their warp") {
  if (!ready()) return;
  const Module module = load(R"(extern "C" __global__ void k(const Data* g, u64* out) {
    const int i = threadIdx.x; volatile u64* value = out; volatile u64* done = out + 256; u64 sum = g->x[i];
    const int b = g->first[i], n = i == 0 || i >= g->rows ? b : g->first[i + 1] < b + 6 ? g->first[i + 1] : b + 6;
    for (int e = b; e < n; ++e) { const int k = g->column[e] % i; while (done[k] == 0); __threadfence(); sum = mix(sum, value[k]); }
    value[i] = sum; __threadfence(); done[i] = 1; })");
  const Data g = data_of(Shape::various);
  std::vector<u64> expected(512, 1);
  for (int i = 0; i < 128; ++i) {
    expected[i] = g.x[i];
    if (i != 0)
      for (int e = g.first[i]; e < std::min(g.first[i + 1], g.first[i] + 6); ++e)
        expected[i] = mix(expected[i], expected[g.column[e] % i]);
  }
  std::fill(expected.begin() + 128, expected.begin() + 256, 0);
  std::fill(expected.begin() + 256 + 128, expected.end(), 0);
  CHECK(OnDevice(g).run(module.kernel("k"), 1, 128, 512) == expected);
}

TEST_CASE("rows tile by tile, with barriers between the loops of one row") {
  if (!ready()) return;
  const Module module = load(R"(extern "C" __global__ void k(const Data* g, u64* out) {
    __shared__ unsigned tile[64]; const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t; int e = i < g->rows ? g->first[i] : 0; const int n = i < g->rows ? g->first[i + 1] : 0; u64 h = 0; unsigned count = 0;
    for (int from = 0; from < 512; from += 64) {
      if (t < 64) tile[t] = g->x[from + t] * 5; __syncthreads();
      while (e < n && g->sorted[e] < from + 64) { h = mix(h, tile[g->sorted[e] - from]); ++e; if (h % 77 == 3) continue; ++count; }
      __syncthreads(); }
    out[i] = mix(h, count); })");
  for (const Shape shape : {Shape::various, Shape::equal, Shape::single}) {
    const Data g = data_of(shape);
    std::vector<u64> expected(288);
    for (int i = 0; i < 288; ++i) {
      u64 h = 0, count = 0;
      for (int e = g.first[std::min(i, g.rows)]; i < g.rows && e < g.first[i + 1]; ++e) {
        h = mix(h, g.x[g.sorted[e]] * 5);
        if (h % 77 != 3) ++count;
      }
      expected[i] = mix(h, count);
    }
    CHECK(OnDevice(g).run(module.kernel("k"), 3, 96, 288) == expected);
  }
}

TEST_CASE("a warp's threads go through their rows in step, and vote about the end") {
  if (!ready()) return;
  const Module module = load(R"(extern "C" __global__ void k(const Data* g, u64* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x; int e = i < g->rows ? g->first[i] : 0; const int n = i < g->rows ? g->first[i + 1] : 0; u64 h = 0; int rounds = 0;
    while (__any_sync(~0u, e < n)) { unsigned v = 0; for (int k = 0; k < 3 && e < n; ++k, ++e) v = v * 3 + g->x[g->column[e]];
      h = mix(h, v + __shfl_xor_sync(~0u, v, 1)); ++rounds; }
    out[i] = mix(h, rounds); })");
  const Data g = data_of(Shape::various);
  std::vector<u64> expected(256);
  for (int warp = 0; warp < 8; ++warp) {
    int longest = 0;
    const auto length = [&](int i) { return i < g.rows ? g.first[i + 1] - g.first[i] : 0; };
    for (int i = 32 * warp; i < 32 * warp + 32; ++i) longest = std::max(longest, (length(i) + 2) / 3);
    const auto part = [&](int i, int round) {
      unsigned v = 0;
      for (int k = 3 * round; k < std::min(3 * round + 3, length(i)); ++k)
        v = v * 3 + g.x[g.column[g.first[i] + k]];
      return v;
    };
    for (int i = 32 * warp; i < 32 * warp + 32; ++i) {
      u64 h = 0;
      for (int round = 0; round < longest; ++round) h = mix(h, part(i, round) + part(i ^ 1, round));
      expected[i] = mix(h, static_cast<u64>(longest));
    }
  }
  CHECK(OnDevice(g).run(module.kernel("k"), 2, 128, 256) == expected);
}

// Updates without a result may be gathered: a loop over the updated memory must see them all.
TEST_CASE("loops over rows see the thread's own atomics, and after a barrier those of its block") {
  if (!ready()) return;
  constexpr unsigned kThreads = 128, kBlocks = 16, kAll = kThreads * kBlocks;
  const Module module =
      load(kMixedSource + std::string(R"(extern "C" __global__ void k(const Data* g, u64* out, unsigned* d) {
    __shared__ unsigned counts[64], tops[64]; const unsigned t = threadIdx.x, all = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + t; u64 h = 0;
    const int b = g->first[i % 250], n = g->first[i % 250 + 1]; unsigned* const own = d + i * 1001 % all;
    for (unsigned r = 0; r < 3; ++r) {
      if (t < 64) counts[t] = tops[t] = 0;
      for (unsigned u = 0; u < 6; ++u) atomicAdd(own + (mixed(i + u) >> 30) * all, 5 + u);
      unsigned s = 0; for (int e = b; e < n; ++e) { s = s * 3 + own[(unsigned)(g->column[e] % 4) * all]; if (s % 41 == 2) break; }
      __syncthreads(); atomicAdd(&counts[s % 64], 1u + r); atomicMax(&tops[(s >> 6) % 64], s >> 12); __syncthreads();
      unsigned c = 0; for (int e = b; e < n; ++e) { c = c * 3 + counts[g->column[e] % 64] + tops[g->column[e] % 64]; if (c % 67 == 5) break; }
      const unsigned* const next = d + (blockIdx.x * blockDim.x + (t + 17) % blockDim.x) * 1001 % all;
      for (int e = b; e < n; ++e) c = c * 5 + next[(unsigned)(g->column[e] % 4) * all];
      __syncthreads(); h = mix(h, (u64)s << 32 | c); }
    out[i] = h; })"));
  const Data g = data_of(Shape::various);
  std::vector<std::uint32_t> d(4 * std::size_t{kAll});
  auto d_there = session().to_device(d);
  std::vector<std::uint64_t> expected(kAll);
  const auto at = [&](unsigned i, int e) -> std::uint32_t& {
    return d[i * 1001 % kAll + static_cast<unsigned>(g.column[e] % 4) * kAll];
  };
  for (unsigned block = 0; block < kBlocks; ++block)
    for (unsigned r = 0; r < 3; ++r) {
      unsigned counts[64] = {}, tops[64] = {};
      std::vector<unsigned> sums(kThreads);
      for (unsigned t = 0; t < kThreads; ++t) {
        const unsigned i = block * kThreads + t;
        unsigned& s = sums[t];
        for (unsigned u = 0; u < 6; ++u) d[i * 1001 % kAll + (mixed(i + u) >> 30) * kAll] += 5 + u;
        for (int e = g.first[i % 250]; e < g.first[i % 250 + 1]; ++e)
          if (s = s * 3 + at(i, e); s % 41 == 2) break;
        counts[s % 64] += 1 + r;
        tops[(s >> 6) % 64] = std::max(tops[(s >> 6) % 64], s >> 12);
      }
      for (unsigned t = 0; t < kThreads; ++t) {
        const unsigned i = block * kThreads + t;
        const int b = g.first[i % 250], n = g.first[i % 250 + 1];
        unsigned c = 0;
        for (int e = b; e < n; ++e)
          if (c = c * 3 + counts[g.column[e] % 64] + tops[g.column[e] % 64]; c % 67 == 5) break;
        for (int e = b; e < n; ++e) c = c * 5 + at(block * kThreads + (t + 17) % kThreads, e);
        expected[i] = mix(expected[i], static_cast<u64>(sums[t]) << 32 | c);
      }
    }
  auto out = session().to_device(std::vector<std::uint64_t>(kAll));
  auto data = session().to_device(words_of(g));
  module.kernel("k")({.grid = kBlocks, .block = kThreads})(data, out, d_there);
  CHECK(out.copy_to_host() == expected);
  CHECK(d_there.copy_to_host() == d);
}

}  // namespace quern::cuda_test::rows
