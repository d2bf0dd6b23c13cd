// SPDX-License-Identifier: Apache-2.0
// Cooperation of threads: warp functions, atomics, asynchronous copies, cooperative groups.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "harness.hpp"

using namespace quern;
using namespace quern::cuda_test;
using Words = std::vector<std::uint32_t>;

namespace {

Words sample(std::size_t count) {
  Words words(count);
  for (std::size_t i = 0; i < count; ++i) words[i] = static_cast<std::uint32_t>(i * 2654435761u >> 7) % 1000;
  return words;
}

}  // namespace

TEST_CASE("reductions over a warp and over a part of it") {
  if (!ready()) return;
  const std::string source = R"(extern "C" __global__ void k(unsigned* d) {
    int i = threadIdx.x; unsigned v = d[i] - 500, m = i % 3 == 0 ? 0x49249249u : i % 3 == 1 ? 0x92492492u : 0x24924924u;
    d[32 + i] = __reduce_add_sync(~0u, v); d[64 + i] = __reduce_min_sync(~0u, (int)v); d[96 + i] = __reduce_max_sync(~0u, v);
    d[128 + i] = __reduce_xor_sync(~0u, v); d[160 + i] = __reduce_and_sync(m, v); d[192 + i] = __reduce_or_sync(m, v);
    if (i < 20) d[224 + i] = __reduce_add_sync(0xfffffu, v);
    d[256 + i] = __reduce_max_sync(m, (int)v); })";
  Words in = sample(32);
  in.resize(288);
  const Words out = run(source, "k", in, 32);
  const auto v = [&](std::size_t i) { return in[i] - 500; };
  std::uint32_t sum = 0, part = 0, exclusive = 0, greatest = 0;
  std::int32_t least = INT32_MAX;
  for (std::size_t i = 0; i < 32; ++i) {
    sum += v(i), exclusive ^= v(i), greatest = std::max(greatest, v(i)),
                                    least = std::min(least, static_cast<std::int32_t>(v(i)));
    if (i < 20) part += v(i);
  }
  for (std::size_t i = 0; i < 32; ++i) {
    std::uint32_t all = ~0u, any = 0;
    std::int32_t most = INT32_MIN;
    for (std::size_t j = i % 3; j < 32; j += 3)
      all &= v(j), any |= v(j), most = std::max(most, static_cast<std::int32_t>(v(j)));
    CHECK(out[32 + i] == sum);
    CHECK(static_cast<std::int32_t>(out[64 + i]) == least);
    CHECK(out[96 + i] == greatest);
    CHECK(out[128 + i] == exclusive);
    CHECK(out[160 + i] == all);
    CHECK(out[192 + i] == any);
    if (i < 20) CHECK(out[224 + i] == part);
    CHECK(static_cast<std::int32_t>(out[256 + i]) == most);
  }
}

TEST_CASE("votes, matches and shuffles") {
  if (!ready()) return;
  const Words in = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3,
                    2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5};
  Words words = in;
  words.resize(320);
  const Words out =
      run(R"(extern "C" __global__ void k(unsigned* d) { int i = threadIdx.x; unsigned v = d[i]; int all;
    d[32 + i] = __ballot_sync(~0u, v > 4); d[64 + i] = __match_any_sync(~0u, v); d[96 + i] = __match_all_sync(~0u, i < 40, &all) + all;
    d[128 + i] = __shfl_up_sync(~0u, v, 3); d[160 + i] = __shfl_xor_sync(~0u, (double)v, 5); d[192 + i] = __shfl_sync(~0u, v, i + 1, 8);
    d[224 + i] = __shfl_down_sync(~0u, v, 2, 16); d[256 + i] = __any_sync(~0u, v == 8) + 2 * __all_sync(~0u, v < 9) + 4 * __uni_sync(~0u, v < 10);
    if (i % 2) d[288 + i] = __popc(__activemask()) + __shfl_sync(0xaaaaaaaau, v, 31); })",
          "k", words, 32);
  std::uint32_t ballot = 0;
  for (std::size_t i = 0; i < 32; ++i) ballot |= static_cast<std::uint32_t>(in[i] > 4) << i;
  for (std::size_t i = 0; i < 32; ++i) {
    std::uint32_t same = 0;
    for (std::size_t j = 0; j < 32; ++j) same |= static_cast<std::uint32_t>(in[i] == in[j]) << j;
    CHECK(out[32 + i] == ballot);
    CHECK(out[64 + i] == same);
    CHECK(out[96 + i] == 0);  // all ones, and one
    CHECK(out[128 + i] == in[i < 3 ? i : i - 3]);
    CHECK(out[160 + i] == in[i ^ 5]);
    CHECK(out[192 + i] == in[i / 8 * 8 + (i + 1) % 8]);
    CHECK(out[224 + i] == in[i % 16 < 14 ? i + 2 : i]);
    CHECK(out[256 + i] == 5);
    if (i % 2 == 1) CHECK(out[288 + i] == 16 + in[31]);
  }
}

TEST_CASE("atomics of every type, in global and in shared memory") {
  if (!ready()) return;
  const std::string source = R"(
    template <class T> __device__ void all(T* p, T one) {
      atomicAdd(p, one); atomicMin(p + 1, (T)(10 + threadIdx.x)); atomicMax(p + 2, (T)threadIdx.x); atomicAnd(p + 3, (T)~(one << threadIdx.x % 8));
      atomicOr(p + 4, one << threadIdx.x % 8); atomicXor(p + 5, one << threadIdx.x % 8); }
    extern "C" __global__ void k(unsigned* d) {
      __shared__ unsigned s[8]; __shared__ float f[2]; __shared__ unsigned long long l[8];
      int i = threadIdx.x; if (i < 8) { s[i] = i == 1 || i == 3 ? ~0u : 0; l[i] = i == 1 || i == 3 ? ~0ull : 0; } if (i < 2) f[i] = 0; __syncthreads();
      all(s, 1u); all(l, 1ull); all(d, 1u); all((unsigned long long*)(d + 32), 1ull); atomicAdd(f, 0.5f);
      atomicAdd((float*)(d + 8), 0.25f); atomicAdd((double*)(d + 10), 0.125); atomicInc(d + 12, 9); atomicDec(d + 13, 9);
      unsigned seen = d[14], old; do { old = seen; seen = atomicCAS(d + 14, old, old + 2); } while (seen != old);
      atomicAdd_block(d + 15, 1u); atomicAdd_system(d + 16, 1u); atomicSub(d + 17, 3u); d[128 + i] = atomicAdd(d + 18, 1u);
      atomicExch((float*)(d + 19), 2.5f); __syncthreads();
      if (i < 6) { d[64 + i] = s[i]; d[80 + i] = (unsigned)l[i]; } if (i == 6) d[70] = __float_as_uint(f[0]); })";
  Words words(128 + 96);
  words[1] = words[3] = words[34] = words[35] = words[38] = words[39] = ~0u;
  const Words out = run(source, "k", words, 96);
  const std::uint32_t expected[] = {96, 10, 95, ~0u & ~0xffu, 0xff, 0};
  for (std::size_t k = 0; k < 6; ++k) {
    CHECK(out[k] == expected[k]);
    CHECK(out[32 + 2 * k] == expected[k]);
    CHECK(out[64 + k] == expected[k]);
    CHECK(out[80 + k] == expected[k]);
  }
  CHECK(f32(out[70]) == 48.0f);
  CHECK(f32(out[8]) == 24.0f);
  CHECK(f64(out[10] | static_cast<Bits>(out[11]) << 32) == 12.0);
  CHECK(out[12] == 96 % 10);
  CHECK(out[13] == 4);  // 96 steps down from 0 through 9, 8, ..., 0
  CHECK(out[14] == 192);
  CHECK(out[15] == 96);
  CHECK(out[16] == 96);
  CHECK(out[17] == 0u - 3 * 96);
  CHECK(f32(out[19]) == 2.5f);
  Words tickets(out.begin() + 128, out.begin() + 224);
  std::sort(tickets.begin(), tickets.end());
  for (std::uint32_t i = 0; i < 96; ++i) CHECK(tickets[i] == i);
}

TEST_CASE("atomics of half precision, alone and in pairs") {
  if (!ready()) return;
  const Words out = run(R"(#include <cuda_fp16.h>
    extern "C" __global__ void k(unsigned* d) { atomicAdd((__half*)d, __float2half(0.5f)); atomicAdd((__half2*)(d + 1), __floats2half2_rn(1.0f, 0.25f));
      __half2 old = atomicAdd((__half2*)(d + 2), __floats2half2_rn(1.0f, 2.0f)); d[32 + threadIdx.x] = *(unsigned*)&old; })",
                        "k", Words(64), 32);
  CHECK(out[0] == 0x4c00);                    // 16
  CHECK(out[1] == (0x4800u << 16 | 0x5000));  // 8 above 32
  Words olds(out.begin() + 32, out.end());
  std::sort(olds.begin(), olds.end(),
            [](std::uint32_t a, std::uint32_t b) { return (a & 0xffff) < (b & 0xffff); });
  CHECK(olds[0] == 0);
  CHECK(olds[1] == (0x4000u << 16 | 0x3c00));   // 2 above 1
  CHECK(olds[31] == (0x53c0u << 16 | 0x4fc0));  // 62 above 31
}

TEST_CASE("cuda::atomic_ref and cuda::atomic in every order and scope") {
  if (!ready()) return;
  const Words out = run(R"(#include <cuda/atomic>
    template <class T, cuda::thread_scope S> __device__ T all(T* p) { cuda::atomic_ref<T, S> a(*p); T got = a.fetch_add(1); a.fetch_add(2, cuda::memory_order_relaxed);
      a.fetch_sub(1, cuda::memory_order_acquire); a.fetch_max(3, cuda::memory_order_release); a.fetch_min(1000, cuda::memory_order_acq_rel);
      T expected = a.load(cuda::memory_order_acquire); while (!a.compare_exchange_weak(expected, expected + 1, cuda::memory_order_seq_cst)) {} return got; }
    __device__ cuda::atomic<int, cuda::thread_scope_device> counter;
    extern "C" __global__ void k(unsigned* d) { all<unsigned, cuda::thread_scope_device>(d); all<int, cuda::thread_scope_block>((int*)d + 1);
      all<unsigned long long, cuda::thread_scope_system>((unsigned long long*)d + 1); all<float, cuda::thread_scope_device>((float*)d + 4);
      all<double, cuda::thread_scope_block>((double*)d + 3); cuda::atomic_ref<short> s(*(short*)(d + 8)); s.fetch_add(4); s.fetch_sub(1);
      cuda::atomic_ref<unsigned char> c(*(unsigned char*)(d + 9)); c.fetch_or(1 << threadIdx.x % 8); c.fetch_xor(0, cuda::memory_order_relaxed);
      counter += 2; __syncthreads(); cuda::atomic_thread_fence(cuda::memory_order_seq_cst); if (threadIdx.x == 0) { d[10] = counter.exchange(7); d[11] = counter--; } })",
                        "k", Words(16), 64);
  CHECK(out[0] == 192);
  CHECK(out[1] == 192);
  CHECK(out[2] == 192);
  CHECK(f32(out[4]) == 192.0f);
  CHECK(f64(out[6] | static_cast<Bits>(out[7]) << 32) == 192.0);
  CHECK(out[8] == 192);
  CHECK(out[9] == 0xff);
  CHECK(out[10] == 128);
  CHECK(out[11] == 7);
}

TEST_CASE("asynchronous copies arrive, with zeros where nothing is read") {
  if (!ready()) return;
  const std::string source = R"(#include <cuda_pipeline.h>
    extern "C" __global__ void k(unsigned* d) { __shared__ __align__(16) unsigned s[256]; int i = threadIdx.x;
      __pipeline_memcpy_async((int4*)s + i, (const int4*)d + i, 16); __pipeline_commit(); __pipeline_wait_prior(0); __syncthreads();
      d[256 + i] = s[255 - i]; __syncthreads();
      __pipeline_memcpy_async((int2*)s + i, (const int2*)d + i, 8, 3); __pipeline_commit(); __pipeline_wait_prior(0); __syncthreads();
      d[320 + i] = s[2 * i]; d[384 + i] = s[2 * i + 1]; __syncthreads();
      unsigned a = (unsigned)__cvta_generic_to_shared(s + i); asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(a), "l"(d + i), "r"(i % 6) : "memory");
      asm volatile("{ .reg .pred p; setp.eq.u32 p, %2, 3; cp.async.ca.shared.global [%0], [%1], 4, p; }" :: "r"(a + 256), "l"(d + i), "r"(i % 4) : "memory");
      asm volatile("cp.async.wait_all;" ::: "memory"); d[448 + i] = s[i]; d[512 + i] = s[64 + i]; })";
  Words in(576);
  for (std::uint32_t i = 0; i < 256; ++i) in[i] = 0x01020304u * (i % 200 + 1) ^ i;
  const Words out = run(source, "k", in, 64);
  for (std::uint32_t i = 0; i < 64; ++i) {
    CHECK(out[256 + i] == in[255 - i]);
    CHECK(out[320 + i] == in[2 * i]);
    CHECK(out[384 + i] == (in[2 * i + 1] & 0xff));  // 8 - 3 bytes are read
    const std::uint32_t bytes = std::min(i % 6, 4u);
    CHECK(out[448 + i] == (bytes == 4 ? in[i] : in[i] & ((1u << 8 * bytes) - 1)));
    CHECK(out[512 + i] == (i % 4 == 3 ? 0 : in[i]));
  }
}

TEST_CASE("an mbarrier counts arrivals and changes its phase") {
  if (!ready()) return;
  const Words out = run(
      R"(extern "C" __global__ void k(unsigned* d) { __shared__ unsigned long long b; unsigned a = (unsigned)__cvta_generic_to_shared(&b);
      unsigned long long state, other; unsigned p, q, n; int i = threadIdx.x;
      if (i == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(a) : "memory"); __syncthreads();
      asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(a) : "memory"); asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(n) : "l"(state)); __syncthreads();
      asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(p) : "r"(a), "l"(state) : "memory");
      asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 1; selp.u32 %0, 1, 0, p; }" : "=r"(q) : "r"(a) : "memory"); __syncthreads();
      d[i] = p; d[64 + i] = q; d[128 + i] = n;
      if (i < 63) asm volatile("mbarrier.arrive_drop.shared.b64 %0, [%1];" : "=l"(other) : "r"(a) : "memory"); __syncthreads();
      asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 1; selp.u32 %0, 1, 0, p; }" : "=r"(p) : "r"(a) : "memory"); __syncthreads();
      if (i == 63) asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(a) : "memory"); __syncthreads();
      asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 1; selp.u32 %0, 1, 0, p; }" : "=r"(q) : "r"(a) : "memory");
      d[192 + i] = p; d[256 + i] = q; __syncthreads();
      if (i == 5) { asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(a) : "memory");
        asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(p) : "r"(a), "l"(state) : "memory"); d[320] = p; } })",
      "k", Words(384), 64);
  Words pending(out.begin() + 128, out.begin() + 192);
  std::sort(pending.begin(), pending.end());
  for (std::uint32_t i = 0; i < 64; ++i) {
    CHECK(out[i] == 1);       // phase 0 is over
    CHECK(out[64 + i] == 0);  // phase 1 is not
    CHECK(pending[i] == i + 1);
    CHECK(out[192 + i] == 0);  // one arrival is missing
    CHECK(out[256 + i] == 1);
  }
  CHECK(out[320] == 1);  // 63 of 64 have dropped out: one arrival is a phase
}

TEST_CASE("cooperative groups: tiles, reductions, scans, coalesced threads, partitions") {
  if (!ready()) return;
  const std::string source = R"(
    #include <cooperative_groups.h>
    #include <cooperative_groups/reduce.h>
    #include <cooperative_groups/scan.h>
    #include <cooperative_groups/memcpy_async.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void k(unsigned* d) { auto block = cg::this_thread_block(); auto warp = cg::tiled_partition<32>(block); auto tile = cg::tiled_partition<8>(block);
      unsigned i = block.thread_rank(), v = d[i];
      d[64 + i] = cg::reduce(warp, v, cg::plus<unsigned>()); d[128 + i] = cg::reduce(tile, v, cg::greater<unsigned>());
      d[192 + i] = cg::inclusive_scan(warp, v); d[256 + i] = cg::exclusive_scan(tile, v, cg::plus<unsigned>());
      d[320 + i] = tile.shfl_xor(v, 3) + tile.meta_group_rank() * 1000; d[384 + i] = tile.ballot(v % 2 == 0);
      if (i % 3 == 0) { auto some = cg::coalesced_threads(); d[448 + i] = some.size() * 100 + some.thread_rank(); d[512 + i] = cg::reduce(some, v, cg::plus<unsigned>()); }
      auto half = cg::binary_partition(warp, v % 2 == 0); d[576 + i] = half.size(); auto label = cg::labeled_partition(warp, i % 4); d[640 + i] = label.thread_rank();
      __shared__ unsigned s[64]; cg::memcpy_async(block, s, d, sizeof s); cg::wait(block); d[704 + i] = s[63 - i]; })";
  Words in = sample(64);
  in.resize(768);
  const Words out = run(source, "k", in, 64);
  for (std::size_t i = 0; i < 64; ++i) {
    const std::size_t warp = i / 32 * 32, tile = i / 8 * 8;
    const auto at = [&](std::size_t k) { return in.begin() + static_cast<std::ptrdiff_t>(k); };
    CHECK(out[64 + i] == std::accumulate(at(warp), at(warp + 32), 0u));
    CHECK(out[128 + i] == *std::max_element(at(tile), at(tile + 8)));
    CHECK(out[192 + i] == std::accumulate(at(warp), at(i + 1), 0u));
    CHECK(out[256 + i] == std::accumulate(at(tile), at(i), 0u));
    CHECK(out[320 + i] == in[i ^ 3] + i / 8 * 1000);
    std::uint32_t even = 0, thirds = 0, third_sum = 0, before = 0, same = 0;
    for (std::size_t j = 0; j < 8; ++j) even |= static_cast<std::uint32_t>(in[tile + j] % 2 == 0) << j;
    for (std::size_t j = warp; j < warp + 32; ++j) {
      if (j % 3 == 0) ++thirds, third_sum += in[j], before += j < i ? 1 : 0;
      same += in[j] % 2 == in[i] % 2 ? 1 : 0;
    }
    CHECK(out[384 + i] == even);
    if (i % 3 == 0) CHECK(out[448 + i] == thirds * 100 + before);
    if (i % 3 == 0) CHECK(out[512 + i] == third_sum);
    CHECK(out[576 + i] == same);
    CHECK(out[640 + i] == i % 32 / 4);
    CHECK(out[704 + i] == in[63 - i]);
  }
}
