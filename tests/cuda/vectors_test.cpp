// SPDX-License-Identifier: Apache-2.0
// Vectors of a thread (float2, int4, ...) at scattered addresses: each byte of the memory around them is
// compared with a model that copies bytes.
#include <doctest/doctest.h>

#include <algorithm>
#include <span>

#include "harness.hpp"

namespace quern::cuda_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct Vector {
  const char* type;
  std::size_t element_bytes, count;

  std::size_t bytes() const { return element_bytes * count; }
};
constexpr Vector kVectors[] = {{"float2", 4, 2},
                               {"int4", 4, 4},
                               {"longlong2", 8, 2},
                               {"short4", 2, 4},
                               {"uchar4", 1, 4},
                               // only in some cases:
                               {"float4", 4, 4},
                               {"int2", 4, 2},
                               {"uint2", 4, 2},
                               {"double2", 8, 2},
                               {"short2", 2, 2},
                               {"ushort4", 2, 4},
                               {"char2", 1, 2},
                               {"char4", 1, 4}};
constexpr std::size_t kFew = 5;

constexpr unsigned kBlock = 96, kBlocks = 2;
constexpr std::size_t kAll = kBlock * kBlocks;
/// Bytes of a source or target: a place of 128 bytes for each thread.
constexpr std::size_t kMemory = kAll * 128;

/// A permutation of the threads: no two neighbours stay neighbours, and warps mix.
std::size_t permuted(std::size_t i) { return (i * 77 + 5) % kAll; }

/// The kernels compute the places of the source and target from `in_step`, `out_step` and `offset`, in bytes.
struct Steps {
  std::size_t in, out, offset;
};

const std::string kPrologue = R"(
  using u64 = unsigned long long;
  #define KERNEL(name) extern "C" __global__ void name(const unsigned char* in, unsigned char* out, u64 in_step, u64 out_step, u64 offset, unsigned limit)
  #define ALL 192
  #define I const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t; const unsigned to = (i * 77 + 5) % ALL, from = ALL - 1 - to; (void)to; (void)from;
  #define IN(k) (*(const V*)(in + (u64)(k) * in_step))
  #define OUT(k) (*(V*)(out + (u64)(k) * out_step + offset))
  template <class V, int N> struct Turn;
  template <class V> struct Turn<V, 2> { static __device__ V of(V a, V b) { V r; r.x = b.y; r.y = a.x; return r; } };
  template <class V> struct Turn<V, 4> { static __device__ V of(V a, V b) { V r; r.x = b.w; r.y = a.z; r.z = b.y; r.w = a.x; return r; } };
)";

/// The model of Turn: element k of the result is element count - 1 - k of b (k even) or a (k odd).
Bytes turned(const Vector& v, const std::uint8_t* a, const std::uint8_t* b) {
  Bytes result(v.bytes());
  for (std::size_t k = 0; k < v.count; ++k)
    std::copy_n((k % 2 == 0 ? b : a) + (v.count - 1 - k) * v.element_bytes, v.element_bytes,
                result.begin() + static_cast<std::ptrdiff_t>(k * v.element_bytes));
  return result;
}

Bytes pattern(std::size_t count, std::uint32_t seed) {
  Bytes bytes(count);
  for (std::uint32_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(mixed(i * 4 + seed) >> 13);
  return bytes;
}

bool kept(std::uint32_t i) { return mixed(i) >> 31 != 0; }
const std::string kKept = "__device__ bool kept(unsigned i) { return mixed(i) >> 31 != 0; }\n";

/// A kernel over V and N, and what thread i does to `out`.
struct Case {
  const char* name;
  const char* body;
  void (*host)(const Vector& v, const Bytes& in, Bytes& out, const Steps& steps, std::size_t i);
};

void put(Bytes& out, std::size_t at, const Bytes& value) {
  std::copy(value.begin(), value.end(), out.begin() + static_cast<std::ptrdiff_t>(at));
}
Bytes turned_of(const Vector& v, const Bytes& in, const Steps& steps, std::size_t i) {
  return turned(v, &in[i * steps.in], &in[(kAll - 1 - permuted(i)) * steps.in]);
}

const std::vector<Case> kCases = {
    {"a permutation", "OUT(to) = Turn<V, N>::of(IN(i), IN(from));",
     [](const Vector& v, const Bytes& in, Bytes& out, const Steps& steps, std::size_t i) {
       put(out, permuted(i) * steps.out + steps.offset, turned_of(v, in, steps, i));
     }},
    {"in the order of threads", "OUT(i) = Turn<V, N>::of(IN(i), IN(from));",
     [](const Vector& v, const Bytes& in, Bytes& out, const Steps& steps, std::size_t i) {
       put(out, i * steps.out + steps.offset, turned_of(v, in, steps, i));
     }},
    {"some threads", "if (kept(i)) OUT(to) = Turn<V, N>::of(IN(i), IN(from));",
     [](const Vector& v, const Bytes& in, Bytes& out, const Steps& steps, std::size_t i) {
       if (kept(static_cast<std::uint32_t>(i)))
         put(out, permuted(i) * steps.out + steps.offset, turned_of(v, in, steps, i));
     }},
    {"one thread of a warp", "if (i % 32 == 13) OUT(to) = Turn<V, N>::of(IN(i), IN(from));",
     [](const Vector& v, const Bytes& in, Bytes& out, const Steps& steps, std::size_t i) {
       if (i % 32 == 13) put(out, permuted(i) * steps.out + steps.offset, turned_of(v, in, steps, i));
     }},
    {"two sides of a branch, and stores of one element",
     R"(if (kept(i)) OUT(to) = Turn<V, N>::of(IN(i), IN(from)); else { V r = IN(from); OUT(to).y = r.x; }
      if (!kept(i + 7)) OUT(to).x = IN(i).y;)",
     [](const Vector& v, const Bytes& in, Bytes& out, const Steps& steps, std::size_t i) {
       const std::size_t at = permuted(i) * steps.out + steps.offset, e = v.element_bytes;
       if (kept(static_cast<std::uint32_t>(i)))
         put(out, at, turned_of(v, in, steps, i));
       else
         std::copy_n(&in[(kAll - 1 - permuted(i)) * steps.in], e, &out[at + e]);
       if (!kept(static_cast<std::uint32_t>(i) + 7)) std::copy_n(&in[i * steps.in + e], e, &out[at]);
     }},
    {"a loop, places as the data say",
     R"(for (unsigned r = 0; r < 1 + i % 3; ++r) { const V v = IN((i + r) % ALL); if (((const unsigned char*)(in + i * in_step))[0] % 4 != r) OUT(to) = Turn<V, N>::of(v, OUT(to)); })",
     [](const Vector& v, const Bytes& in, Bytes& out, const Steps& steps, std::size_t i) {
       const std::size_t at = permuted(i) * steps.out + steps.offset;
       for (std::size_t r = 0; r < 1 + i % 3; ++r)
         if (in[i * steps.in] % 4 != r) put(out, at, turned(v, &in[(i + r) % kAll * steps.in], &out[at]));
     }},
    {"to local memory and back",
     R"(V own[4]; for (int k = 0; k < 4; ++k) own[k] = IN(i); own[to % 4] = IN(from); if (kept(i)) own[(to >> 2) % 4] = Turn<V, N>::of(IN(i), IN(from));
      OUT(to) = own[in[i * in_step] % 4];)",
     [](const Vector& v, const Bytes& in, Bytes& out, const Steps& steps, std::size_t i) {
       const std::size_t to = permuted(i), chosen = in[i * steps.in] % 4;
       const std::uint8_t* own = &in[i * steps.in];
       const std::uint8_t* other = &in[(kAll - 1 - to) * steps.in];
       Bytes result(own, own + v.bytes());
       if (chosen == to % 4) result.assign(other, other + v.bytes());
       if (kept(static_cast<std::uint32_t>(i)) && chosen == (to >> 2) % 4)
         result = turned_of(v, in, steps, i);
       put(out, to * steps.out + steps.offset, result);
     }},
    // Thread t writes the place of the block's thread t * 5 % 96 + (t * 5 / 96 ...): 5 and 96 have no common
    // divisor.
    {"through shared memory",
     R"(__shared__ V there[96 + 2]; there[1 + t] = IN(i); if (t == 0) there[0] = there[97] = IN(0); __syncthreads();
      const V mine = there[1 + t]; __syncthreads(); if (kept(i)) there[1 + t * 5 % 96] = Turn<V, N>::of(mine, IN(from)); __syncthreads(); OUT(i) = there[1 + t];
      if (t == 0) { OUT(i) = there[0]; } if (t == 95) OUT(i) = there[97];)",
     [](const Vector& v, const Bytes& in, Bytes& out, const Steps& steps, std::size_t i) {
       const std::size_t block = i / kBlock * kBlock;
       std::size_t by = 0;
       while (by * 5 % kBlock != i % kBlock) ++by;
       by += block;
       const std::uint8_t* own = &in[i * steps.in];
       Bytes result(own, own + v.bytes());
       if (kept(static_cast<std::uint32_t>(by))) result = turned_of(v, in, steps, by);
       if (i % kBlock == 0 || i % kBlock == kBlock - 1)
         result.assign(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(v.bytes()));
       put(out, i * steps.out + steps.offset, result);
     }},
    {"through generic pointers",
     R"(__shared__ V there[96]; V own[2]; own[0] = own[1] = IN(from); there[t] = IN(i); __syncthreads();
      V* p = to % 3 == 0 ? &there[t] : to % 3 == 1 ? &OUT(to) : &own[to & 1]; const V old = IN(from); *p = Turn<V, N>::of(IN(i), old); __syncthreads();
      const V* q = to % 3 == 1 ? &OUT(to) : to % 3 == 0 ? &there[t] : &own[i & 1]; OUT(to) = *q;)",
     [](const Vector& v, const Bytes& in, Bytes& out, const Steps& steps, std::size_t i) {
       const std::size_t to = permuted(i);
       const std::uint8_t* other = &in[(kAll - 1 - to) * steps.in];
       Bytes result = turned_of(v, in, steps, i);
       if (to % 3 == 2 && (to & 1) != (i & 1)) result.assign(other, other + v.bytes());
       put(out, to * steps.out + steps.offset, result);
     }},
    {"below a limit, after a return", "if (i >= limit) return; OUT(to) = Turn<V, N>::of(IN(i), IN(from));",
     [](const Vector& v, const Bytes& in, Bytes& out, const Steps& steps, std::size_t i) {
       if (i < 101) put(out, permuted(i) * steps.out + steps.offset, turned_of(v, in, steps, i));
     }},
    {"several of one structure",
     "V* p = &OUT(to); const V v = Turn<V, N>::of(IN(i), IN(from)); p[0] = v; if (out_step >= offset + 3 * "
     "sizeof(V)) { p[1] = IN(from); if (kept(i)) p[2] = IN(i); }",
     [](const Vector& v, const Bytes& in, Bytes& out, const Steps& steps, std::size_t i) {
       const std::size_t at = permuted(i) * steps.out + steps.offset, n = v.bytes();
       put(out, at, turned_of(v, in, steps, i));
       if (steps.out < steps.offset + 3 * n) return;
       std::copy_n(&in[(kAll - 1 - permuted(i)) * steps.in], n, &out[at + n]);
       if (kept(static_cast<std::uint32_t>(i))) std::copy_n(&in[i * steps.in], n, &out[at + 2 * n]);
     }},
    {"with cache hints",
     "if (kept(i + 3)) __stcs(&OUT(to), Turn<V, N>::of(__ldcg(&IN(i)), __ldg(&IN(from)))); else "
     "__stwt(&OUT(to), __ldcs(&IN(from)));",
     [](const Vector& v, const Bytes& in, Bytes& out, const Steps& steps, std::size_t i) {
       const std::uint8_t* other = &in[(kAll - 1 - permuted(i)) * steps.in];
       put(out, permuted(i) * steps.out + steps.offset,
           kept(static_cast<std::uint32_t>(i) + 3) ? turned_of(v, in, steps, i)
                                                   : Bytes(other, other + v.bytes()));
     }},
};

/// `block`: threads of a block; kAll is a multiple of it.
void check_case(const Case& one, std::size_t vectors = kFew, unsigned block = kBlock) {
  if (!ready()) return;
  std::string source = std::string(kMixedSource) + kKept + kPrologue;
  for (const Vector& v : std::span(kVectors).first(vectors)) {
    // Steps are arguments in the first kernel, and constants in the second.
    const std::string types =
        std::string(" { using V = ") + v.type + "; constexpr int N = " + std::to_string(v.count) + "; I ";
    source += std::string("KERNEL(") + v.type + "_any)" + types + one.body + " }\n";
    if (v.type != kVectors[0].type && v.type != kVectors[1].type) continue;
    source += std::string("KERNEL(") + v.type + "_fixed)" + types +
              "in_step = sizeof(V); out_step = 48; offset = 16; " + one.body + " }\n";
  }
  const Expected<Module> module = session().try_load_cuda(source);
  if (!module) FAIL(to_string(module.errors()));
  const Bytes in = pattern(kMemory, 1), before = pattern(kMemory + 256, 2);
  auto in_there = session().to_device(in);
  for (const Vector& v : std::span(kVectors).first(vectors)) {
    const std::size_t n = v.bytes();
    const auto compare = [&](const std::string& kernel, const Steps& steps) {
      INFO(kernel);
      CAPTURE(steps.out);
      CAPTURE(steps.offset);
      auto out_there = session().to_device(before);
      module->kernel(kernel)({.grid = static_cast<unsigned>(kAll) / block, .block = block})(
          in_there, out_there, std::uint64_t{steps.in}, std::uint64_t{steps.out}, std::uint64_t{steps.offset},
          101u);
      const Bytes out = out_there.copy_to_host();
      Bytes expected = before;
      for (std::size_t i = 0; i < kAll; ++i) one.host(v, in, expected, steps, i);
      const std::size_t at = static_cast<std::size_t>(std::ranges::mismatch(out, expected).in1 - out.begin());
      CAPTURE(at);
      CHECK(at == out.size());
    };
    const std::string any = std::string(v.type) + "_any", fixed = std::string(v.type) + "_fixed";
    compare(any, {n, n, 0});
    compare(any, {n, 16, 0});
    compare(any, {32, 32, 16});
    compare(any, {16, 48, 32 - n});
    compare(any, {48, 128, 128 - n});
    compare(any, {128, 128, n});
    if (v.type == kVectors[0].type || v.type == kVectors[1].type) compare(fixed, {n, 48, 16});
  }
}

}  // namespace

TEST_CASE("vectors of threads: a permutation") { check_case(kCases[0], std::size(kVectors)); }
TEST_CASE("vectors of threads: in the order of threads") { check_case(kCases[1]); }
TEST_CASE("vectors of threads: some threads") { check_case(kCases[2], std::size(kVectors)); }
TEST_CASE("vectors of threads: one thread of a warp") { check_case(kCases[3]); }
TEST_CASE("vectors of threads: two sides of a branch, and single elements") { check_case(kCases[4]); }
TEST_CASE("vectors of threads: a loop") { check_case(kCases[5]); }
TEST_CASE("vectors of threads: local memory") { check_case(kCases[6]); }
TEST_CASE("vectors of threads: shared memory") { check_case(kCases[7]); }
TEST_CASE("vectors of threads: generic pointers") { check_case(kCases[8]); }
TEST_CASE("vectors of threads: threads beyond a limit return") { check_case(kCases[9]); }
TEST_CASE("vectors of threads: several of one structure") { check_case(kCases[10]); }

TEST_CASE("vectors of threads: cache hints") { check_case(kCases[11]); }

TEST_CASE("vectors of threads: blocks of other sizes") {
  for (const unsigned block : {192u, 64u, 48u, 3u}) {
    CAPTURE(block);
    check_case(kCases[block == 64 ? 9 : 2], 2, block);
  }
}

TEST_CASE("vectors of threads: parts are overwritten and read at once") {
  if (!ready()) return;
  constexpr unsigned kThreads = 64;
  const std::vector<std::uint32_t> out =
      run(std::string(kMixedSource) + R"(extern "C" __global__ void k(unsigned* d) {
    const unsigned i = threadIdx.x, to = i * 27 % 64; unsigned* p = d + 8 * to; unsigned short* halves = (unsigned short*)p;
    const unsigned a = mixed(i), b = mixed(i + 64), c = mixed(i + 128), e = mixed(i + 192);
    *(uint4*)p = make_uint4(a, b, c, e); const uint2 middle = *(uint2*)(p + 2); halves[1] = 0xabcd; ((uchar4*)p)[1] = make_uchar4(1, 2, 3, 4);
    if (a >> 31) *(uint2*)(p + 2) = make_uint2(p[0], p[1]); if (b >> 31) *(ushort4*)(halves + 4) = *(ushort4*)halves;
    const double2 all = *(double2*)p; *(double*)(p + 4) = all.y; *(float2*)(p + 6) = make_float2(__uint_as_float(middle.x ^ p[2]), __uint_as_float(middle.y ^ p[3])); })",
          "k", std::vector<std::uint32_t>(8 * kThreads, 77), kThreads);
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    const std::uint32_t a = mixed(i), b = mixed(i + 64), c = mixed(i + 128), e = mixed(i + 192);
    std::uint32_t p[8] = {(a & 0xffff) | 0xabcd0000, 0x04030201, c, e, 0, 0, 0, 0};
    if (a >> 31 != 0 || b >> 31 != 0) p[2] = p[0], p[3] = p[1];
    p[4] = p[2], p[5] = p[3], p[6] = c ^ p[2], p[7] = e ^ p[3];
    for (std::uint32_t k = 0; k < 8; ++k) {
      CAPTURE(i);
      CAPTURE(k);
      CHECK(out[8 * (i * 27 % 64) + k] == p[k]);
    }
  }
}

// The element of any of these threads may stay, but of no other.
TEST_CASE("vectors of threads: several threads store to one address") {
  if (!ready()) return;
  const std::vector<std::uint32_t> out =
      run(R"(extern "C" __global__ void k(unsigned* d) { const unsigned i = threadIdx.x;
    if (i % 7 != 0) ((uint4*)d)[1 + 2 * (i * i % 8)] = make_uint4(i, 1000 + i, 2000 + i, 3000 + i); })",
          "k", std::vector<std::uint32_t>(80, 9), 64);
  for (std::uint32_t place = 0; place < 20; ++place)
    for (std::uint32_t k = 0; k < 4; ++k) {
      const std::uint32_t got = out[4 * place + k], by = got - 1000 * k;
      const bool written = place % 2 == 1 && (place / 2 == 0 || place / 2 == 1 || place / 2 == 4);
      CAPTURE(place);
      if (!written)
        CHECK(got == 9);
      else
        CHECK((by < 64 && by % 7 != 0 && by * by % 8 == place / 2));
    }
}

TEST_CASE("vectors of threads: threads that do not run access nothing, one wrong address is a fault") {
  if (!ready()) return;
  const char* const source = R"(extern "C" __global__ void k(const long long* to, int4* out, int limit) {
 const int i = threadIdx.x; const long long at = to[i];
 if (i < limit)
#line 4
  *(int4*)((char*)out + at) = make_int4(i, i + 1, i + 2, i + 3);
})";
  for (const std::int64_t wrong : {std::int64_t{1} << 43, std::int64_t{8}, std::int64_t{-1} << 43})
    for (const int limit : {41, 42}) {
      CAPTURE(wrong);
      CAPTURE(limit);
      const Session own(SessionOptions{.device = "cpu", .isolated = true});
      LoadOptions options;
      options.options = {"-lineinfo"};
      options.file_name = "vectors.cu";
      const Module module = own.load_cuda(source, options);
      std::vector<std::int64_t> to(64, wrong);
      for (std::int64_t i = 0; i < 41; ++i) to[static_cast<std::size_t>(i)] = i * 23 % 41 * 48;
      auto to_there = own.to_device(to);
      auto out = own.to_device(std::vector<std::int32_t>(512, -1));
      module.kernel("k")({.grid = 1, .block = 64})(to_there, out, limit);
      try {
        own.synchronize();
        REQUIRE(limit == 41);
        std::vector<std::int32_t> expected(512, -1);
        for (std::int32_t i = 0; i < 41; ++i)
          for (std::int32_t k = 0; k < 4; ++k)
            expected[static_cast<std::size_t>(i * 23 % 41 * 12 + k)] = i + k;
        CHECK(out.copy_to_host() == expected);
      } catch (const DriverError& error) {
        INFO(std::string(error.what()));
        REQUIRE(limit == 42);
        CHECK(error.result_name() ==
              (wrong == 8 ? "CUDA_ERROR_MISALIGNED_ADDRESS" : "CUDA_ERROR_ILLEGAL_ADDRESS"));
        if (error.fault().thread) CHECK(*error.fault().thread == DeviceFault::Index{41, 0, 0});
        if (error.fault().threads)
          CHECK((error.fault().threads->first[0] <= 41 && error.fault().threads->second[0] >= 41));
        if (!error.fault().file.empty()) CHECK(error.fault().line == 4);
      }
    }
}

}  // namespace quern::cuda_test
