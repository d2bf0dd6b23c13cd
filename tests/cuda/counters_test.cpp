// SPDX-License-Identifier: Apache-2.0
// Counters from which threads take places: additions to one address whose old values are used. Warps in
// lockstep make them as one operation. Which thread gets which place is not defined, so each kernel stores
// its thread's number at the places that it took; the test checks that each place was taken once, by whom,
// and what the counter says.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "harness.hpp"

namespace quern::cuda_test {
namespace {

using Words = std::vector<std::uint32_t>;

constexpr unsigned kThreads = 256, kBlocks = 96;
constexpr unsigned kAll = kThreads * kBlocks;
/// d[0], d[2]: counters of 32 or 64 bits; places begin at kFirst, of the second counter at kSecond.
constexpr unsigned kFirst = 64, kSecond = kFirst + 4 * kAll, kWords = kSecond + 4 * kAll;

const std::string kPrologue = R"(
  #define FIRST 64
  #define SECOND (FIRST + 4 * 256 * 96)
  #define I const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32
  #define KERNEL(name) extern "C" __global__ void name(unsigned* d)
  __device__ bool keeps(unsigned i) { return mixed(i) >> 30 == 0; }
)";

bool keeps(std::uint32_t i) { return mixed(i) >> 30 == 0; }

/// What `count(i)` says for each thread: how many places it takes.
template <class Count>
void check_places(const Words& out, std::size_t counter, std::size_t first, unsigned threads,
                  const Count& count) {
  Words expected;
  for (std::uint32_t i = 0; i < threads; ++i) expected.insert(expected.end(), count(i), i + 1);
  CHECK(out[counter] == expected.size());
  const auto begin = out.begin() + static_cast<std::ptrdiff_t>(first);
  Words taken(begin, begin + static_cast<std::ptrdiff_t>(expected.size()));
  std::ranges::sort(taken);
  CHECK(taken == expected);
  CHECK(begin[static_cast<std::ptrdiff_t>(expected.size())] == 0);
}

Words run_kernel(const std::string& body, unsigned threads = kThreads, unsigned blocks = kBlocks) {
  return run(kMixedSource + kPrologue + body, "k", Words(kWords), threads, blocks);
}

}  // namespace

TEST_CASE("each thread of all takes one place") {
  if (!ready()) return;
  const Words out = run_kernel("KERNEL(k) { I; d[FIRST + atomicAdd(d, 1u)] = i + 1; }");
  check_places(out, 0, kFirst, kAll, [](std::uint32_t) { return 1u; });
}

TEST_CASE("each thread of all takes as many places as it says") {
  if (!ready()) return;
  const Words out = run_kernel(R"(KERNEL(k) { I; const unsigned n = mixed(i) % 4, at = atomicAdd(d, n);
    for (unsigned p = 0; p < n; ++p) d[FIRST + at + p] = i + 1; })");
  check_places(out, 0, kFirst, kAll, [](std::uint32_t i) { return mixed(i) % 4; });
}

TEST_CASE("threads that keep their element take a place each") {
  if (!ready()) return;
  const Words out = run_kernel("KERNEL(k) { I; if (keeps(i)) d[FIRST + atomicAdd(d, 1u)] = i + 1; }");
  check_places(out, 0, kFirst, kAll, keeps);
}

TEST_CASE("a warp takes the places of its threads") {
  if (!ready()) return;
  const Words out = run_kernel(R"(KERNEL(k) { I; const bool keep = keeps(i);
    const unsigned mask = __ballot_sync(~0u, keep); unsigned first = 0;
    if (lane == 0) first = atomicAdd(d, __popc(mask));
    first = __shfl_sync(~0u, first, 0);
    if (keep) d[FIRST + first + __popc(mask & ((1u << lane) - 1))] = i + 1; })");
  check_places(out, 0, kFirst, kAll, keeps);
}

TEST_CASE("threads take places of two counters, on the two sides of a branch") {
  if (!ready()) return;
  const Words out = run_kernel(R"(KERNEL(k) { I;
    if (keeps(i)) { const unsigned n = 1 + i % 3, at = atomicAdd(d, n); for (unsigned p = 0; p < n; ++p) d[FIRST + at + p] = i + 1; }
    else d[SECOND + atomicAdd((unsigned long long*)(d + 2), 1ull)] = i + 1; })");
  check_places(out, 0, kFirst, kAll, [](std::uint32_t i) { return keeps(i) ? 1 + i % 3 : 0; });
  check_places(out, 2, kSecond, kAll, [](std::uint32_t i) { return keeps(i) ? 0u : 1u; });
}

// In most gangs no thread takes a place, as the data say. The counter must not be accessed then: its address
// is invalid.
TEST_CASE("a gang without threads that take a place does not access the counter") {
  if (!ready()) return;
  const auto takes = [](std::uint32_t i) { return i / kThreads % 16 == 5 && i / 32 % 8 == 3 && keeps(i); };
  Words words(kWords);
  for (std::uint32_t i = 0; i < kAll; ++i) words[kSecond + i] = takes(i) ? 1 : 0;
  const Words out = run(kMixedSource + kPrologue + R"(KERNEL(k) { I;
    unsigned* counter = d + (blockIdx.x % 16 == 5 ? 0 : 1ll << 40);
    if (d[SECOND + i] != 0) d[FIRST + atomicAdd(counter, 1u)] = i + 1; })",
                        "k", words, kThreads, kBlocks);
  check_places(out, 0, kFirst, kAll, takes);
}

TEST_CASE("blocks whose last warp is not full, and threads beyond the end") {
  if (!ready()) return;
  for (const unsigned threads : {64u, 100u, 224u, 250u}) {
    CAPTURE(threads);
    const Words out = run_kernel(
        "KERNEL(k) { I; if (i < 5000 && keeps(i)) d[FIRST + atomicAdd(d, 1u)] = i + 1; }", threads, 60);
    check_places(out, 0, kFirst, std::min(5000u, 60 * threads), keeps);
  }
}

TEST_CASE("a counter of each warp, and one of each half of a block") {
  if (!ready()) return;
  const Words out = run_kernel(R"(KERNEL(k) { I; const unsigned warp = i / 32, half = i / 128;
    if (keeps(i)) { d[FIRST + 32 * warp + atomicAdd(&d[SECOND + warp], 1u)] = i + 1;
                    d[FIRST + 256 * 96 + 128 * half + atomicAdd(&d[SECOND + 256 * 96 + half], 2u) / 2] = i + 1; } })");
  const auto check_groups = [&](std::size_t counters, std::size_t places, unsigned size, unsigned step) {
    for (unsigned group = 0; group < kAll / size; ++group) {
      Words expected, taken;
      for (std::uint32_t i = group * size; i < (group + 1) * size; ++i)
        if (keeps(i)) expected.push_back(i + 1);
      REQUIRE(out[counters + group] == step * expected.size());
      for (std::size_t p = 0; p < expected.size(); ++p)
        taken.push_back(out[places + std::size_t{group} * size + p]);
      std::ranges::sort(taken);
      REQUIRE(taken == expected);
    }
  };
  check_groups(kSecond, kFirst, 32, 1);
  check_groups(kSecond + kAll, kFirst + kAll, 128, 2);
}

TEST_CASE("places of a block's counter in shared memory, then of one for all blocks") {
  if (!ready()) return;
  const Words out =
      run_kernel(R"(KERNEL(k) { I; __shared__ unsigned own, first, kept[256]; if (threadIdx.x == 0) own = 0;
    __syncthreads(); if (keeps(i)) kept[atomicAdd(&own, 1u)] = i + 1;
    __syncthreads(); if (threadIdx.x == 0) first = atomicAdd(d, own);
    __syncthreads(); if (threadIdx.x < own) d[FIRST + first + threadIdx.x] = kept[threadIdx.x]; })");
  check_places(out, 0, kFirst, kAll, keeps);
}

TEST_CASE("places in a loop over the data, between barriers") {
  if (!ready()) return;
  const Words out =
      run_kernel(R"(KERNEL(k) { __shared__ unsigned rounds; if (threadIdx.x == 0) rounds = 0; __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < 256 * 96; i += gridDim.x * blockDim.x) {
      if (keeps(i)) { const unsigned at = atomicAdd(d, 2u); d[FIRST + at] = d[FIRST + at + 1] = i + 1; }
      __syncthreads(); if (threadIdx.x == 0) ++rounds; __syncthreads(); }
    if (threadIdx.x == 0) atomicAdd(d + 2, rounds); })",
                 kThreads, 12);
  check_places(out, 0, kFirst, kAll, [](std::uint32_t i) { return keeps(i) ? 2u : 0u; });
  CHECK(out[2] == kBlocks);
}

// The thread reads what it wrote before it took a place.
TEST_CASE("an addition with release and acquire semantics orders what is before and after it") {
  if (!ready()) return;
  const Words out = run_kernel(R"(KERNEL(k) { I; d[SECOND + i] = i + 7; unsigned at;
    if (keeps(i)) { asm volatile("atom.add.acq_rel.gpu.u32 %0, [%1], %2;" : "=r"(at) : "l"(d), "r"(1u) : "memory"); d[FIRST + at] = d[SECOND + i] - 6; } })");
  check_places(out, 0, kFirst, kAll, keeps);
}

}  // namespace quern::cuda_test
