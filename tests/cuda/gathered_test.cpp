// SPDX-License-Identifier: Apache-2.0
// Updates of global memory that the CPU device gathers: their sums, and what is ordered after them. Several
// workers run the blocks; expected values come from plain host loops.
#include <doctest/doctest.h>

#include <algorithm>

#include "harness.hpp"

namespace quern::cuda_test {
namespace {

using Words = std::vector<std::uint32_t>;

constexpr unsigned kBlocks = 512, kThreads = 256;
/// Words between two places that are in no common window.
constexpr unsigned kFar = 40000;

const std::string kMixed = std::string(kMixedSource) + "\n#define FAR 40000\n";

}  // namespace

TEST_CASE("a histogram by global atomics, in a grid-stride loop and in one pass") {
  if (!ready()) return;
  const std::string source = std::string(kMixed) + R"(
    extern "C" __global__ void once(unsigned* d) { int i = blockIdx.x * blockDim.x + threadIdx.x; atomicAdd(&d[mixed(i) % 777], 1u); }
    extern "C" __global__ void loop(unsigned* d) {
      for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 1000000; i += gridDim.x * blockDim.x) atomicAdd(&d[mixed(i) % 777], d[1024 + i % 16]); })";
  Words once(1024 + 16), loop;
  for (std::uint32_t i = 0; i < 16; ++i) once[1024 + i] = i + 1;
  loop = once;
  Words once_expected = once, loop_expected = once;
  for (std::uint32_t i = 0; i < kBlocks * kThreads; ++i) ++once_expected[mixed(i) % 777];
  for (std::uint32_t i = 0; i < 1000000; ++i) loop_expected[mixed(i) % 777] += i % 16 + 1;
  CHECK(run(source, "once", once, kThreads, kBlocks) == once_expected);
  CHECK(run(source, "loop", loop, kThreads, 64) == loop_expected);
}

TEST_CASE("gathered minima, maxima and logical operations on random elements") {
  if (!ready()) return;
  const std::string source = std::string(kMixed) + R"(
    extern "C" __global__ void k(unsigned* d) {
      int i = blockIdx.x * blockDim.x + threadIdx.x; unsigned at = mixed(i) % 100, v = mixed(i + 12345);
      atomicMin((int*)&d[at], (int)v); atomicMax((int*)&d[128 + at], (int)v); atomicMin(&d[256 + at], v); atomicMax(&d[384 + at], v);
      atomicAnd(&d[512 + at], ~(v & v >> 7)); atomicOr(&d[640 + at], v & v >> 9); atomicXor(&d[768 + at], v); })";
  Words words(896);
  for (std::size_t i = 0; i < 100; ++i) {
    words[i] = 0x7fffffff;
    words[128 + i] = 0x80000000;
    words[256 + i] = words[512 + i] = ~0u;
  }
  Words expected = words;
  for (std::uint32_t i = 0; i < kBlocks * kThreads; ++i) {
    const std::uint32_t at = mixed(i) % 100, v = mixed(i + 12345);
    const auto signed_of = [](std::uint32_t x) { return static_cast<std::int32_t>(x); };
    if (signed_of(v) < signed_of(expected[at])) expected[at] = v;
    if (signed_of(v) > signed_of(expected[128 + at])) expected[128 + at] = v;
    expected[256 + at] = std::min(expected[256 + at], v);
    expected[384 + at] = std::max(expected[384 + at], v);
    expected[512 + at] &= ~(v & v >> 7);
    expected[640 + at] |= v & v >> 9;
    expected[768 + at] ^= v;
  }
  CHECK(run(source, "k", words, kThreads, kBlocks) == expected);
}

// Each thread has an element of its own, in an order that is not that of the threads, and updates it several
// times: a window is opened at the first one.
TEST_CASE("a thread's accesses after its gathered updates see them") {
  if (!ready()) return;
  const std::string source = R"(
    #define KERNEL(name, first, update, access) extern "C" __global__ void name(unsigned* d) { \
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x; int wrong = 0; unsigned* at = d + 1 + i * 1001 % n; \
        for (unsigned r = 0; r < 4; ++r) { first; for (int u = 0; u < 6; ++u) { update; } access; } if (wrong) atomicAdd_system(d, (unsigned)wrong); }
    KERNEL(load, , atomicAdd(at, 5u), wrong += *at != 30 * r + 30)
    KERNEL(volatile_load, , atomicAdd(at, 5u), wrong += *(volatile unsigned*)at != 30 * r + 30)
    KERNEL(store, , atomicAdd(at, 7u), *at = r; wrong += *(volatile unsigned*)at != r)
    KERNEL(result, , atomicAdd(at, 3u), wrong += atomicAdd(at, 1u) != 19 * r + 18)
    KERNEL(exchange, , atomicOr(at, 6u), wrong += atomicExch(at, r) != (6u | (r == 0 ? 0 : r - 1)))
    KERNEL(other, , atomicAdd(at, 2u), atomicExch(at, r); wrong += *at != r)
    KERNEL(before, if (n == 1) atomicAdd(at, 1u), atomicMax(at, 20 * r + 20), for (int u = 0; u < 6; ++u) atomicAdd(at, 2u); wrong += *at != 20 * r + 32)
    KERNEL(halves, , atomicAdd(at, 65536u), wrong += ((unsigned short*)at)[1] != 6 * r + 6))";
  constexpr unsigned kSmall = 16;
  for (const char* name :
       {"load", "volatile_load", "store", "result", "exchange", "other", "before", "halves"}) {
    CAPTURE(name);
    CHECK(run(source, name, Words(1 + std::size_t{kSmall} * kThreads), kThreads, kSmall)[0] == 0);
  }
}

TEST_CASE("threads see the updates of others after a barrier, and warps after a warp's barrier") {
  if (!ready()) return;
  const std::string source = R"(
    extern "C" __global__ void k(unsigned* d) {
      unsigned t = threadIdx.x, n = gridDim.x * blockDim.x, first = blockIdx.x * blockDim.x; int wrong = 0; d += 1;
      for (unsigned r = 1; r <= 4; ++r) {
        atomicAdd(&d[first + t * 77 % blockDim.x], 3u); __syncthreads();
        wrong += d[first + t] != 3 * r; __syncthreads();
        atomicAdd(&d[n + first + (t ^ 5)], 2u); __syncwarp(); wrong += d[n + first + (t ^ 3)] != 2 * r; __syncwarp(); }
      if (wrong) atomicAdd(d - 1, (unsigned)wrong); })";
  const Words out = run(source, "k", Words(1 + 2 * std::size_t{64} * kThreads), kThreads, 64);
  CHECK(out[0] == 0);
}

// The block that draws the last ticket sees the updates of all blocks, because each fences between its
// updates and its ticket.
TEST_CASE("the last block sums what all blocks have updated") {
  if (!ready()) return;
  const std::string source = std::string(kMixed) + R"(
    extern "C" __global__ void k(unsigned* d) {
      __shared__ bool last; int i = blockIdx.x * blockDim.x + threadIdx.x;
      for (int r = 0; r < 6; ++r) atomicAdd(&d[FAR + mixed(i + r) % 64], 1u);
      __threadfence(); __syncthreads();
      if (threadIdx.x == 0) last = atomicInc(&d[0], gridDim.x - 1) == gridDim.x - 1;
      __syncthreads();
      if (last && threadIdx.x < 64) { atomicAdd(&d[1], *(volatile unsigned*)&d[FAR + threadIdx.x]); if (threadIdx.x == 0) ++d[2]; } })";
  for (int repeat = 0; repeat < 5; ++repeat) {
    const Words out = run(source, "k", Words(kFar + 64), kThreads, kBlocks);
    CHECK(out[0] == 0);
    CHECK(out[1] == 6 * kBlocks * kThreads);
    CHECK(out[2] == 1);
  }
}

// A block publishes its updates by a fence and a flag. Blocks that see a flag must see the updates; no block
// waits for one.
TEST_CASE("a block that sees a flag sees the updates before it") {
  if (!ready()) return;
  const std::string source = std::string(kMixed) + R"(
    extern "C" __global__ void k(unsigned* d) {
      unsigned b = blockIdx.x, t = threadIdx.x; unsigned* flags = d + 8; unsigned* data = d + FAR;
      for (int r = 0; r < 8; ++r) atomicAdd(&data[b * 32 + (t * 7 + r) % 32], 1u);
      __syncthreads();
      if (t == 0) { __threadfence(); atomicExch(&flags[b], 1u); }
      for (unsigned other = t; other < gridDim.x; other += blockDim.x) {
        if (atomicAdd(&flags[other], 0u) == 0) continue;
        __threadfence(); unsigned sum = 0;
        for (int k = 0; k < 32; ++k) sum += *(volatile unsigned*)&data[other * 32 + k];
        atomicAdd(&d[sum == 8 * blockDim.x ? 0 : 1], 1u); } })";
  const Words out = run(source, "k", Words(kFar + 32 * 128), 64, 128);
  CHECK(out[0] >= 128);  // a block sees its own flag at least
  CHECK(out[1] == 0);
}

TEST_CASE("one instruction updates shared and global memory") {
  if (!ready()) return;
  const std::string source = std::string(kMixed) + R"(
    extern "C" __global__ void k(unsigned* d) {
      __shared__ unsigned own[32]; unsigned t = threadIdx.x; if (t < 32) own[t] = 0; __syncthreads();
      for (int r = 0; r < 5; ++r) { unsigned at = mixed(blockIdx.x * blockDim.x + t + r * 7777) % 32; unsigned* to = at % 3 == 0 ? own : d; atomicAdd(to + at, 1u); }
      __syncthreads(); if (t < 32) atomicAdd(&d[32 + t], own[t]); })";
  Words expected(64);
  for (std::uint32_t i = 0; i < kBlocks * kThreads; ++i)
    for (std::uint32_t r = 0; r < 5; ++r) {
      const std::uint32_t at = mixed(i + r * 7777) % 32;
      ++expected[at % 3 == 0 ? 32 + at : at];
    }
  CHECK(run(source, "k", Words(64), kThreads, kBlocks) == expected);
}

TEST_CASE("updates of an array that is larger than a window, and of two arrays in turn") {
  if (!ready()) return;
  const std::string source = std::string(kMixed) + R"(
    extern "C" __global__ void k(unsigned* d) {
      unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
      atomicAdd(&d[mixed(i) % 100000], 1u); atomicAdd(&d[mixed(i / 1024) % 90000 + mixed(i) % 1000], 3u); atomicAdd(&d[100000 + mixed(i) % 50], 2u); })";
  Words expected(100050);
  for (std::uint32_t i = 0; i < kBlocks * kThreads; ++i) {
    ++expected[mixed(i) % 100000];
    expected[mixed(i / 1024) % 90000 + mixed(i) % 1000] += 3;
    expected[100000 + mixed(i) % 50] += 2;
  }
  CHECK(run(source, "k", Words(100050), kThreads, kBlocks) == expected);
}

}  // namespace quern::cuda_test
