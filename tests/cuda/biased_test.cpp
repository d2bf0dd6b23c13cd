// SPDX-License-Identifier: Apache-2.0
// Atomic operations of warps at neighbouring addresses: a worker makes them by plain instructions in regions
// that no other worker has asked for. Blocks overlap here, so that workers do ask for each other's regions,
// and kernels run at the same time as others. Expected values come from plain host loops.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>

#include "harness.hpp"

namespace quern::cuda_test {
namespace {

using Words = std::vector<std::uint32_t>;

constexpr unsigned kThreads = 256, kBlocks = 600, kRepeats = 60;
constexpr unsigned kAll = kThreads * kBlocks;
/// The words of the array: blocks begin 96 words after each other, so an element is that of a few blocks.
constexpr unsigned kStep = 96, kElements = kStep * kBlocks + kThreads;

const std::string kPrologue = std::string(kMixedSource) + R"(
  #define I const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t; unsigned* const at = d + blockIdx.x * 96 + t
  #define KERNEL(name) extern "C" __global__ void name(unsigned* d, unsigned* olds)
)";

struct Runs {
  Words elements, olds;
};

/// Launches kernel `k` repeatedly, so that the first launches, for which nothing is prepared, are the least.
Runs run_often(const std::string& body, const Words& initial, std::size_t olds = 1,
               unsigned threads = kThreads) {
  const Module module = session().load_cuda(kPrologue + body);
  auto elements = session().to_device(initial), old_values = session().to_device(Words(olds));
  const auto kernel = module.kernel("k")({.grid = kBlocks, .block = threads});
  for (unsigned repeat = 0; repeat < kRepeats; ++repeat) kernel(elements, old_values);
  return {elements.copy_to_host(), old_values.copy_to_host()};
}

/// Calls visit(element, thread) for each thread of a launch.
template <class Visit>
void for_each_thread(const Visit& visit) {
  for (std::uint32_t i = 0; i < kAll; ++i) visit(i / kThreads * kStep + i % kThreads, i);
}

}  // namespace

TEST_CASE("blocks that overlap add, combine and choose") {
  if (!ready()) return;
  struct Case {
    const char* name;
    const char* body;
    std::uint32_t initial;
    std::uint32_t (*next)(std::uint32_t old, std::uint32_t value);
    bool repeats = false;  ///< each launch changes the elements again
  };
  static constexpr auto kSigned = [](std::uint32_t x) { return static_cast<std::int32_t>(x); };
  const Case cases[] = {
      {"add", "atomicAdd(at, v)", 5, [](std::uint32_t a, std::uint32_t b) { return a + b; }, true},
      {"sub", "atomicSub(at, v)", 5, [](std::uint32_t a, std::uint32_t b) { return a - b; }, true},
      {"xor", "atomicXor(at, v)", 5, [](std::uint32_t a, std::uint32_t b) { return a ^ b; }, true},
      {"or", "atomicOr(at, v & v >> 5)", 5,
       [](std::uint32_t a, std::uint32_t b) { return a | (b & b >> 5); }},
      {"and", "atomicAnd(at, v | v >> 5)", ~0u,
       [](std::uint32_t a, std::uint32_t b) { return a & (b | b >> 5); }},
      {"min", "atomicMin((int*)at, (int)v)", 0x7fffffff,
       [](std::uint32_t a, std::uint32_t b) { return kSigned(b) < kSigned(a) ? b : a; }},
      {"umax", "atomicMax(at, v)", 0, [](std::uint32_t a, std::uint32_t b) { return std::max(a, b); }},
      {"some lanes", "if (v % 3 != 0) atomicAdd(at, v)", 0,
       [](std::uint32_t a, std::uint32_t b) { return b % 3 != 0 ? a + b : a; }, true},
      {"two updates", "atomicAdd(at, v); if (t < 100) atomicAdd(at, 0u); else atomicAdd(at, 3u)", 0, nullptr,
       true},
  };
  for (const Case& each : cases) {
    CAPTURE(each.name);
    const std::string body = "KERNEL(k) { I; const unsigned v = mixed(i); " + std::string(each.body) + "; }";
    const Runs out = run_often(body, Words(kElements, each.initial));
    Words expected(kElements, each.initial);
    for (unsigned repeat = 0; repeat < (each.repeats ? kRepeats : 1); ++repeat)
      for_each_thread([&](std::size_t at, std::uint32_t i) {
        const std::uint32_t v = mixed(i);
        expected[at] = each.next != nullptr ? each.next(expected[at], v)
                                            : expected[at] + v + (i % kThreads < 100 ? 0 : 3);
      });
    CHECK(out.elements == expected);
  }
}

TEST_CASE("each old value of an element is seen once") {
  if (!ready()) return;
  // The sums of old values and of their squares identify 0, 1, ... n - 1 well enough.
  const Runs out =
      run_often("KERNEL(k) { I; const unsigned old = atomicAdd(at, 1u); olds[i] += old * old + old; }",
                Words(kElements), kAll);
  Words counts(kElements);
  for (unsigned repeat = 0; repeat < kRepeats; ++repeat)
    for_each_thread([&](std::size_t at, std::uint32_t) { ++counts[at]; });
  CHECK(out.elements == counts);
  Words sums(kElements), expected(kElements);
  for_each_thread([&](std::size_t at, std::uint32_t i) { sums[at] += out.olds[i]; });
  for (std::size_t at = 0; at < kElements; ++at)
    for (std::uint32_t old = 0; old < counts[at]; ++old) expected[at] += old * old + old;
  CHECK(sums == expected);
}

TEST_CASE("compare and swap, and exchanges, lose nothing") {
  if (!ready()) return;
  // Counting by compare and swap.
  const Runs counted = run_often(
      "KERNEL(k) { I; unsigned seen = *(volatile unsigned*)at, was; "
      "do { was = seen; seen = atomicCAS(at, was, was + 1); } while (seen != was); }",
      Words(kElements));
  Words counts(kElements);
  for (unsigned repeat = 0; repeat < kRepeats; ++repeat)
    for_each_thread([&](std::size_t at, std::uint32_t) { ++counts[at]; });
  CHECK(counted.elements == counts);

  // Each thread puts a number in and takes another one out: their sum stays.
  const Runs swapped =
      run_often("KERNEL(k) { I; olds[i] = atomicExch(at, olds[i] + i + 1); }", Words(kElements, 7), kAll);
  std::uint32_t before = 7 * kElements, after = 0;
  for (unsigned repeat = 0; repeat < kRepeats; ++repeat)
    for (std::uint32_t i = 0; i < kAll; ++i) before += i + 1;
  for (const std::uint32_t each : swapped.elements) after += each;
  for (const std::uint32_t each : swapped.olds) after += each;
  CHECK(after == before);
}

TEST_CASE("numbers of 64 bits and floating-point numbers") {
  if (!ready()) return;
  // Sums of small integers are exact in any order.
  const std::string body = R"(
    KERNEL(k) { const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t, e = blockIdx.x * 24 + t; const unsigned v = mixed(i) >> 20;
      TYPE* const at = (TYPE*)d + e; atomicAdd(at, (TYPE)v); })";
  const auto runs = [&](const char* type) {
    return run_often("#define TYPE " + std::string(type) + "\n" + body, Words(2 * std::size_t{kElements}))
        .elements;
  };
  std::vector<std::uint64_t> expected(kElements);
  for (std::uint32_t i = 0; i < kAll; ++i)
    expected[i / kThreads * 24 + i % kThreads] += std::uint64_t{kRepeats} * (mixed(i) >> 20);
  const Words longs = runs("unsigned long long"), doubles = runs("double"), floats = runs("float");
  for (std::size_t at = 0; at < std::size_t{24} * kBlocks + kThreads; ++at) {
    const auto pair = [&](const Words& words) {
      return words[2 * at] | std::uint64_t{words[2 * at + 1]} << 32;
    };
    if (pair(longs) != expected[at] || f64(pair(doubles)) != static_cast<double>(expected[at]) ||
        f32(floats[at]) != static_cast<float>(expected[at])) {
      FAIL_CHECK("element " << at);
      break;
    }
  }
}

TEST_CASE("places that are not aligned, apart, or in rows") {
  if (!ready()) return;
  struct Case {
    const char* name;
    const char* index;  ///< of the element, by i and t
    std::size_t (*host)(std::uint32_t i, std::uint32_t t);
    unsigned threads = kThreads;
  };
  const Case cases[] = {
      {"one word on", "blockIdx.x * 32 + t + 1",
       [](std::uint32_t i, std::uint32_t t) -> std::size_t { return i / kThreads * 32 + t + 1; }},
      {"every third word", "blockIdx.x * 32 + t * 3",
       [](std::uint32_t i, std::uint32_t t) -> std::size_t {
         return i / kThreads * 32 + std::size_t{t} * 3;
       }},
      {"backwards", "blockIdx.x * 32 + 255 - t",
       [](std::uint32_t i, std::uint32_t t) -> std::size_t { return i / kThreads * 32 + 255 - t; }},
      {"rows of 8", "blockIdx.x * 16 + t % 8 + t / 8 * 40",
       [](std::uint32_t i, std::uint32_t t) -> std::size_t {
         return i / kThreads * 16 + t % 8 + std::size_t{t / 8} * 40;
       }},
      {"the whole array for all", "t", [](std::uint32_t, std::uint32_t t) -> std::size_t { return t; }},
      {"blocks of 40 threads", "blockIdx.x * 8 + t",
       [](std::uint32_t i, std::uint32_t t) -> std::size_t { return i / 40 * 8 + t; }, 40},
  };
  for (const Case& each : cases) {
    CAPTURE(each.name);
    const Runs out = run_often("KERNEL(k) { I; atomicAdd(&d[" + std::string(each.index) + "], i % 7 + 1); }",
                               Words(kElements), 1, each.threads);
    Words expected(kElements);
    for (std::uint32_t i = 0; i < kBlocks * each.threads; ++i)
      expected[each.host(i, i % each.threads)] += kRepeats * (i % 7 + 1);
    CHECK(out.elements == expected);
  }
}

// Warps before, at and behind the ends of regions: two workers may own the regions of one access.
TEST_CASE("updates at the ends of regions") {
  if (!ready()) return;
  constexpr unsigned kEnds = 8, kRegion = 4096;  // words
  const Runs out = run_often(R"(
    KERNEL(k) {
      unsigned* const first = (unsigned*)(((unsigned long long)d + 16383) & ~16383ull);
      const unsigned kind = mixed(blockIdx.x) % 3, end = (mixed(blockIdx.x * 7 + 1) % 8 * 2 + 1) * 4096;
      for (int r = 0; r < 200; ++r) atomicAdd(first + end - 16 * (kind == 2 ? 2 : kind) + threadIdx.x, 1u); })",
                             Words((2 * std::size_t{kEnds} + 1) * kRegion), 1, 32);
  std::uint64_t sum = 0;
  for (const std::uint32_t each : out.elements) sum += each;
  CHECK(sum == std::uint64_t{32} * kBlocks * 200 * kRepeats);
}

// Kernels that update unrelated elements run at the same time: from then on, no worker owns a region.
TEST_CASE("a kernel with other atomic operations updates the same array meanwhile") {
  if (!ready()) return;
  const Module module = session().load_cuda(kPrologue + R"(
    KERNEL(near) { I; atomicAdd(at, 1u); }
    KERNEL(far) { I; atomicAdd(&d[mixed(i) % 57856], 3u); }
    KERNEL(old) { I; if (atomicAdd(&d[mixed(i) % 57856], 5u) == 0xffffffff) *olds = 1; }
    KERNEL(ordered) { I; if (i < 4096) atomicAdd(&d[57856 + i % 7], 1u); })");
  static_assert(kElements == 57856);
  auto elements = session().to_device(Words(kElements + 7)), olds = session().to_device(Words(1));
  const Stream one = session().stream(), two = session().stream();
  const auto launch = [&](const char* name, const Stream& stream) {
    module.kernel(name)({.grid = kBlocks, .block = kThreads, .stream = stream})(elements, olds);
  };
  for (unsigned repeat = 0; repeat < kRepeats; ++repeat) {
    launch("near", one);
    launch(repeat % 3 == 0 ? "far" : repeat % 3 == 1 ? "old" : "ordered", two);
    if (repeat % 4 == 0) launch("near", two);
  }
  one.synchronize();
  two.synchronize();
  Words expected(kElements + 7);
  for (unsigned repeat = 0; repeat < kRepeats; ++repeat) {
    for_each_thread([&](std::size_t at, std::uint32_t i) {
      expected[at] += repeat % 4 == 0 ? 2 : 1;
      if (repeat % 3 == 2) {
        if (i < 4096) ++expected[kElements + i % 7];
      } else {
        expected[mixed(i) % kElements] += repeat % 3 == 0 ? 3 : 5;
      }
    });
  }
  CHECK(elements.copy_to_host() == expected);
}

TEST_CASE("after a fault in such an operation, the operations of other programs continue") {
  if (!ready()) return;
  const std::string source = kPrologue + R"(
    extern "C" __global__ void k(unsigned* d, unsigned long long far) {
      const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
      atomicAdd(d + i + (blockIdx.x == 300 ? far : 0), 1u); })";
  for (int repeat = 0; repeat < 3; ++repeat) {
    const Session own(SessionOptions{.device = "cpu", .isolated = true});
    auto broken = own.to_device(Words(kAll));
    auto whole = session().to_device(Words(kAll));
    const auto launch = [&](const Session& on, auto& array, std::uint64_t far) {
      on.load_cuda(source).kernel("k")({.grid = kBlocks, .block = kThreads})(array, far);
    };
    launch(session(), whole, 0);
    CHECK_THROWS_AS(
        [&] {
          launch(own, broken, std::uint64_t{1} << 41);
          own.synchronize();
        }(),
        DriverError);
    launch(session(), whole, 0);
    CHECK(whole.copy_to_host() == Words(kAll, 2));
  }
}

}  // namespace quern::cuda_test
