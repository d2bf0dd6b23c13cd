// SPDX-License-Identifier: Apache-2.0
// Loops over rows at many places of a kernel: under conditions, in other loops, in functions, before and
// after barriers, in blocks of all extents; and memory that changes before and after them.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "rows.hpp"

namespace quern::cuda_test::rows {
namespace {

const std::vector<Loop> kLoops = {QUERN_LOOP("sums and exits",
                                             {
                                               u64 h = (u64)t;
                                               float f = 0;
                                               bool odd = false;
                                               int found = -1;
                                               for (int e = b; e < n; ++e) {
                                                 const int p = g.column[e];
                                                 h = mix(h, g.x[p]);
                                                 f = f * 0.5f + g.f[p];
                                                 odd = odd != ((g.x[p] & 1) != 0);
                                                 if (g.x[p] % 53 == 11) return h + 1;
                                                 if (g.s[p] % 17 == 5) {
                                                   found = p;
                                                   break;
                                                 }
                                               }
                                               return mix(mix(h, bits(f)), (u64)found * 2 + odd);
                                             }),
                                  QUERN_LOOP("nested", {
                                    unsigned h = g.x[t];
                                    int e = b;
                                    for (; e < n; ++e) {
                                      const int k = g.column[e] % g.rows;
                                      const int end =
                                          g.first[k + 1] < g.first[k] + 10 ? g.first[k + 1] : g.first[k] + 10;
                                      for (int q = g.first[k]; q < end; ++q) {
                                        h = h * 5 + g.x[g.column[q]];
                                        if (h % 19 == 3) break;
                                      }
                                      if (h % 83 == 5) break;
                                    }
                                    return mix(h, (u64)e);
                                  })};

/// The body of a kernel that stores into out[0 .. 2 * threads - 1], with F(row) as the loop's value, and
/// its results: `f(row, t)`, by global number of thread. i: number of the thread, t: threadIdx.x, all:
/// number of threads.
struct Place {
  const char* name;
  const char* body;
  std::function<void(const Data& g, const std::function<u64(int, int)>& f, int all, int block, u64* out)>
      host;
};

const std::vector<Place> kPlaces = {
    {"other lanes absent", "if (i < g.rows && g.x[i] % 3 != 0) out[i] = F(i);",
     [](const Data& g, const auto& f, int, int block, u64* out) {
       for (int i = 0; i < g.rows; ++i)
         if (g.x[i] % 3 != 0) out[i] = f(i, i % block);
     }},
    {"one lane of a warp", "if (i < g.rows && i % 32 == 7) out[i] = F(i);",
     [](const Data& g, const auto& f, int, int block, u64* out) {
       for (int i = 7; i < g.rows; i += 32) out[i] = f(i, i % block);
     }},
    {"after a return of others",
     "if (i >= g.rows || g.x[i] % 5 == 0) return; u64 v = F(i); if (v % 3 == 0) return; out[i] = v + "
     "F(g.rows - 1 - i);",
     [](const Data& g, const auto& f, int, int block, u64* out) {
       for (int i = 0; i < g.rows; ++i) {
         if (g.x[i] % 5 == 0) continue;
         const u64 v = f(i, i % block);
         if (v % 3 != 0) out[i] = v + f(g.rows - 1 - i, i % block);
       }
     }},
    {"a grid-stride loop", "for (int k = i; k < g.rows; k += all) out[k] = F(k);",
     [](const Data& g, const auto& f, int all, int block, u64* out) {
       for (int i = 0; i < all; ++i)
         for (int k = i; k < g.rows; k += all) out[k] = f(k, i % block);
     }},
    {"a grid-stride loop with a state",
     "u64 h = i; int done = 0; for (int k = i; k < g.rows; k += all) { h = mix(h, F(k)); ++done; if (h % 7 "
     "== 0) break; } out[i] = mix(h, done);",
     [](const Data& g, const auto& f, int all, int block, u64* out) {
       for (int i = 0; i < all; ++i) {
         u64 h = i, done = 0;
         for (int k = i; k < g.rows; k += all) {
           h = mix(h, f(k, i % block)), ++done;
           if (h % 7 == 0) break;
         }
         out[i] = mix(h, done);
       }
     }},
    {"both sides of a branch",
     "if (i < g.rows) { if (g.x[i] & 1) out[i] = F(i); else out[i] = F(g.rows - 1 - i) * 3; }",
     [](const Data& g, const auto& f, int, int block, u64* out) {
       for (int i = 0; i < g.rows; ++i)
         out[i] = (g.x[i] & 1) != 0 ? f(i, i % block) : f(g.rows - 1 - i, i % block) * 3;
     }},
    {"cases",
     "if (i < g.rows) switch (g.x[i] >> 7 & 3) { case 0: out[i] = F(i); break; case 1: out[i] = mix(F(i), "
     "F(i / 2)); break; case 2: break; default: out[i] = F(i / 3) + 1; }",
     [](const Data& g, const auto& f, int, int block, u64* out) {
       for (int i = 0; i < g.rows; ++i) {
         const int t = i % block;
         switch (g.x[i] >> 7 & 3) {
           case 0:
             out[i] = f(i, t);
             break;
           case 1:
             out[i] = mix(f(i, t), f(i / 2, t));
             break;
           case 2:
             break;
           default:
             out[i] = f(i / 3, t) + 1;
         }
       }
     }},
    {"as often as the data say",
     "u64 h = 0; for (unsigned k = g.x[i] % 5; k-- > 0;) { if (k == 3 && (i & 1)) continue; h = mix(h, F((i "
     "+ (int)k) % g.rows)); } out[i] = h;",
     [](const Data& g, const auto& f, int all, int block, u64* out) {
       for (int i = 0; i < all; ++i) {
         u64 h = 0;
         for (unsigned k = g.x[i] % 5; k-- > 0;)
           if (k != 3 || (i & 1) == 0) h = mix(h, f((i + static_cast<int>(k)) % g.rows, i % block));
         out[i] = h;
       }
     }},
    {"a function that is called",
     "if (i < g.rows) out[i] = i % 3 ? called(g, i, t) : called(g, g.rows - 1 - i, t + 1);",
     [](const Data& g, const auto& f, int, int block, u64* out) {
       for (int i = 0; i < g.rows; ++i)
         out[i] = i % 3 != 0 ? f(i, i % block) : f(g.rows - 1 - i, i % block + 1);
     }},
    {"a recursive function", "if (i < g.rows) out[i] = again(g, i, t, (int)(g.x[i] % 4));",
     [](const Data& g, const auto& f, int, int block, u64* out) {
       const std::function<u64(int, int, int)> again = [&](int i, int t, int depth) {
         const u64 v = f(i, t);
         return depth == 0 || v % 5 == 1
                    ? v
                    : mix(v, again(static_cast<int>(v % g.rows), t, depth - 1)) + f(i, t + 1);
       };
       for (int i = 0; i < g.rows; ++i) out[i] = again(i, i % block, static_cast<int>(g.x[i] % 4));
     }},
    {"between barriers, votes and shuffles",
     R"(__shared__ u64 values[256]; const int lane = t % 32; values[t] = i < g.rows ? F(i) : 1; __syncthreads();
      const u64 other = values[blockDim.x - 1 - t]; u64 mine = F((int)(other % g.rows)); const unsigned votes = __ballot_sync(~0u, mine & 1);
      const bool few = __all_sync(~0u, mine % 64 != 0); mine ^= __shfl_sync(~0u, mine, lane ^ 5); if (few && (votes >> lane & 1)) mine += F(i % g.rows);
      __syncthreads(); mine += __shfl_down_sync(~0u, mine, 1); values[t] = mine; const int odd = __syncthreads_count((int)(mine & 1)); out[i] = mix(values[t ^ 32], odd);)",
     [](const Data& g, const auto& f, int all, int block, u64* out) {
       std::vector<u64> value(all), mine(all), next(all);
       std::vector<unsigned> votes(all / 32);
       for (int i = 0; i < all; ++i) value[i] = i < g.rows ? f(i, i % block) : 1;
       std::vector<bool> few(all / 32, true);
       for (int i = 0; i < all; ++i) {
         mine[i] = f(static_cast<int>(value[i / block * block + block - 1 - i % block] % g.rows), i % block);
         votes[i / 32] |= static_cast<unsigned>(mine[i] & 1) << i % 32;
         if (mine[i] % 64 == 0) few[i / 32] = false;
       }
       for (int i = 0; i < all; ++i) {
         next[i] = mine[i] ^ mine[i / 32 * 32 + (i % 32 ^ 5)];
         if (few[i / 32] && (votes[i / 32] >> i % 32 & 1) != 0) next[i] += f(i % g.rows, i % block);
       }
       for (int i = 0; i < all; ++i) mine[i] = next[i] + (i % 32 == 31 ? next[i] : next[i + 1]);
       for (int i = 0; i < all; ++i) {
         const auto first = mine.begin() + i / block * block;
         out[i] =
             mix(mine[i ^ 32],
                 static_cast<u64>(std::count_if(first, first + block, [](u64 v) { return v % 2 == 1; })));
       }
     }},
};

void compare(const std::vector<u64>& out, const std::vector<u64>& expected) {
  REQUIRE(out.size() == expected.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i] != expected[i]) {
      CAPTURE(i);
      CHECK(out[i] == expected[i]);
      return;
    }
  CHECK(true);
}

void check_places(const Loop& loop) {
  if (!ready()) return;
  constexpr int kBlock = 64;
  std::string source = function_of(loop) + function_of(loop, "__noinline__", "called") +
                       "#define F(row) f(g, row, t)\n"
                       "__noinline__ u64 again(const Data& g, int i, int t, int depth) { const u64 v = F(i); "
                       "return depth == 0 || v % 5 == 1 ? v : mix(v, again(g, (int)(v % g.rows), t, depth - "
                       "1)) + f(g, i, t + 1); }\n";
  for (std::size_t k = 0; k < kPlaces.size(); ++k)
    source += "extern \"C\" __global__ void k" + std::to_string(k) +
              "(const Data* all_data, u64* out) { const Data& g = *all_data; const int t = threadIdx.x, i = "
              "blockIdx.x * blockDim.x + t, "
              "all = gridDim.x * blockDim.x; (void)all; " +
              kPlaces[k].body + " }\n";
  const Module module = load(source);
  for (const std::size_t shape : {0u, 1u, 3u}) {
    const Data g = data_of(kShapes[shape]);
    const OnDevice data(g);
    const auto f = [&](int i, int t) { return value_of(loop, g, i, t); };
    for (std::size_t k = 0; k < kPlaces.size(); ++k) {
      INFO(std::string(kPlaces[k].name));
      INFO(std::string(kShapeNames[shape]));
      // Fewer threads than rows in loops over the grid.
      const unsigned blocks = k == 3 || k == 4 ? 1 : 4;
      std::vector<u64> expected(2 * 4 * kBlock);
      kPlaces[k].host(g, f, static_cast<int>(blocks) * kBlock, kBlock, expected.data());
      compare(data.run(module.kernel("k" + std::to_string(k)), blocks, kBlock, expected.size()), expected);
    }
  }
}

}  // namespace

TEST_CASE("a loop over a row at many places of a kernel") { check_places(kLoops[0]); }
TEST_CASE("nested loops over rows at many places of a kernel") { check_places(kLoops[1]); }

TEST_CASE("loops over rows in blocks of all extents") {
  if (!ready()) return;
  const Module module =
      load(function_of(kLoops[0]) + R"(extern "C" __global__ void k(const Data* g, u64* out) {
    const int block = blockIdx.x + gridDim.x * blockIdx.y, i = (block * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    if (i < g->rows) out[i] = f(*g, i, threadIdx.x); })");
  const Data g = data_of(Shape::various);
  const OnDevice data(g);
  for (const Dim3 block : {Dim3{1}, Dim3{33}, Dim3{48}, Dim3{250}, Dim3{8, 4}, Dim3{16, 3}, Dim3{5, 7},
                           Dim3{32, 2}, Dim3{64, 4}}) {
    CAPTURE(block.x);
    CAPTURE(block.y);
    const unsigned threads = block.x * block.y, blocks = (250 + threads - 1) / threads;
    std::vector<u64> expected(512);
    for (int i = 0; i < g.rows; ++i) expected[i] = value_of(kLoops[0], g, i, i % static_cast<int>(block.x));
    compare(data.run(module.kernel("k"), {blocks, 1, 1}, block, 512), expected);
  }
}

TEST_CASE("shared, constant and local memory in loops over rows") {
  if (!ready()) return;
  const Module module = load(R"(
    __constant__ unsigned factors[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
    extern "C" __global__ void k(const Data* g, u64* out) {
      __shared__ unsigned cached[512]; const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t; unsigned own[8];
      for (int p = t; p < 512; p += blockDim.x) cached[p] = g->x[p] * 3;
      for (int p = 0; p < 8; ++p) own[p] = i * p;
      __syncthreads(); u64 h = 0; unsigned s = 0, c = 0, l = 0; const unsigned* any = i % 3 == 0 ? cached : i % 3 == 1 ? g->x : own;
      if (i < g->rows) for (int e = g->first[i]; e < g->first[i + 1]; ++e) { const int p = g->column[e];
        s = s * 7 + cached[p]; c += factors[p % 16]; l ^= own[p % 8]; h = mix(h, any[i % 3 == 2 ? p % 8 : p]); if (s % 47 == 1) break; }
      __syncthreads(); cached[t] = s; __syncthreads(); out[i] = mix(mix(h, cached[t ^ 1]), (u64)c << 32 | l); })");
  const unsigned factors[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
  for (const Shape shape : {Shape::various, Shape::equal, Shape::single}) {
    const Data g = data_of(shape);
    std::vector<u64> h(256), expected(256), sums(256), rest(256);
    for (unsigned i = 0; i < 250; ++i) {
      unsigned s = 0, c = 0, l = 0;
      for (int e = g.first[i]; e < g.first[i + 1]; ++e) {
        const unsigned p = static_cast<unsigned>(g.column[e]);
        s = s * 7 + g.x[p] * 3;
        c += factors[p % 16];
        l ^= i * (p % 8);
        h[i] = mix(h[i], i % 3 == 0 ? g.x[p] * 3 : i % 3 == 1 ? g.x[p] : i * (p % 8));
        if (s % 47 == 1) break;
      }
      sums[i] = s;
      rest[i] = static_cast<u64>(c) << 32 | l;
    }
    for (unsigned i = 0; i < 256; ++i) expected[i] = mix(mix(h[i], sums[i ^ 1]), rest[i]);
    compare(OnDevice(g).run(module.kernel("k"), 2, 128, 256), expected);
  }
}

// The row's place 2 * 8192 of `out` is the threads' own memory: stores, others' stores and atomics before
// the loop change what it reads, atomics and stores after it must not.
TEST_CASE("loops over rows read what was stored before them, and not what is stored after them") {
  if (!ready()) return;
  const Module module = load(R"(
    extern "C" __global__ void k(const Data* g, u64* out) {
      const int t = threadIdx.x, i = t; u64* at = out + 256; const int b = g->first[i], n = i < g->rows ? g->first[i + 1] : b; u64 h = 0, before = 0, after = 0;
      for (int e = b; e < n; ++e) at[e] = g->column[e] + i;                                   // its own stores
      for (int e = b; e < n; ++e) { h = mix(h, at[b + g->x[g->column[e]] % (n - b)]); if (h % 97 == 5) break; }
      for (int e = b; e < n; ++e) at[e] = h + e;                                              // after the loop
      if (n > b) before = atomicAdd(&at[b + t % (n - b)], 1000ull);
      for (int e = b; e < n; ++e) after = mix(after, at[b + g->x[g->column[e]] % (n - b)]);
      if (n > b) after += atomicExch(&at[b], 5ull);
      __syncthreads();
      const int k = (i + 77) % g->rows; u64 others = 0; for (int e = g->first[k]; e < g->first[k + 1]; ++e) others = mix(others, at[g->first[k] + g->x[g->column[e]] % (g->first[k + 1] - g->first[k])]);
      __syncthreads();
      if (n > b) at[b] = others;                                                              // after all have read
      out[i] = mix(mix(h, before), mix(after, others)); })");
  for (const Shape shape : {Shape::various, Shape::equal, Shape::single}) {
    const Data g = data_of(shape);
    std::vector<u64> at(8192), value(256), expected(256 + 8192);
    const auto place = [&](int e, int k) {
      return g.first[k] +
             static_cast<int>(g.x[g.column[e]] % static_cast<unsigned>(g.first[k + 1] - g.first[k]));
    };
    for (int i = 0; i < 256; ++i) {
      const int b = g.first[i], n = i < g.rows ? g.first[i + 1] : b;
      u64 h = 0, before = 0, after = 0;
      for (int e = b; e < n; ++e) at[e] = g.column[e] + i;
      for (int e = b; e < n; ++e) {
        h = mix(h, at[place(e, i)]);
        if (h % 97 == 5) break;
      }
      for (int e = b; e < n; ++e) at[e] = h + e;
      if (n > b) {
        before = at[b + i % (n - b)];
        at[b + i % (n - b)] += 1000;
      }
      for (int e = b; e < n; ++e) after = mix(after, at[place(e, i)]);
      if (n > b) {
        after += at[b];
        at[b] = 5;
      }
      value[i] = mix(h, before);
      expected[i] = after;
    }
    std::vector<u64> others(256);
    for (int i = 0; i < 256; ++i) {
      const int k = (i + 77) % g.rows;
      for (int e = g.first[k]; e < g.first[k + 1]; ++e) others[i] = mix(others[i], at[place(e, k)]);
    }
    for (int i = 0; i < 256; ++i) {
      expected[i] = mix(value[i], mix(expected[i], others[i]));
      if (i < g.rows && g.first[i + 1] > g.first[i]) at[g.first[i]] = others[i];
    }
    std::copy(at.begin(), at.end(), expected.begin() + 256);
    compare(OnDevice(g).run(module.kernel("k"), 1, 256, expected.size()), expected);
  }
}

TEST_CASE("loops over rows that store, or add to counters, for each element") {
  if (!ready()) return;
  const Module module = load(R"(extern "C" __global__ void k(const Data* g, u64* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x; u64 taken = 0;
    if (i < g->rows) for (int e = g->first[i]; e < g->first[i + 1]; ++e) { const int p = g->column[e];
      if (g->x[p] % 31 == 7) break;
      out[1024 + e] = g->x[p] + taken++; atomicAdd(&out[512 + p], (u64)i + 1); }
    out[i] = taken; })");
  const Data g = data_of(Shape::various);
  std::vector<u64> expected(1024 + 8192);
  for (int i = 0; i < g.rows; ++i)
    for (int e = g.first[i]; e < g.first[i + 1] && g.x[g.column[e]] % 31 != 7; ++e) {
      expected[1024 + e] = g.x[g.column[e]] + expected[i]++;
      expected[512 + g.column[e]] += i + 1;
    }
  compare(OnDevice(g).run(module.kernel("k"), 3, 96, expected.size()), expected);
}

TEST_CASE("breadth-first search: a loop over neighbours between barriers, until no thread finds one") {
  if (!ready()) return;
  const Module module = load(R"(extern "C" __global__ void k(const Data* g, u64* out) {
    __shared__ int level[256]; const int i = threadIdx.x; level[i] = i == 45 ? 0 : -1; int depth = 0; u64 looked = 0; __syncthreads();
    bool found;
    do { found = false; const bool open = i < g->rows && level[i] < 0;
      if (open) for (int e = g->first[i]; e < g->first[i + 1]; ++e) { ++looked; if (level[g->column[e] % g->rows] == depth) { found = true; break; } }
      __syncthreads(); if (found) level[i] = depth + 1; ++depth;
    } while (__syncthreads_or(found));
    out[i] = mix((u64)level[i], looked) + depth; })");
  for (const Shape shape : {Shape::various, Shape::equal, Shape::single, Shape::empty, Shape::alone}) {
    const Data g = data_of(shape);
    std::vector<int> level(256, -1);
    std::vector<u64> looked(256), expected(256);
    level[45] = 0;
    int depth = 0;
    for (bool any = true; any; ++depth) {
      std::vector<int> next = level;
      any = false;
      for (int i = 0; i < g.rows; ++i)
        if (level[i] < 0)
          for (int e = g.first[i]; e < g.first[i + 1]; ++e) {
            ++looked[i];
            if (level[g.column[e] % g.rows] != depth) continue;
            next[i] = depth + 1;
            any = true;
            break;
          }
      level = next;
    }
    for (int i = 0; i < 256; ++i) expected[i] = mix(static_cast<u64>(level[i]), looked[i]) + depth;
    compare(OnDevice(g).run(module.kernel("k"), 1, 256, 256), expected);
  }
}

// Sums of small integers are exact in both formats up to 2048 and 256.
TEST_CASE("loops over rows with half-precision accumulators") {
  if (!ready()) return;
  const Module module = load(std::string("#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n") + R"(
    extern "C" __global__ void k(const Data* g, u64* out) {
      const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= g->rows) return;
      __half sum = __float2half(1.0f), most = __float2half(-9.0f); __half2 pair = __floats2half2_rn(0.0f, 0.0f); __nv_bfloat16 b = __float2bfloat16(0.0f); int steps = 0;
      for (int e = g->first[i]; e < g->first[i + 1]; ++e) { const int v = (int)(g->x[g->column[e]] % 9) - 4; const __half h = __int2half_rn(v);
        sum = __hadd(sum, h); most = __hmax(most, h); pair = __hadd2(pair, __halves2half2(h, sum)); b = __hadd(b, __float2bfloat16((float)v)); ++steps;
        if (__half2float(sum) > 30.0f || steps == 60 || __bfloat162float(b) < -30.0f) break; }
      out[i] = mix(mix(bits(__half2float(sum)), bits(__half2float(most))), mix(bits(__low2float(pair)), bits(__bfloat162float(b)))) + steps; })");
  const Data g = data_of(Shape::various);
  std::vector<u64> expected(256);
  for (int i = 0; i < g.rows; ++i) {
    float sum = 1, most = -9, low = 0, b = 0;
    int steps = 0;
    for (int e = g.first[i]; e < g.first[i + 1]; ++e) {
      const auto v = static_cast<float>(static_cast<int>(g.x[g.column[e]] % 9) - 4);
      sum += v, most = std::max(most, v), low += v, b += v, ++steps;
      if (sum > 30 || steps == 60 || b < -30) break;
    }
    expected[i] = mix(mix(bits(sum), bits(most)), mix(bits(low), bits(b))) + steps;
  }
  compare(OnDevice(g).run(module.kernel("k"), 4, 64, 256), expected);
}

TEST_CASE("a fault in a loop over a row is reported for its line and thread") {
  if (!ready()) return;
  // Thread 45 of block 2 has an index far outside, in the middle of its row.
  for (const unsigned threads : {64u, 48u, 96u}) {
    CAPTURE(threads);
    const Session own(SessionOptions{.device = "cpu", .isolated = true});
    LoadOptions options;
    options.options = {"-lineinfo"};
    options.file_name = "rows.cu";
    const Module module = own.load_cuda(
        R"(extern "C" __global__ void reach(const int* first, const long long* column, const unsigned* x, unsigned* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned sum = 0;
  for (int e = first[i]; e < first[i + 1]; ++e) {
    const long long place = column[e];
    sum += x[place];
    if (sum % 1024 == 1023) break;
  }
  out[i] = sum;
})",
        options);
    const std::size_t all = 5 * threads, wrong = 2 * threads + 45;
    std::vector<std::int32_t> first(all + 1);
    for (std::uint32_t i = 0; i < all; ++i)
      first[i + 1] = first[i] + (i == wrong ? 5 : static_cast<std::int32_t>(mixed(i) >> 29));
    std::vector<std::int64_t> column(static_cast<std::size_t>(first[all]));
    for (std::uint32_t e = 0; e < column.size(); ++e) column[e] = mixed(e) >> 24;
    column[static_cast<std::size_t>(first[wrong]) + 3] = std::int64_t{1} << 43;
    auto first_there = own.to_device(first);
    auto column_there = own.to_device(column);
    auto x = own.to_device(std::vector<std::uint32_t>(256, 4));
    auto out = own.to_device(std::vector<std::uint32_t>(all));
    module.kernel("reach")({.grid = 5, .block = threads})(first_there, column_there, x, out);
    try {
      own.synchronize();
      FAIL("no fault was reported");
    } catch (const DriverError& error) {
      INFO(std::string(error.what()));
      const DeviceFault& fault = error.fault();
      CHECK(error.code() == ErrorCode::device_fault);
      CHECK(fault.kernel == "reach");
      REQUIRE(fault.block.has_value());
      CHECK(*fault.block == DeviceFault::Index{2, 0, 0});
      if (fault.thread) CHECK(*fault.thread == DeviceFault::Index{45, 0, 0});
      if (fault.threads) {
        CHECK(fault.threads->first[0] <= 45);
        CHECK(fault.threads->second[0] >= 45);
      }
      if (!fault.file.empty()) CHECK(fault.line == 6);
      if (fault.access_bytes != 0) CHECK(fault.access_bytes == 4);
    }
  }
}

}  // namespace quern::cuda_test::rows
