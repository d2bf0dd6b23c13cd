// SPDX-License-Identifier: Apache-2.0
// PTX that compilers rarely write: vector registers, variables of function bodies, votes of lanes that are
// together.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "suite.hpp"

using namespace quern::conformance;

namespace {

/// A module of one text.
class Module {
 public:
  explicit Module(const std::string& text) {
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    const CUresult result = cu().cuModuleLoadDataEx(&module_, text.c_str(), 2, options, values);
    INFO(log);
    REQUIRE(result == CUDA_SUCCESS);
  }
  ~Module() { cu().cuModuleUnload(module_); }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  void run(unsigned block, CUdeviceptr out, unsigned rows = 1) const {
    CUfunction function = nullptr;
    REQUIRE(cu().cuModuleGetFunction(&function, module_, "k") == CUDA_SUCCESS);
    void* parameters[] = {&out, nullptr};
    REQUIRE(cu().cuLaunchKernel(function, 1, 1, 1, block, rows, 1, 0, nullptr, parameters, nullptr) ==
            CUDA_SUCCESS);
    REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  }

 private:
  CUmodule module_ = nullptr;
};

/// A kernel k(u32* out); %r1 is the thread, %rd1 its place: `words` words a thread.
std::string kernel(const std::string& target, const std::string& body, unsigned words = 1,
                   const std::string& functions = {}) {
  return target + "\n.address_size 64\n" + functions +
         "\n.visible .entry k(.param .u64 out) {\n.reg .pred %p<10>; .reg .b32 %r<20>; .reg .b64 %rd<10>;\n"
         "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd1, %r1, " +
         std::to_string(words * 4) + ", %rd1;\n" + body + "\nret; }\n";
}

const std::string kNew = ".version 7.0\n.target sm_75";
const std::string kOld = ".version 6.0\n.target sm_60";

}  // namespace

TEST_CASE_FIXTURE(
    Fixture,
    "vector registers are arguments and results of recursive functions and of calls through registers") {
  // sum(v, n): n = 0: {v.x + v.y, v.z * v.w}; else sum({v.y, v.z, v.w, v.x + n}, n - 1) with its elements
  // exchanged.
  const std::string sum =
      ".func (.reg .v2 .u32 r) sum(.reg .v4 .u32 v, .reg .u32 n) {\n.reg .pred p; .reg .v4 .u32 w; .reg .v2 "
      ".u32 s; "
      ".reg .u32 less;\nsetp.eq.u32 p, n, 0; @p bra base; add.u32 w.w, v.x, n; mov.u32 w.x, v.y; mov.u32 "
      "w.y, "
      "v.z; mov.u32 w.z, v.w; sub.u32 less, n, 1;\ncall (s), sum, (w, less); mov.v2.u32 r, {s.y, s.x}; "
      "ret;\nbase: add.u32 r.x, v.x, v.y; mul.lo.u32 r.y, v.z, v.w; ret; }\n"
      ".func (.reg .v2 .u32 r) swap(.reg .v4 .u32 v, .reg .u32 n) { add.u32 r.x, v.w, n; mov.u32 r.y, v.b; "
      "ret; }\n";
  const Module loaded(
      kernel(kNew,
             ".reg .v4 .u32 %v; .reg .v2 .u32 %w; mov.v4.u32 %v, {%r1, 2, 3, 5}; "
             "and.b32 %r2, %r1, 7; and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0; mov.u64 %rd2, "
             "sum; mov.u64 %rd3, swap; selp.b64 %rd2, %rd2, %rd3, %p1;\nshape: .callprototype (.reg "
             ".v2 .u32 _) _ (.reg .v4 .u32 _, .reg .u32 _);\ncall (%w), %rd2, (%v, %r2), shape; "
             "st.global.v2.u32 [%rd1], %w;",
             2, sum));
  const CUdeviceptr out = allocate(64 * 8);
  loaded.run(64, out);
  const auto got = download<std::uint32_t>(out, 128);
  for (std::uint32_t i = 0; i < 64; ++i) {
    CAPTURE(i);
    std::uint32_t v[4] = {i, 2, 3, 5};
    std::uint32_t r[2] = {5 + i % 8, 3};
    if (i % 2 == 0) {
      for (std::uint32_t n = i % 8; n > 0; --n) {
        const std::uint32_t first = v[0] + n;
        v[0] = v[1], v[1] = v[2], v[2] = v[3], v[3] = first;
      }
      r[0] = v[0] + v[1], r[1] = v[2] * v[3];
      if (i % 8 % 2 != 0) std::swap(r[0], r[1]);
    }
    CHECK(got[2 * i] == r[0]);
    CHECK(got[2 * i + 1] == r[1]);
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "variables of a body keep their values between calls and launches, each scope its own") {
  const std::string count =
      ".global .u32 total = 1000;\n.func (.reg .u32 r) count(.reg .u32 by) { .global .u32 total = 7; "
      "atom.global.add.u32 r, [total], by; ret; }\n";
  const Module loaded(
      kernel(kNew,
             ".const .u32 steps[2] = {1, 10}; .global .u64 address = total; ld.const.u32 %r2, [steps+4]; "
             "call (%r3), count, (%r2); call (%r4), count, (1); ld.global.u32 %r5, [total]; "
             "ld.global.u64 %rd2, [address]; ld.global.u32 %r6, [%rd2]; { .global .v2 .u32 total "
             "= {5, 6}; ld.global.u32 %r7, [total+4]; } st.global.v4.u32 [%rd1], {%r3, %r4, %r5, "
             "%r6}; st.global.u32 [%rd1+16], %r7;",
             5, count));
  const CUdeviceptr out = allocate(20);
  loaded.run(1, out);
  CHECK(download<std::uint32_t>(out, 5) == std::vector<std::uint32_t>{7, 17, 1000, 1000, 6});
  loaded.run(1, out);
  CHECK(download<std::uint32_t>(out, 5) == std::vector<std::uint32_t>{18, 28, 1000, 1000, 6});
}

TEST_CASE_FIXTURE(Fixture,
                  "votes and shuffles without .sync are of the lanes that run them together, below sm_70") {
  if (!is_cpu()) return;  // GPUs since sm_70 do not say which lanes these are
  // Thirds of the warp in code of their own, then all again; 40 threads: the second warp has eight.
  const Module loaded(
      kernel(kOld,
             "rem.u32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 0; setp.lt.u32 %p2, %r1, 4; mov.u32 %r4, "
             "77; mov.u32 %r3, 0; @%p1 bra some; vote.ballot.b32 %r3, %p2; shfl.down.b32 %r4|%p3, "
             "%r1, 0, 31; vote.all.pred %p4, !%p1; bra join;\nsome: vote.ballot.b32 %r3, !%p2; "
             "shfl.idx.b32 %r4, %r1, 6, 31; vote.uni.pred %p4, %p2;\njoin: vote.ballot.b32 %r5, "
             "%p1; selp.u32 %r6, 1, 0, %p4; @%p2 vote.any.pred %p4, %p1; selp.u32 %r7, 1, 0, "
             "%p4; shl.b32 %r7, %r7, 1; or.b32 %r6, %r6, %r7; st.global.v4.u32 [%rd1], {%r3, %r4, "
             "%r5, %r6};",
             4));
  const CUdeviceptr out = allocate(40 * 16);
  loaded.run(40, out);
  const auto got = download<std::uint32_t>(out, 160);
  for (std::uint32_t i = 0; i < 40; ++i) {
    CAPTURE(i);
    const std::uint32_t base = i / 32 * 32, count = i < 32 ? 32 : 8;
    const bool some = i % 3 == 0;
    std::uint32_t low = 0, others = 0, all_of_some = 0;
    for (std::uint32_t lane = 0; lane < count; ++lane) {
      const std::uint32_t thread = base + lane;
      const bool in_some = thread % 3 == 0;
      if (!in_some && thread < 4) low |= 1u << lane;
      if (in_some && thread >= 4) others |= 1u << lane;
      if (in_some) all_of_some |= 1u << lane;
    }
    CHECK(got[4 * i] == (some ? others : low));
    // Lane 6 is of the first part in the first warp; in the second one it does not take part.
    if (!some) CHECK(got[4 * i + 1] == i);
    if (some && i < 32) CHECK(got[4 * i + 1] == 6);
    CHECK(got[4 * i + 2] == all_of_some);
    const bool first = some ? i >= 32 : true;  // vote.uni of lanes 0 and 3 against the rest; vote.all
    const bool second = i < 4 ? true : first;
    CHECK(got[4 * i + 3] == (first ? 1u : 0u) + (second ? 2u : 0u));
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "sin.approx and cos.approx of large arguments, in divergent code and between barriers") {
  if (!is_cpu()) return;  // PTX bounds no error beyond 100 pi
  // Every third thread has a large argument in each round; the last value is of one that is equal in all.
  const Module loaded(
      kernel(kNew,
             ".reg .f32 %f<8>; rem.u32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 0; cvt.rn.f32.u32 %f1, %r1; "
             "mov.f32 %f2, 0f00000000; mov.u32 %r3, 0;\n"
             "again: bar.sync 0; mov.f32 %f4, %f1; @!%p1 bra small; fma.rn.f32 %f3, %f1, 0f4B0B19C4, "
             "0f4B0B19D2; sin.approx.f32 %f4, %f3;\n"
             "small: cos.approx.f32 %f4, %f4; add.f32 %f2, %f2, %f4; add.f32 %f1, %f1, 0f3F800000; "
             "add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 3; @%p2 bra again; mov.u32 %r4, %ntid.x; "
             "cvt.rn.f32.u32 %f5, %r4; mul.f32 %f5, %f5, 0f4B0B19D2; sin.approx.f32 %f6, %f5; "
             "st.global.v2.f32 [%rd1], {%f2, %f6};",
             2));
  constexpr unsigned kThreads = 100;
  const CUdeviceptr out = allocate(kThreads * 8);
  loaded.run(kThreads, out);
  const auto got = download<float>(out, kThreads * 2);
  for (unsigned i = 0; i < kThreads; ++i) {
    CAPTURE(i);
    double sum = 0;
    for (unsigned round = 0; round < 3; ++round) {
      const auto x = static_cast<float>(i + round);
      const double large = std::sin(static_cast<double>(std::fma(x, 9116100.0f, 9116114.0f)));
      sum += std::cos(i % 3 == 0 ? large : static_cast<double>(x));
    }
    CHECK(std::fabs(got[2 * i] - sum) < 0x1p-18);
    CHECK(std::fabs(got[2 * i + 1] - std::sin(static_cast<double>(kThreads * 9116114.0f))) < 0x1p-20);
  }
}

// The expected numbers are those of ptxas 13.0, which translates PTX for sm_1x to FFMA.FTZ, FADD.FTZ and so
// on, except conversions of 64 bits up to PTX 1.4.
TEST_CASE_FIXTURE(Fixture, "PTX for sm_1x flushes subnormal f32 numbers, and its mad.f32 rounds once") {
  // With a = 1 + 2^-12, a * a - 1 - 2^-11 is 2^-24; a rounded or truncated product gives 0.
  const std::string body =
      ".reg .f32 %f<6>; .reg .f64 %d<2>; mov.f32 %f1, 0f3F800800; mov.f32 %f2, 0fBF801000; "
      "mov.f32 %f3, 0f80000001; mad.f32 %f4, %f1, %f1, %f2; st.global.f32 [%rd1], %f4; "
      "add.f32 %f4, %f3, %f3; st.global.f32 [%rd1+4], %f4; cvt.f64.f32 %d1, %f3; "
      "st.global.f64 [%rd1+8], %d1;";
  const CUdeviceptr out = allocate(16);
  const auto run = [&](const char* head) {
    std::string text = kernel(head, body, 4);
    const std::string size = ".address_size 64";  // unknown to versions before 2.3
    const Module loaded(text.erase(text.find(size), size.size()));
    loaded.run(1, out);
    return download<std::uint32_t>(out, 4);
  };
  CHECK(run(".version 1.4\n.target sm_13") ==
        std::vector<std::uint32_t>{0x33800000, 0x80000000, 0, 0xb6a00000});
  CHECK(run(".version 2.0\n.target sm_13") ==
        std::vector<std::uint32_t>{0x33800000, 0x80000000, 0, 0x80000000});
  CHECK(run(".version 3.1\n.target sm_20") ==
        std::vector<std::uint32_t>{0x33800000, 0x80000002, 0, 0xb6a00000});
}

// ---- instructions of newer targets

namespace {

/// 89 for compute capability 8.9.
int capability() {
  int major = 0, minor = 0;
  REQUIRE(cu().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) == CUDA_SUCCESS);
  REQUIRE(cu().cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0) == CUDA_SUCCESS);
  return major * 10 + minor;
}

const std::string k90 = ".version 8.6\n.target sm_90";
const std::string k100 = ".version 9.0\n.target sm_100";

/// Why the kernel does not load; empty if it does.
std::string refusal(const std::string& text) {
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  const CUresult result = cu().cuModuleLoadDataEx(&module, text.c_str(), 2, options, values);
  if (result == CUDA_SUCCESS) cu().cuModuleUnload(module);
  return result == CUDA_SUCCESS ? std::string() : log;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture,
                  "targets up to the compute capability run; with 'a' only its own, with 'f' its family's") {
  if (!is_cpu()) return;  // of a GPU it depends on its driver
  std::vector<std::string> loaded;
  for (const char* target : {"sm_52", "sm_75", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f",
                             "sm_103", "sm_103f", "sm_120", "sm_120a"})
    if (refusal(".version 9.0\n.target " + std::string(target) +
                "\n.address_size 64\n.visible .entry k() { ret; }")
            .empty())
      loaded.emplace_back(target);
  const int has = capability();
  if (has == 89) CHECK(loaded == std::vector<std::string>{"sm_52", "sm_75", "sm_89"});
  if (has == 90) CHECK(loaded == std::vector<std::string>{"sm_52", "sm_75", "sm_89", "sm_90", "sm_90a"});
  if (has == 100)
    CHECK(loaded ==
          std::vector<std::string>{"sm_52", "sm_75", "sm_89", "sm_90", "sm_100", "sm_100a", "sm_100f"});
  CHECK((has == 89 || has == 90 || has == 100));
}

TEST_CASE_FIXTURE(Fixture,
                  "a kernel for a newer target is refused for the instruction that the device lacks") {
  if (!is_cpu() || capability() < 90) return;
  const std::string head = ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k() ";
  CHECK(refusal(head +
                "{ .reg .b64 %rd<2>; .reg .b32 %r<4>; cp.async.bulk.tensor.1d.shared::cluster.global.tile"
                ".mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3]; ret; }")
            .find("copies of tensors") != std::string::npos);
  CHECK(refusal(head + "{ barrier.cluster.arrive; ret; }")
            .find("clusters of several thread blocks are not supported") != std::string::npos);
  CHECK(refusal(head + ".reqnctapercluster 2, 1, 1 { ret; }").find("needs clusters of 2 thread blocks") !=
        std::string::npos);
  CHECK(refusal(head + ".reqnctapercluster 1, 1, 1 { ret; }").empty());
}

TEST_CASE_FIXTURE(Fixture, "hints, fences and the cluster of one block are there from sm_90 on") {
  if (capability() < 90) return;
  const Module loaded(
      kernel(k90,
             ".shared .u32 box[32]; griddepcontrol.wait; fence.mbarrier_init.release.cluster; "
             "fence.proxy.async; mov.u32 %r2, box; shl.b32 %r3, %r1, 2; add.u32 %r2, %r2, %r3; "
             "mapa.shared::cluster.u32 %r4, %r2, 0; add.u32 %r5, %r1, 7; st.shared::cluster.u32 "
             "[%r4], %r5; ld.shared.u32 %r6, [%r2]; getctarank.shared::cluster.u32 %r7, %r4; mov.u32 "
             "%r8, %cluster_ctarank; mov.u32 %r9, %cluster_nctarank; mov.u32 %r10, %clusterid.x; "
             "add.u32 %r7, %r7, %r8; add.u32 %r7, %r7, %r10; elect.sync %r11|%p1, -1; @%p1 "
             "st.global.u32 [%rd1+12], 5; griddepcontrol.launch_dependents; st.global.v2.u32 [%rd1], "
             "{%r6, %r7}; st.global.u32 [%rd1+8], %r9;",
             4));
  const CUdeviceptr out = upload(std::vector<std::uint32_t>(32 * 4, 0));
  loaded.run(32, out);
  const auto got = download<std::uint32_t>(out, 128);
  std::uint32_t leaders = 0;
  for (std::uint32_t i = 0; i < 32; ++i) {
    CHECK(got[4 * i] == i + 7);
    CHECK(got[4 * i + 1] == 0);
    CHECK(got[4 * i + 2] == 1);
    leaders += got[4 * i + 3] == 5 ? 1 : 0;
  }
  CHECK(leaders == 1);
}

TEST_CASE_FIXTURE(Fixture, "registers can be asked for and given back where a target with 'a' says so") {
  if (capability() != 90 && capability() != 100) return;
  const std::string target = ".version 9.0\n.target sm_" + std::to_string(capability()) + "a";
  const Module loaded(kernel(target,
                             "setmaxnreg.dec.sync.aligned.u32 40; st.global.u32 [%rd1], %r1; "
                             "setmaxnreg.inc.sync.aligned.u32 80;"));
  const CUdeviceptr out = allocate(128 * 4);
  loaded.run(128, out);
  CHECK(download<std::uint32_t>(out, 128)[127] == 127);
}

TEST_CASE_FIXTURE(Fixture, "atomic operations on vectors change each element") {
  if (capability() < 90) return;
  // Two threads add to and take the greatest of the same four numbers; what they saw before goes behind them.
  const Module loaded(
      kernel(k90,
             ".reg .f32 %f<9>; .reg .b16 %h<5>; ld.param.u64 %rd2, [out]; cvt.rn.f32.u32 %f1, %r1; "
             "add.f32 %f1, %f1, 0f3F800000; mov.f32 %f2, 0f40000000; atom.global.add.v4.f32 {%f3, "
             "%f4, %f5, %f6}, [%rd2], {%f1, %f2, %f1, %f2}; red.global.add.v2.f32 [%rd2+16], {%f1, "
             "%f2}; cvt.rn.f16.f32 %h1, %f1; cvt.rn.f16.f32 %h2, %f2; red.global.max.noftz.v2.f16 "
             "[%rd2+24], {%h1, %h2}; mov.b32 %r2, {%h1, %h2}; red.global.add.noftz.v2.f16x2 "
             "[%rd2+32], {%r2, %r2};"));
  const CUdeviceptr out = upload(std::vector<std::uint32_t>(16, 0));
  loaded.run(2, out);
  const auto got = download<float>(out, 6);
  CHECK(got == std::vector<float>{3, 4, 3, 4, 3, 4});
  CHECK(download<std::uint16_t>(out + 24, 2) == std::vector<std::uint16_t>{0x4000, 0x4000});
  CHECK(download<std::uint16_t>(out + 32, 4) == std::vector<std::uint16_t>{0x4200, 0x4400, 0x4200, 0x4400});
}

TEST_CASE_FIXTURE(Fixture, "the link to the host supports the vectors that are added to the host's memory") {
  if (!is_cpu() || capability() < 90) return;
  void* host = nullptr;
  REQUIRE(cu().cuMemHostAlloc(&host, 16, CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
  const std::vector<float> before{1, 2, 3, 4};
  std::memcpy(host, before.data(), 16);
  CUdeviceptr mapped = 0;
  REQUIRE(cu().cuMemHostGetDevicePointer_v2(&mapped, host, 0) == CUDA_SUCCESS);
  const Module loaded(kernel(k90,
                             ".reg .f32 %f<2>; ld.param.u64 %rd2, [out]; mov.f32 %f1, 0f3F800000; "
                             "red.relaxed.sys.global.add.v4.f32 [%rd2], {%f1, %f1, %f1, %f1};"));
  loaded.run(2, mapped);
  std::vector<float> after(4);
  std::memcpy(after.data(), host, 16);
  CHECK(after == std::vector<float>{3, 4, 5, 6});
  CHECK(cu().cuMemFreeHost(host) == CUDA_SUCCESS);

  // Nothing else has vectors of 32-bit numbers, and .b128 is refused.
  const std::string why = refusal(kernel(k90, ".reg .b128 %q<3>; atom.global.exch.b128 %q1, [%rd1], %q2;"));
  CHECK_MESSAGE(why.find("atomic operation on .b128") != std::string::npos, why);
  for (int i = 0; i < CU_ATOMIC_OPERATION_MAX; ++i) {
    const auto operation = static_cast<CUatomicOperation>(i);
    unsigned got = 0;
    CHECK(CU(cuDeviceGetHostAtomicCapabilities)(&got, &operation, 1, 0) == CUDA_SUCCESS);
    const bool vectors = (got & CU_ATOMIC_CAPABILITY_VECTOR_32x4) != 0;
    CHECK_MESSAGE(vectors == (operation == CU_ATOMIC_OPERATION_FLOAT_ADD), i);
    CHECK_MESSAGE((got & CU_ATOMIC_CAPABILITY_SCALAR_128) == 0, i);
  }
}

TEST_CASE_FIXTURE(Fixture, "256 bits are loaded and stored at once, at multiples of 32 bytes only") {
  if (capability() < 100) return;
  const std::string words =
      ".reg .b64 %rv<5>; ld.global.v8.u32 {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}, [%rd1]; st.global.v8.b32 "
      "[%rd1], "
      "{%r9, %r8, %r7, %r6, %r5, %r4, %r3, %r2}; ld.global.v4.u64 {%rv1, %rv2, %rv3, %rv4}, [%rd1+32]; "
      "st.global.v4.b64 "
      "[%rd1+32], {%rv4, %rv3, %rv2, %rv1};";
  std::vector<std::uint32_t> numbers(33 * 16);
  for (std::uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  const Module loaded(kernel(k100, words, 16));
  const CUdeviceptr out = upload(numbers);
  loaded.run(33, out);
  const auto got = download<std::uint32_t>(out, numbers.size());
  for (std::uint32_t i = 0; i < numbers.size(); ++i) {
    CAPTURE(i);
    const std::uint32_t thread = i / 16 * 16, word = i % 16;
    // Words in reverse, then pairs of words.
    CHECK(got[i] == thread + (word < 8 ? 7 - word : 8 + (3 - (word - 8) / 2) * 2 + word % 2));
  }
}

TEST_CASE_FIXTURE(Fixture, "an access of 256 bits at a multiple of 16 bytes is a misaligned address") {
  if (capability() < 100) return;
  const std::string text = kernel(
      k100,
      "ld.global.v8.u32 {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}, [%rd1+16]; st.global.u32 [%rd1], %r2;");
  CUmodule misaligned = nullptr;
  CUfunction function = nullptr;
  REQUIRE(cu().cuModuleLoadData(&misaligned, text.c_str()) == CUDA_SUCCESS);
  REQUIRE(cu().cuModuleGetFunction(&function, misaligned, "k") == CUDA_SUCCESS);
  CUdeviceptr out = allocate(256);
  void* parameters[] = {&out, nullptr};
  REQUIRE(cu().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST_CASE_FIXTURE(Fixture, "bulk copies complete the transactions that a barrier object waits for") {
  if (capability() < 90) return;
  // Thread 0 expects 1,024 bytes, which come in two copies, one of them before they are expected. All wait,
  // add one to their words, and the block goes back in one copy.
  const std::string body =
      ".shared .align 16 .u32 box[256]; .shared .align 8 .b64 bar; ld.param.u64 %rd2, [out]; mov.u32 %r2, "
      "bar; mov.u32 "
      "%r3, box; setp.ne.u32 %p1, %r1, 0; @%p1 bra ready; mbarrier.init.shared.b64 [%r2], 1; ready: bar.sync "
      "0; @%p1 "
      "bra wait; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2], 512, "
      "[%r2]; "
      "mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 1024; mov.u32 %r4, 512; add.u32 %r5, %r3, %r4; "
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd2+512], %r4, [%r2]; "
      "wait: "
      "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra wait; shl.b32 %r6, %r1, 2; add.u32 %r6, "
      "%r3, "
      "%r6; ld.shared.u32 %r7, [%r6]; add.u32 %r7, %r7, 1; st.shared.u32 [%r6], %r7; fence.proxy.async; "
      "bar.sync 0; "
      "@%p1 bra done; cp.async.bulk.global.shared::cta.bulk_group [%rd2+1024], [%r3], 1024; "
      "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; done:";
  std::vector<std::uint32_t> words(512, 0);
  for (std::uint32_t i = 0; i < 256; ++i) words[i] = 3 * i;
  const CUdeviceptr out = upload(words);
  const Module loaded(kernel(k90, body));
  loaded.run(256, out);
  const auto got = download<std::uint32_t>(out, 512);
  for (std::uint32_t i = 0; i < 256; ++i) {
    CHECK(got[i] == 3 * i);
    CHECK(got[256 + i] == 3 * i + 1);
  }
}

TEST_CASE_FIXTURE(Fixture, "a barrier object waits for bytes and arrivals alike") {
  if (capability() < 90) return;
  // What test_wait says of phase 0 after each step: two arrivals and 8 bytes are waited for.
  const std::string wait =
      "mbarrier.test_wait.parity.shared.b64 %p1, [%r2], 0; selp.u32 %r4, 1, 0, %p1; shl.b32 %r5, "
      "%r5, 1; or.b32 %r5, %r5, %r4; ";
  const std::string body =
      ".shared .align 8 .b64 bar; .shared .align 8 .b32 box[2]; mov.u32 %r2, bar; mov.u32 %r3, box; mov.u32 "
      "%r5, 0; "
      "mbarrier.init.shared.b64 [%r2], 2; mbarrier.expect_tx.relaxed.cta.shared.b64 [%r2], 8; "
      "mbarrier.arrive.shared.b64 "
      "_, [%r2]; " +
      wait + "mbarrier.arrive.shared.b64 _, [%r2]; " + wait +
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], 5, [%r2]; " + wait +
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3+4], 6, [%r2]; "
      "until: mbarrier.test_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra until; " +
      wait +
      "mbarrier.complete_tx.relaxed.cta.shared.b64 [%r2], 4; mbarrier.arrive.shared.b64 _, [%r2]; "
      "mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 4; mbarrier.test_wait.parity.shared.b64 %p1, [%r2], 1; "
      "selp.u32 "
      "%r6, 1, 0, %p1; ld.shared.v2.u32 {%r7, %r8}, [%r3]; st.global.v4.u32 [%rd1], {%r5, %r6, %r7, %r8};";
  const CUdeviceptr out = allocate(16);
  const Module loaded(kernel(k90, body, 4));
  loaded.run(1, out);
  CHECK(download<std::uint32_t>(out, 4) == std::vector<std::uint32_t>{1, 1, 5, 6});
}

TEST_CASE_FIXTURE(Fixture,
                  "asynchronous stores to global memory write their bytes and release what is before them") {
  if (capability() < 100) return;
  // Each width into words of ones; threads 0 to 39 have 8 words each.
  const Module widths(kernel(
      k100,
      ".reg .b8 %b1; .reg .b16 %h1; .reg .f32 %f1; .reg .f64 %d1; cvt.u8.u32 %b1, %r1; cvt.u16.u32 %h1, "
      "%r1; cvt.u64.u32 %rd2, %r1; cvt.rn.f32.u32 %f1, %r1; cvt.rn.f64.u32 %d1, %r1; "
      "st.async.release.gpu.global.u8 [%rd1+1], %b1; st.async.mmio.release.sys.b16 [%rd1+6], %h1; "
      "st.async.release.sys.s32 [%rd1+8], %r1; st.async.mmio.release.gpu.global.f32 [%rd1+12], %f1; "
      "st.async.global.release.gpu.u64 [%rd1+16], %rd2; st.async.release.gpu.global.f64 [%rd1+24], %d1;",
      8));
  const CUdeviceptr out = upload(std::vector<std::uint32_t>(40 * 8, ~0u));
  widths.run(40, out);
  const auto got = download<std::uint32_t>(out, 40 * 8);
  for (std::uint32_t i = 0; i < 40; ++i) {
    CAPTURE(i);
    const std::uint32_t* const words = &got[std::size_t{8} * i];
    const std::uint64_t real = std::bit_cast<std::uint64_t>(double(i));
    CHECK(words[0] == (0xffff00ffu | i << 8));
    CHECK(words[1] == (0x0000ffffu | i << 16));
    CHECK(words[2] == i);
    CHECK(words[3] == std::bit_cast<std::uint32_t>(float(i)));
    CHECK(words[4] == i);
    CHECK(words[5] == 0);
    CHECK(words[6] == static_cast<std::uint32_t>(real));
    CHECK(words[7] == static_cast<std::uint32_t>(real >> 32));
  }
  // The second warp waits for the first one's flag and then sees the word that was stored before it.
  const Module message(kernel(
      k100,
      "ld.param.u64 %rd2, [out]; setp.ge.u32 %p1, %r1, 32; @%p1 bra wait; setp.ne.u32 %p2, %r1, 0; @%p2 "
      "bra done; st.global.u32 [%rd2+4], 77; st.async.release.gpu.global.u32 [%rd2], 1; bra done; "
      "wait: ld.acquire.gpu.global.u32 %r2, [%rd2]; setp.eq.u32 %p2, %r2, 0; @%p2 bra wait; "
      "ld.global.u32 %r3, [%rd2+4]; st.global.u32 [%rd1], %r3; done:"));
  const CUdeviceptr mail = upload(std::vector<std::uint32_t>(64, 0));
  message.run(64, mail);
  const auto read = download<std::uint32_t>(mail, 64);
  for (std::uint32_t i = 32; i < 64; ++i) CHECK(read[i] == 77);
}

TEST_CASE_FIXTURE(Fixture, "shared memory is filled with zeros in bulk") {
  if (capability() < 100) return;
  const Module loaded(
      kernel(k100,
             ".shared .align 16 .u32 box[64]; mov.u32 %r2, box; shl.b32 %r3, %r1, 2; add.u32 %r3, "
             "%r3, %r2; st.shared.u32 [%r3], 9; bar.sync 0; setp.eq.u32 %p1, %r1, 5; @%p1 "
             "st.bulk.weak.shared::cta [%r2+16], 48, 0; bar.sync 0; ld.shared.u32 %r4, [%r3]; "
             "st.global.u32 [%rd1], %r4;"));
  const CUdeviceptr out = allocate(64 * 4);
  loaded.run(64, out);
  const auto got = download<std::uint32_t>(out, 64);
  for (std::uint32_t i = 0; i < 64; ++i) CHECK(got[i] == (i >= 4 && i < 16 ? 0 : 9));
}

TEST_CASE_FIXTURE(Fixture, "rows of threads in one warp that is not full read the same bytes") {
  const Module loaded(
      kernel(kNew,
             "ld.param.u64 %rd2, [out]; cvt.u64.u32 %rd3, %r1; add.u64 %rd3, %rd2, %rd3; ld.global.u8 %r3, "
             "[%rd3+128]; mov.u32 %r2, %tid.y; mad.lo.u32 %r4, %r2, 8, %r1; mul.wide.u32 %rd4, %r4, 4; "
             "add.u64 %rd4, %rd2, %rd4; st.global.u32 [%rd4], %r3;"));
  std::vector<std::uint32_t> words(34, 0);
  words[32] = 0x04030201;
  words[33] = 0x08070605;
  const CUdeviceptr out = upload(words);
  loaded.run(8, out, 3);
  const auto got = download<std::uint32_t>(out, 24);
  for (std::uint32_t i = 0; i < 24; ++i) CHECK(got[i] == i % 8 + 1);
}
