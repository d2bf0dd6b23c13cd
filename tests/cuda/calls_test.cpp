// SPDX-License-Identifier: Apache-2.0
// Functions that are called rather than inlined: recursive functions, and those on a cycle through indirect
// calls. Tests their local memory, threads that end in them, and stack overflow.
#include <doctest/doctest.h>

#include <array>
#include <numeric>

#include "harness.hpp"

using namespace quern;
using namespace quern::cuda_test;
using Words = std::vector<std::uint32_t>;

namespace {

std::uint32_t permutations(std::array<int, 6> used, int n, int depth) {
  if (depth == n) return 1;
  std::uint32_t count = 0;
  for (int i = 0; i < n; ++i) {
    if (used[static_cast<std::size_t>(i)] != 0) continue;
    used[static_cast<std::size_t>(i)] = depth + 1;
    count += permutations(used, n, depth + 1) * static_cast<std::uint32_t>(used[0] + i);
    used[static_cast<std::size_t>(i)] = 0;
  }
  return count;
}

std::uint32_t ackermann(std::uint32_t m, std::uint32_t n) {
  if (m == 0) return n + 1;
  return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

}  // namespace

TEST_CASE("a recursive function prints: what printf is given lies in the local memory of each call") {
  if (!ready()) return;
  const Words out = run(R"(
    __device__ unsigned factorial(unsigned n) { if (n % 11 == 10) printf("%u\n", n); return n < 2 ? 1 : n * factorial(n - 1); }
    extern "C" __global__ void k(unsigned* d) { d[threadIdx.x] = factorial(threadIdx.x % 12); })",
                        "k", Words(70), 70);
  std::array<std::uint32_t, 12> factorial{1};
  for (std::uint32_t n = 1; n < 12; ++n) factorial[n] = n * factorial[n - 1];
  for (std::uint32_t i = 0; i < 70; ++i) CHECK(out[i] == factorial[i % 12]);
}

TEST_CASE("each call of a recursive function has a local array of its own, which those below it read") {
  if (!ready()) return;
  const Words out = run(R"(
    __device__ __noinline__ unsigned permutations(const int* used, int n, int depth) {
      if (depth == n) return 1;
      int mine[6]; unsigned count = 0;
      for (int i = 0; i < n; ++i) mine[i] = used[i];
      for (int i = 0; i < n; ++i) { if (mine[i]) continue; mine[i] = depth + 1; count += permutations(mine, n, depth + 1) * (mine[0] + i); mine[i] = 0; }
      return count; }
    extern "C" __global__ void k(unsigned* d) { int none[6] = {}; if (threadIdx.x % 3 != 2) d[threadIdx.x] = permutations(none, threadIdx.x % 6 + 1, 0); })",
                        "k", Words(40), 40);
  for (std::uint32_t i = 0; i < 40; ++i)
    CHECK(out[i] == (i % 3 == 2 ? 0 : permutations({}, static_cast<int>(i % 6 + 1), 0)));
}

TEST_CASE("a recursive function gives its result through the address of its caller's variable") {
  if (!ready()) return;
  const Words out = run(R"(
    __device__ __noinline__ void ackermann(unsigned m, unsigned n, unsigned* result) {
      if (m == 0) { *result = n + 1; return; }
      unsigned inner = 1;
      if (n != 0) ackermann(m, n - 1, &inner);
      ackermann(m - 1, inner, result); }
    extern "C" __global__ void k(unsigned* d) { unsigned r = 0; ackermann(threadIdx.x % 3, threadIdx.x % 5, &r); d[threadIdx.x] = r; })",
                        "k", Words(64), 64);
  for (std::uint32_t i = 0; i < 64; ++i) CHECK(out[i] == ackermann(i % 3, i % 5));
}

TEST_CASE("a tree of objects with virtual functions that keep arrays on their stacks") {
  if (!ready()) return;
  const Words out = run(R"(
    struct Node { virtual __device__ unsigned eval(unsigned* v) const = 0; };
    struct Leaf : Node { __device__ unsigned eval(unsigned* v) const override { return v[0]; } };
    struct Sum : Node { const Node *a, *b; __device__ unsigned eval(unsigned* v) const override {
      unsigned t[3] = {v[0] + 1, v[1], v[2]}; unsigned x = a->eval(t); t[x % 3] += x; return t[0] + 3 * t[1] + b->eval(t); } };
    extern "C" __global__ void k(unsigned* d) { Leaf leaf; Sum low, high; low.a = low.b = &leaf; high.a = &low; high.b = &leaf; unsigned v[3] = {threadIdx.x, 10, 1};
      const Node* n = threadIdx.x % 2 ? (const Node*)&high : (const Node*)&low; d[threadIdx.x] = n->eval(v); })",
                        "k", Words(48), 48);
  const auto low = [](const std::array<std::uint32_t, 3>& v) {
    std::array<std::uint32_t, 3> t{v[0] + 1, v[1], v[2]};
    const std::uint32_t x = t[0];
    t[x % 3] += x;
    return t[0] + 3 * t[1] + t[0];
  };
  for (std::uint32_t i = 0; i < 48; ++i) {
    std::array<std::uint32_t, 3> t{i + 1, 10, 1};
    const std::uint32_t x = low(t);
    t[x % 3] += x;
    CHECK(out[i] == (i % 2 != 0 ? t[0] + 3 * t[1] + t[0] : low({i, 10, 1})));
  }
}

TEST_CASE("an object that passes a call on to another of its kind is no endless recursion") {
  if (!ready()) return;
  const Words out = run(R"(
    struct Plain { virtual __device__ unsigned go(unsigned x) { unsigned a[4] = {x, 1, 2, 3}; a[x & 3] += 5; return a[0] + a[(x + 1) & 3]; } };
    struct Around : Plain { Plain* in; __device__ unsigned go(unsigned x) override { unsigned a[4] = {1, 2, 3, x}; a[x & 3] += in->go(x); return a[0] + a[(x + 1) & 3]; } };
    extern "C" __global__ void k(unsigned* d) { unsigned i = threadIdx.x; Plain p; Around q; q.in = &p; Plain* o = i & 1 ? &p : (Plain*)&q; d[i] = o->go(i); })",
                        "k", Words(64), 64);
  for (std::uint32_t i = 0; i < 64; ++i) {
    std::array<std::uint32_t, 4> a{i, 1, 2, 3};
    a[i & 3] += 5;
    const std::uint32_t inner = a[0] + a[(i + 1) & 3];
    std::array<std::uint32_t, 4> b{1, 2, 3, i};
    b[i & 3] += inner;
    CHECK(out[i] == ((i & 1) != 0 ? inner : b[0] + b[(i + 1) & 3]));
  }
}

TEST_CASE("a thread may end in a recursive function; the others meet at the barrier without it") {
  if (!ready()) return;
  const Words out = run(R"(
    __device__ __noinline__ unsigned down(unsigned n, unsigned t) { if (n == t % 5) asm volatile("exit;"); return n == 0 ? 0 : down(n - 1, t) * 3 + n; }
    extern "C" __global__ void k(unsigned* d) { __shared__ unsigned count; unsigned t = threadIdx.x; count = 0; __syncthreads();
      unsigned r = down(t % 7, t); atomicAdd(&count, 1); __syncthreads(); d[t] = r * 100 + count; })",
                        "k", Words(90), 90);
  const auto ends = [](std::uint32_t t) { return t % 5 <= t % 7; };
  std::uint32_t count = 0;
  for (std::uint32_t t = 0; t < 90; ++t) count += ends(t) ? 0 : 1;
  for (std::uint32_t t = 0; t < 90; ++t) {
    std::uint32_t r = 0;
    for (std::uint32_t n = 1; n <= t % 7; ++n) r = r * 3 + n;
    CHECK(out[t] == (ends(t) ? 0 : r * 100 + count));
  }
}

TEST_CASE("recursion takes tens of kilobytes of local arrays") {
  if (!ready()) return;
  const std::string source = R"(
    __device__ __noinline__ unsigned down(unsigned n) { volatile unsigned a[8]; a[n & 7] = n; if (n == 0) return 0; unsigned r = down(n - 1); return r + a[n & 7]; }
    extern "C" __global__ void k(unsigned* d) { d[threadIdx.x] = down(d[threadIdx.x]); })";
  const Words out = run(source, "k", {1500, 1, 0, 1499}, 4);
  CHECK(out == Words{1500 * 1501 / 2, 1, 0, 1499 * 1500 / 2});
}

TEST_CASE("threads of a block meet in a recursive function") {
  if (!ready()) return;
  const Words out = run(R"(
    __shared__ unsigned s[128];
    __device__ __noinline__ unsigned turn(unsigned n, unsigned t) { if (n == 0) return s[t];
      unsigned got = s[(t + 1) % blockDim.x]; __syncthreads(); s[t] = got; __syncthreads(); return turn(n - 1, t) + n; }
    extern "C" __global__ void k(unsigned* d) { unsigned t = threadIdx.x; s[t] = t * t; __syncthreads(); d[t] = turn(d[t], t); })",
                        "k", Words(100, 7), 100);
  for (std::uint32_t t = 0; t < 100; ++t) CHECK(out[t] == (t + 7) % 100 * ((t + 7) % 100) + 28);
}

TEST_CASE("objects whose functions have barriers in them, passing calls on") {
  if (!ready()) return;
  const Words out = run(R"(
    struct Plain { virtual __device__ unsigned go(unsigned x) { __syncthreads(); return x; } };
    struct Around : Plain { Plain* in; __device__ unsigned go(unsigned x) override { __syncthreads(); return in->go(x) + 1; } };
    extern "C" __global__ void k(unsigned* d) { Plain p; Around q, r; q.in = &p; r.in = &q; Plain* o = d[0] > 100 ? &p : (Plain*)&r; d[1 + threadIdx.x] = o->go(threadIdx.x); })",
                        "k", Words(65), 64);
  for (std::uint32_t t = 0; t < 64; ++t) CHECK(out[1 + t] == t + 2);
}

TEST_CASE("locks that a recursive function holds while it goes on") {
  if (!ready()) return;
  const Words out = run(R"(
    __device__ __noinline__ unsigned walk(unsigned* lock, volatile unsigned* count, unsigned n, unsigned t) { if (n >= 8) return 0;
      while (atomicCAS(&lock[n], 0, 1)) {} __threadfence(); count[n] = count[n] + 1; __threadfence();
      unsigned r = walk(lock, count, 2 * n + 1 + (t & 1), t) + 1; atomicExch(&lock[n], 0); return r + walk(lock, count, n + 5, t); }
    extern "C" __global__ void k(unsigned* d) { d[16 + threadIdx.x] = walk(d, d + 8, 0, threadIdx.x); })",
                        "k", Words(16 + 70), 70);
  std::array<std::uint32_t, 8> count{};
  const auto walk = [&](const auto& self, std::uint32_t n, std::uint32_t t) -> std::uint32_t {
    if (n >= 8) return 0;
    ++count[n];
    const std::uint32_t r = self(self, 2 * n + 1 + (t & 1), t) + 1;
    return r + self(self, n + 5, t);
  };
  for (std::uint32_t t = 0; t < 70; ++t) CHECK(out[16 + t] == walk(walk, 0, t));
  for (std::uint32_t n = 0; n < 8; ++n) CHECK(out[8 + n] == count[n]);
}

TEST_CASE("lanes exchange values in a recursive function that they reach over two calls") {
  if (!ready()) return;
  const Words out = run(R"(
    __device__ __noinline__ unsigned sum(unsigned n, unsigned t) { if (n == 0) return t; unsigned r = sum(n - 1, t); return r + __shfl_xor_sync(~0u, r, 1u << (n - 1)); }
    extern "C" __global__ void k(unsigned* d) { unsigned t = threadIdx.x; unsigned v; if (t % 3 == 1) v = sum(5, t) * 3; else v = sum(5, t) + 5; d[t] = v; })",
                        "k", Words(64), 64);
  for (std::uint32_t t = 0; t < 64; ++t) {
    const std::uint32_t sum = t < 32 ? 496 : 496 + 32 * 32;
    CHECK(out[t] == (t % 3 == 1 ? sum * 3 : sum + 5));
  }
}

TEST_CASE(
    "functions that call each other meet at barriers of a part of the block, and some threads end there") {
  if (!ready()) return;
  const Words out = run(R"(
    __device__ unsigned odd(unsigned n, unsigned which, unsigned t);
    __device__ __noinline__ unsigned even(unsigned n, unsigned which, unsigned t) { asm volatile("bar.sync %0, 64;" :: "r"(which)); return n == 0 ? 0 : odd(n - 1, which, t) + 1; }
    __device__ __noinline__ unsigned odd(unsigned n, unsigned which, unsigned t) { if (n == 2 && t % 32 == 31) asm volatile("exit;"); asm volatile("bar.sync %0, 64;" :: "r"(which)); return n == 0 ? 0 : even(n - 1, which, t) + 2; }
    extern "C" __global__ void k(unsigned* d) { unsigned t = threadIdx.x; d[t] = 99; d[t] = t / 64 ? even(3, 2, t) : odd(5, 1, t); })",
                        "k", Words(128), 128);
  for (std::uint32_t t = 0; t < 128; ++t)
    CHECK(out[t] == (t < 64 ? 2 + 1 + 2 + 1 + 2 : t % 32 == 31 ? 99 : 1 + 2 + 1));
}

TEST_CASE("blocks wait for each other at the bottom of their recursion, and keep their arrays meanwhile") {
  if (!ready()) return;
  const Words out = run(R"(
    __device__ __noinline__ unsigned down(volatile unsigned* flags, unsigned n, unsigned id) { unsigned mine[6];
      for (int i = 0; i < 6; ++i) mine[i] = id * 100 + n * 10 + i;
      if (n == 0) { flags[blockIdx.x] = 1; __threadfence(); while (flags[(blockIdx.x + 1) % gridDim.x] == 0) {} return mine[id % 6]; }
      unsigned below = down(flags, n - 1, id); return below + mine[(id + n) % 6]; }
    extern "C" __global__ void k(unsigned* d) { unsigned id = blockIdx.x * blockDim.x + threadIdx.x; d[4 + id] = down(d, id % 9, id); })",
                        "k", Words(4 + 160), 40, 4);
  for (std::uint32_t id = 0; id < 160; ++id) {
    std::uint32_t sum = 0;
    for (std::uint32_t n = 0; n <= id % 9; ++n) sum += id * 100 + n * 10 + (id + n) % 6;
    CHECK(out[4 + id] == sum);
  }
}
