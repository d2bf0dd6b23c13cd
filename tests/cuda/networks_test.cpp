// SPDX-License-Identifier: Apache-2.0
// Threads that exchange elements of shared memory where a comparison says so.
#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "harness.hpp"

using namespace quern;
using namespace quern::cuda_test;

namespace {

template <class T>
std::vector<T> sample(std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] =
        static_cast<T>(static_cast<std::int32_t>(mixed(static_cast<std::uint32_t>(i)) >> 8) - 8000000);
  return values;
}

/// Runs `source` with one block of `threads` threads, whose macros are the type and the number of threads.
template <class T>
std::vector<T> exchanged(const std::string& source, const std::string& type, const std::vector<T>& in,
                         unsigned threads) {
  const std::string macros = "#define T " + type + "\n#define N " + std::to_string(threads) + "\n";
  std::vector<T> out(in.size());
  const Kernel kernel = cuda_test::session().load_cuda(macros + source).kernel();
  kernel({.block = threads})(In(in), Out(out));
  return out;
}

/// Calls `each` with a value of each type, the type's name, and numbers of threads.
template <class Each>
void for_each_type(std::initializer_list<unsigned> threads, const Each& each) {
  for (const unsigned count : threads) each(int{}, "int", count);
  const unsigned first = *threads.begin();
  each(unsigned{}, "unsigned", first);
  each(float{}, "float", first);
  each((long long){}, "long long", first);
  each((unsigned char){}, "unsigned char", first);
}

}  // namespace

TEST_CASE("a bitonic network sorts") {
  if (!ready()) return;
  const std::string source = R"(extern "C" __global__ void k(const T* in, T* out) {
    __shared__ T part[2 * N];
    const int t = threadIdx.x;
    part[t] = in[t]; part[t + N] = in[t + N];
    for (int k = 2; k <= 2 * N; k *= 2)
      for (int j = k / 2; j > 0; j /= 2) {
        __syncthreads();
        const int low = 2 * t - (t & (j - 1)), high = low + j;
        const T a = part[low], b = part[high];
        if ((a > b) == ((low & k) == 0)) { part[low] = b; part[high] = a; }
      }
    __syncthreads();
    out[t] = part[t]; out[t + N] = part[t + N]; })";
  for_each_type({64, 16, 256}, [&]<class T>(T, const std::string& type, unsigned threads) {
    CAPTURE(type);
    CAPTURE(threads);
    std::vector<T> values = sample<T>(2 * threads);
    const std::vector<T> sorted = exchanged(source, type, values, threads);
    std::ranges::sort(values);
    CHECK(sorted == values);
  });
}

TEST_CASE("exchanges of several elements a thread, in blocks that end in the middle of a warp") {
  if (!ready()) return;
  // Each thread exchanges two pairs before it waits; smaller numbers move their indices with them.
  const std::string source = R"(extern "C" __global__ void k(const T* in, T* out) {
    __shared__ T part[4 * N];
    __shared__ short from[4 * N];
    const int t = threadIdx.x;
    for (int i = t; i < 4 * N; i += N) { part[i] = in[i]; from[i] = i; }
    #pragma unroll
    for (int round = 0; round < 6; ++round) {
      __syncthreads();
      #pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const int low = 4 * t + (round % 2 == 0 ? 2 * pair : pair), high = low + (round % 2 == 0 ? 1 : 2);
        const T a = part[low], b = part[high];
        const short x = from[low], y = from[high];
        if (b < a) { part[low] = b; part[high] = a; from[low] = y; from[high] = x + round % 2; }
      }
      __syncthreads();
      const int low = (4 * t + 3 * round) % (4 * N), high = (low + 2) % (4 * N);
      const T a = part[low], b = part[high];
      if (a < b) part[low] = b; else part[high] = a;
    }
    __syncthreads();
    for (int i = t; i < 4 * N; i += N) out[i] = part[i] + from[i] % 50; })";
  for_each_type({100, 32, 256}, [&]<class T>(T, const std::string& type, unsigned threads) {
    CAPTURE(type);
    CAPTURE(threads);
    const std::vector<T> in = sample<T>(4 * threads);
    std::vector<T> part = in;
    std::vector<int> from(part.size());
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int>(i);
    for (unsigned round = 0; round < 6; ++round) {
      for (unsigned t = 0; t < threads; ++t)
        for (unsigned pair = 0; pair < 2; ++pair) {
          const unsigned low = 4 * t + (round % 2 == 0 ? 2 * pair : pair);
          const unsigned high = low + (round % 2 == 0 ? 1 : 2);
          if (!(part[high] < part[low])) continue;
          std::swap(part[low], part[high]);
          std::swap(from[low], from[high]);
          from[high] += static_cast<int>(round % 2);
        }
      for (unsigned t = 0; t < threads; ++t) {
        const unsigned low = (4 * t + 3 * round) % (4 * threads), high = (low + 2) % (4 * threads);
        part[part[low] < part[high] ? low : high] = std::max(part[low], part[high]);
      }
    }
    std::vector<T> expected(part.size());
    for (std::size_t i = 0; i < part.size(); ++i)
      expected[i] = static_cast<T>(part[i] + static_cast<T>(from[i] % 50));
    CHECK(exchanged(source, type, in, threads) == expected);
  });
}
