// SPDX-License-Identifier: Apache-2.0
// Constructs of the language: calls through pointers, virtual functions, recursion, tables, local arrays,
// memory spaces.
#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "harness.hpp"

using namespace quern;
using namespace quern::cuda_test;
using Words = std::vector<std::uint32_t>;

TEST_CASE("virtual functions of objects in memory, local and from the heap") {
  if (!ready()) return;
  const Words out = run(R"(
    struct Shape { int side; __device__ Shape(int s) : side(s) {} __device__ virtual int area(int k) const = 0; __device__ virtual ~Shape() {} };
    struct Square : Shape { __device__ Square(int s) : Shape(s) {} __device__ int area(int k) const override { return side * side + k; } };
    struct Line : Shape { __device__ Line(int s) : Shape(s) {} __device__ int area(int k) const override { return k - side; } };
    struct Cube : Square { __device__ Cube(int s) : Square(s) {} __device__ int area(int k) const override { return side * Square::area(k); } };
    extern "C" __global__ void k(unsigned* d) { int i = threadIdx.x; Shape* p; switch (i % 3) { case 0: p = new Square(i); break; case 1: p = new Line(i); break; default: p = new Cube(i); }
      d[i] = p->area(7); delete p; Square local(3); Shape* q = i < 100 ? &local : (Shape*)d; d[64 + i] = q->area(i); })",
                        "k", Words(128), 64);
  for (std::uint32_t i = 0; i < 64; ++i) {
    CHECK(out[i] == (i % 3 == 0 ? i * i + 7 : i % 3 == 1 ? 7 - i : i * (i * i + 7)));
    CHECK(out[64 + i] == 9 + i);
  }
}

TEST_CASE("function pointers in tables, in registers, and to recursive functions") {
  if (!ready()) return;
  const Words out = run(
      R"(
    typedef unsigned (*Function)(unsigned);
    __device__ __noinline__ unsigned twice(unsigned x) { return 2 * x; }
    __device__ __noinline__ unsigned square(unsigned x) { return x * x; }
    __device__ unsigned fibonacci(unsigned n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
    __device__ Function table[] = {twice, square, fibonacci};
    __constant__ Function constants[] = {square, twice};
    __device__ __noinline__ unsigned apply(Function f, unsigned x) { return f(x) + 1; }
    extern "C" __global__ void k(unsigned* d) { int i = threadIdx.x; d[i] = table[d[i] % 3](i % 12); d[64 + i] = apply(i % 5 == 0 ? twice : square, i);
      d[128 + i] = constants[i & 1](i); Function f = table[i % 2]; for (int n = 0; n < i % 3; ++n) f = f == table[0] ? table[1] : table[0]; d[192 + i] = f(i); })",
      "k",
      [] {
        Words words(256);
        for (std::uint32_t i = 0; i < 64; ++i) words[i] = i / 2;
        return words;
      }(),
      64);
  const std::uint32_t fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
  for (std::uint32_t i = 0; i < 64; ++i) {
    const std::uint32_t x = i % 12;
    CHECK(out[i] == (i / 2 % 3 == 0 ? 2 * x : i / 2 % 3 == 1 ? x * x : fibonacci[x]));
    CHECK(out[64 + i] == (i % 5 == 0 ? 2 * i : i * i) + 1);
    CHECK(out[128 + i] == ((i & 1) == 0 ? i * i : 2 * i));
    const bool squares = (i % 2 == 1) != (i % 3 % 2 == 1);
    CHECK(out[192 + i] == (squares ? i * i : 2 * i));
  }
}

TEST_CASE("a barrier may follow a call through a pointer") {
  if (!ready()) return;
  const Words out =
      run(R"(typedef void (*F)(unsigned*); __device__ __noinline__ void f(unsigned* d) { atomicAdd(d, 1); }
    __device__ F table[2] = {f, nullptr}; extern "C" __global__ void k(unsigned* d) { for (unsigned i = 0; i <= d[64] + threadIdx.x % 3; ++i) table[d[65]](d);
      __syncthreads(); d[1 + threadIdx.x % 2] = d[0]; })",
          "k", Words(66), 63);
  CHECK(out[0] == 126);
  CHECK(out[1] == 126);
  CHECK(out[2] == 126);
}

TEST_CASE("a barrier may follow a loop that might have trapped, asserted or returned") {
  if (!ready()) return;
  Words in(256, 3);
  in[0] = 5;
  const Words out = run(R"(
    extern "C" __global__ void k(unsigned* d) { unsigned i = threadIdx.x, s = 0; __shared__ unsigned t[64]; t[i] = 0; __syncthreads();
      for (unsigned n = 0; n < d[0]; ++n) { if (d[1 + n + i] > 1000) __trap(); assert(d[1 + n] < 1000); if (n + i == 66) return; s += d[1 + n]; }
      t[i] = s; __syncthreads(); d[128 + i] = t[63 - i]; })",
                        "k", in, 64);
  for (std::uint32_t i = 0; i < 64; ++i) {
    const bool returned = i >= 62, partner_returned = 63 - i >= 62;
    CHECK(out[128 + i] == (returned ? 3u : partner_returned ? 0u : 15u));
  }
}

TEST_CASE("switches with tables, local arrays, loops with breaks, early returns") {
  if (!ready()) return;
  Words in(320);
  for (std::uint32_t i = 0; i < 64; ++i) in[i] = i * 7 % 11;
  const Words out = run(R"(extern "C" __global__ void k(unsigned* d) { int i = threadIdx.x; unsigned r;
      switch (d[i]) { case 0: r = d[i + 1] + 1; break; case 1: r = d[i] * 3; break; case 2: r = i / 7; break; case 3: r = __popc(i); break; case 4: r = i - 1; break;
        case 5: r = i ^ 9; break; case 6: r = i << 3; break; case 7: case 8: r = 77; default: r = 5; }
      d[64 + i] = r; int a[16]; for (int n = 0; n < 16; ++n) a[(n * 5 + i) % 16] = n * i; int s = 0; for (int n = 0; n < 16; ++n) { if (a[n] > 400) break; if (n % 3 == 1) continue; s += a[n] ^ n; }
      d[128 + i] = s; unsigned char bytes[9]; for (int n = 0; n < 9; ++n) bytes[n] = (unsigned char)(i * n); d[192 + i] = bytes[i % 9] + bytes[8];
      if (i % 4 == 2) return; d[256 + i] = i; })",
                        "k", in, 64);
  for (std::uint32_t i = 0; i < 64; ++i) {
    std::uint32_t r = 5;
    const std::uint32_t cases[] = {
        in[i + 1] + 1, in[i] * 3, i / 7, static_cast<std::uint32_t>(__builtin_popcount(i)),
        i - 1,         i ^ 9,     i << 3};
    if (in[i] < 7) r = cases[in[i]];
    CHECK(out[64 + i] == r);
    std::int32_t a[16], s = 0;
    for (std::int32_t n = 0; n < 16; ++n)
      a[(n * 5 + static_cast<std::int32_t>(i)) % 16] = n * static_cast<std::int32_t>(i);
    for (std::int32_t n = 0; n < 16 && a[n] <= 400; ++n)
      if (n % 3 != 1) s += a[n] ^ n;
    CHECK(out[128 + i] == static_cast<std::uint32_t>(s));
    CHECK(out[192 + i] == (i * (i % 9) & 0xff) + (i * 8 & 0xff));
    CHECK(out[256 + i] == (i % 4 == 2 ? 0 : i));
  }
}

TEST_CASE(
    "memory spaces: constant, dynamic shared, local, generic addresses, cache hints, wide and packed "
    "accesses") {
  if (!ready()) return;
  Words in(384);
  for (std::uint32_t i = 0; i < 64; ++i) in[i] = i * i + 3;
  const Words out = run(R"(
    __constant__ unsigned table[4] = {10, 20, 30, 40}; __device__ unsigned counter = 5; struct __attribute__((packed)) Odd { unsigned char tag; unsigned value; };
    extern "C" __global__ void k(unsigned* d) { extern __shared__ unsigned dynamic[]; __shared__ uint4 wide[16]; int i = threadIdx.x;
      dynamic[i] = __ldg(d + i) + table[i & 3] + counter; if (i < 16) wide[i] = ((const uint4*)d)[i]; __syncthreads();
      __stcs(d + 64 + i, dynamic[63 - i]); uint4 w = wide[15 - i % 16]; __stwt(d + 128 + i, w.x + w.y * 2 + w.z * 3 + w.w * 4);
      unsigned local[4] = {1, 2, 3, 4}; unsigned* p = i % 4 == 0 ? d + i : i % 4 == 1 ? dynamic + i : i % 4 == 2 ? local + 2 : (unsigned*)table + 3;
      d[192 + i] = *p; d[256 + i] = __isGlobal(p) + 2 * __isShared(p) + 4 * __isLocal(p) + 8 * __isConstant(p);
      Odd odd; odd.tag = i; odd.value = d[i]; Odd copies[3] = {odd, odd, odd}; copies[i % 3].value += __ldcg(d + i) + __ldcs(d + i) + __ldca(d + i) + __ldcv(d + i) + __ldlu(d + i);
      d[320 + i] = copies[i % 3].value + copies[(i + 1) % 3].tag; })",
                        "k", in, 64, 1, 64 * 4);
  for (std::uint32_t i = 0; i < 64; ++i) {
    const auto dynamic = [&](std::uint32_t k) { return in[k] + (k % 4 + 1) * 10 + 5; };
    CHECK(out[64 + i] == dynamic(63 - i));
    const std::uint32_t w = (15 - i % 16) * 4;
    CHECK(out[128 + i] == in[w] + in[w + 1] * 2 + in[w + 2] * 3 + in[w + 3] * 4);
    CHECK(out[192 + i] == (i % 4 == 0 ? in[i] : i % 4 == 1 ? dynamic(i) : i % 4 == 2 ? 3 : 40));
    CHECK(out[256 + i] == (1u << i % 4));
    CHECK(out[320 + i] == in[i] * 6 + i);
  }
}

// NVRTC knows no alloca; other compilers emit it.
TEST_CASE("memory from the stack, more in every iteration and given back after it") {
  if (!ready()) return;
  const Module module = cuda_test::session().load_ptx(R"(.version 8.6
.target sm_89
.address_size 64
.visible .entry k(.param .u64 k_d) {
  .reg .pred %p<3>; .reg .b32 %r<12>; .reg .b64 %rd<12>;
  ld.param.u64 %rd0, [k_d]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; add.s64 %rd1, %rd0, %rd1;
  mov.u32 %r1, 0; mov.u32 %r2, 0; stacksave.u64 %rd9; alloca.u64 %rd8, 8; st.local.u32 [%rd8], %r0;
again:
  add.s32 %r3, %r1, 1; mul.wide.u32 %rd2, %r3, 4; alloca.u64 %rd3, %rd2, 16; and.b64 %rd10, %rd3, 15; setp.ne.u64 %p1, %rd10, 0; @%p1 trap;
  mul.wide.u32 %rd4, %r1, 4; add.s64 %rd5, %rd3, %rd4; add.s32 %r4, %r0, %r1; st.local.u32 [%rd5], %r4; cvta.local.u64 %rd6, %rd5; ld.u32 %r5, [%rd6];
  add.s32 %r2, %r2, %r5; add.s32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, 10; @%p0 bra again;
  ld.local.u32 %r6, [%rd8]; add.s32 %r2, %r2, %r6; stackrestore.u64 %rd9; alloca.u64 %rd7, 4; st.local.u32 [%rd7], 5; ld.local.u32 %r7, [%rd7];
  add.s32 %r2, %r2, %r7; st.global.u32 [%rd1], %r2; ret; }
)");
  auto data = cuda_test::session().to_device(Words(64));
  module.kernel("k")({.grid = 1, .block = 64})(data);
  const Words out = data.copy_to_host();
  for (std::uint32_t i = 0; i < 64; ++i) CHECK(out[i] == 10 * i + 45 + i + 5);
}

TEST_CASE("a kernel's parameters have addresses, and are no other memory") {
  if (!ready()) return;
  const Expected<Module> module = cuda_test::session().try_load_cuda(R"(struct Table { unsigned x[8]; };
    extern "C" __global__ void k(const __grid_constant__ Table table, unsigned* d) { unsigned i = threadIdx.x; const unsigned* p = i % 2 ? table.x + i % 8 : d + i;
      unsigned inside; asm volatile("{ .reg .pred p; isspacep.param p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(inside) : "l"(p)); unsigned again = 0; if (i % 2) asm volatile("{ .reg .u64 a; cvta.to.param.u64 a, %1; ld.param.u32 %0, [a]; }" : "=r"(again) : "l"(p)); d[64 + i] = *p + again * 100000 + 1000 * inside + 2000 * __isLocal(p) + 4000 * __isShared(p); })");
  if (!module) FAIL(to_string(module.errors()));
  struct Table {
    std::uint32_t x[8];
  } table{{10, 11, 12, 13, 14, 15, 16, 17}};
  auto data = cuda_test::session().to_device(Words(128, 7));
  module->kernel("k")({.grid = 1, .block = 64})(table, data);
  const Words out = data.copy_to_host();
  for (std::uint32_t i = 0; i < 64; ++i)
    CHECK(out[64 + i] == (i % 2 == 1 ? 1010 + i % 8 + (10 + i % 8) * 100000 : 7));
}

TEST_CASE("memory from the device's heap, memcpy and memset, clocks and sleep") {
  if (!ready()) return;
  const Words out = run(
      R"(extern "C" __global__ void k(unsigned* d) { int i = threadIdx.x; unsigned* p = (unsigned*)malloc(4 * (i + 1)); for (int n = 0; n <= i; ++n) p[n] = n;
      unsigned s = 0; for (int n = 0; n <= i; ++n) s += p[n]; free(p); d[i] = s; unsigned* q = new unsigned[3]; memset(q, 1, 12); memcpy(d + 64 + i, q + 2, 4); delete[] q;
      long long t = clock64(); unsigned long long g; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g)); __nanosleep(2000); unsigned long long h; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(h));
      d[128 + i] = (clock64() > t) + 2 * (h >= g + 1000); unsigned v; asm volatile("mov.u32 %0, %%envreg3;" : "=r"(v)); d[192 + i] = v + warpSize; })",
      "k", Words(256), 64);
  for (std::uint32_t i = 0; i < 64; ++i) {
    CHECK(out[i] == i * (i + 1) / 2);
    CHECK(out[64 + i] == 0x01010101);
    CHECK(out[128 + i] == 3);
    CHECK(out[192 + i] == 32);
  }
}

TEST_CASE("an unsigned index reaches what lies 2^31 bytes and more behind the pointer") {
  if (!ready()) return;
  constexpr std::int64_t kFar = std::int64_t{1} << 31;
  constexpr std::size_t kThreads = 64;
  DeviceNDArray bytes;
  try {
    bytes = cuda_test::session().device_array({kFar + 4096}, Dtype::uint8);
  } catch (const OutOfMemory&) {
    MESSAGE("SKIPPED: the device has no 2 GiB to give");
    return;
  }
  const DeviceNDArray far = bytes(Slice{kFar, kFar + 4096});
  std::vector<std::uint8_t> expected(4096, 1);
  far.copy_to_device(NDArray::view(expected));
  std::vector<std::uint32_t> at(kThreads);
  for (std::uint32_t i = 0; i < kThreads; ++i) at[i] = static_cast<std::uint32_t>(kFar) + i * 37 % 61 * 64;
  const Kernel kernel = cuda_test::session()
                            .load_cuda(R"(extern "C" __global__ void k(unsigned char* x, const unsigned* at) {
      if (threadIdx.x < 61) x[at[threadIdx.x]] += threadIdx.x; })")
                            .kernel();
  kernel({.block = kThreads})(bytes, In(at));
  const NDArray out = far.copy_to_host();
  for (std::size_t i = 0; i < 61; ++i) expected[i * 37 % 61 * 64] = static_cast<std::uint8_t>(1 + i);
  CHECK(std::memcmp(out.data(), expected.data(), expected.size()) == 0);
}

TEST_CASE("tiles with rims, in blocks with short rows, of images that end in the middle of a block") {
  if (!ready()) return;
  // 3 x 3 sums by a tile in shared memory; type and rows of the block are macros.
  const std::string source = R"(
    extern "C" __global__ void k(const T* in, T* out, int width, int height) {
      __shared__ T tile[BY + 2][BX + 2];
      const int tx = threadIdx.x + 1, ty = threadIdx.y + 1, x = blockIdx.x * BX + threadIdx.x, y = blockIdx.y * BY + threadIdx.y;
      auto at = [&](int column, int row) -> T { return column >= 0 && column < width && row >= 0 && row < height ? in[row * width + column] : (T)0; };
      tile[ty][tx] = at(x, y);
      if (tx == 1) tile[ty][0] = at(x - 1, y);
      if (tx == BX) tile[ty][tx + 1] = at(x + 1, y);
      if (ty == 1) tile[0][tx] = at(x, y - 1);
      if (ty == BY) tile[ty + 1][tx] = at(x, y + 1);
      if (tx == 1 && ty == 1) tile[0][0] = at(x - 1, y - 1);
      if (tx == BX && ty == 1) tile[0][tx + 1] = at(x + 1, y - 1);
      if (tx == 1 && ty == BY) tile[ty + 1][0] = at(x - 1, y + 1);
      if (tx == BX && ty == BY) tile[ty + 1][tx + 1] = at(x + 1, y + 1);
      __syncthreads();
      if (x >= width || y >= height) return;
      T sum = 0;
      for (int j = -1; j < 2; ++j)
        for (int i = -1; i < 2; ++i) sum += tile[ty + j][tx + i];
      out[y * width + x] = sum;
    })";
  const auto compare = [&]<class T>(T, const std::string& type, unsigned bx, unsigned by, int width,
                                    int height) {
    std::vector<T> in(static_cast<std::size_t>(width * height)), out(in.size()), expected(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<T>(i * 37 + i / 7 + 1);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        T sum = 0;
        for (int row = std::max(y - 1, 0); row < std::min(y + 2, height); ++row)
          for (int column = std::max(x - 1, 0); column < std::min(x + 2, width); ++column)
            sum = static_cast<T>(sum + in[static_cast<std::size_t>(row * width + column)]);
        expected[static_cast<std::size_t>(y * width + x)] = sum;
      }
    const Kernel kernel = cuda_test::session()
                              .load_cuda("#define T " + type + "\n#define BX " + std::to_string(bx) +
                                         "\n#define BY " + std::to_string(by) + "\n" + source)
                              .kernel();
    const auto blocks = [](int size, unsigned block) {
      return (static_cast<unsigned>(size) + block - 1) / block;
    };
    kernel({.grid = {blocks(width, bx), blocks(height, by)}, .block = {bx, by}})(In(in), Out(out), width,
                                                                                 height);
    CHECK_MESSAGE(out == expected, type, " ", bx, " x ", by, " of ", width, " x ", height);
  };
  constexpr unsigned kBlocks[][2] = {{8, 8}, {4, 8}, {16, 4}, {8, 16}, {5, 7}, {2, 16}};
  for (const auto& [bx, by] : kBlocks)
    for (const auto& [width, height] : {std::pair{12, 8}, {21, 19}}) {
      compare(std::uint8_t{}, "unsigned char", bx, by, width, height);
      compare(std::uint16_t{}, "unsigned short", bx, by, width, height);
      compare(std::uint32_t{}, "unsigned", bx, by, width, height);
    }
}

namespace {

/// Places for the lanes of a warp that keep their element, by kind: neighbours in the order of the lanes, or
/// almost.
std::int64_t place_of(unsigned kind, unsigned lane, unsigned rank) {
  switch (kind) {
    case 0:
      return rank;
    case 1:
      return rank + (rank >= 3 ? 1 : 0);  // a gap
    case 2:
      return 40 - static_cast<std::int64_t>(rank);
    case 3:
      return rank / 2;  // two lanes write one element: the higher one's stays
    case 4:
      return rank + (lane >= 16 ? 5 : 0);  // each half is a run
    case 5:
      return rank + (lane >= 8 ? 2 : 0);
    case 6:
      return 7;
    case 7:
      return rank == 5 ? 0 : rank + 1;
    case 8:
      return std::int64_t{2} * rank;
    default:
      return lane;  // gaps where lanes do not run
  }
}

}  // namespace

TEST_CASE("parts of arrays are kept, in order and in other orders") {
  if (!ready()) return;
  constexpr unsigned kKinds = 10, kWarps = 40, kRoom = 64;
  const std::string source = R"(
    extern "C" __global__ void k(const T* in, const unsigned* keep, const I* places, T* out) {
      const int i = blockIdx.x * 32 + threadIdx.x;
      if (keep[i] != 0) out[places[i]] = in[i];
    })";
  const auto compare = [&]<class T, class I>(T, I, const std::string& type, const std::string& index) {
    const std::size_t elements = kKinds * kWarps * 32, half = kKinds * kWarps * kRoom / 2;
    std::vector<T> in(elements), out(2 * half), expected(2 * half);
    std::vector<std::uint32_t> keep(elements);
    std::vector<I> places(elements);
    std::uint32_t random = 1;
    for (std::size_t warp = 0; warp < elements / 32; ++warp) {
      const auto kind = static_cast<unsigned>(warp / kWarps);
      const unsigned part = (random >> 8) % 5;  // of 4; 0: one lane at most
      for (unsigned lane = 0, rank = 0; lane < 32; ++lane) {
        const std::size_t i = warp * 32 + lane;
        random = random * 1664525 + 1013904223;
        in[i] = static_cast<T>(random >> 3);
        keep[i] = part == 0 ? (lane == warp % 32 ? 1 : 0) : ((random >> 16) % 4 < part ? 1 : 0);
        // Relative to the middle, so that indices are negative as well.
        const auto place = static_cast<std::int64_t>(warp * kRoom) + place_of(kind, lane, rank);
        places[i] = static_cast<I>(place - static_cast<std::int64_t>(half));
        if (keep[i] == 0) continue;
        expected[static_cast<std::size_t>(place)] = in[i];
        ++rank;
      }
    }
    const Kernel kernel =
        cuda_test::session().load_cuda("#define T " + type + "\n#define I " + index + "\n" + source).kernel();
    const DeviceNDArray device = cuda_test::session().to_device(NDArray::view(out));
    const auto middle = static_cast<std::int64_t>(half);
    kernel({.grid = {static_cast<unsigned>(elements / 32)}, .block = {32}})(
        In(in), In(keep), In(places), device(Slice{middle, 2 * middle}));
    device.copy_to_host(NDArray::view(out));
    CHECK_MESSAGE(out == expected, type, " by ", index);
  };
  compare(std::uint32_t{}, std::int32_t{}, "unsigned", "int");
  compare(std::uint64_t{}, std::int32_t{}, "unsigned long long", "int");
  compare(std::uint32_t{}, std::int64_t{}, "unsigned", "long long");
  compare(std::uint64_t{}, std::int64_t{}, "unsigned long long", "long long");
  compare(float{}, std::int32_t{}, "float", "int");
  compare(double{}, std::int64_t{}, "double", "long long");
  compare(std::uint16_t{}, std::int32_t{}, "unsigned short", "int");
}
