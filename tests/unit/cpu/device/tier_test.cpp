// SPDX-License-Identifier: Apache-2.0
// Quick code first, good code from the background, with the fake compiler's kernels.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "../../../refused_threads.hpp"
#include "base/background.hpp"
#include "cpu/device/tier_facts.hpp"
#include "driver/cpu_plugin.h"
#include "driver/driver_table.hpp"
#include "fake_compiler.hpp"
#include "ptx/ptx.hpp"

using namespace quern;
using quern::test::table;

namespace {

constexpr std::uint32_t kQuick = 1;
constexpr std::uint32_t kGood = 2;

/// Good code is held while it lives.
class Hold {
 public:
  Hold() { test::hold_good_code(true); }
  ~Hold() { test::hold_good_code(false); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
};

/// A context with a module of a text of its own.
struct Tiers {
  const driver::DriverTable& cu = table();
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUdeviceptr out = 0;

  Tiers() {
    REQUIRE(cu.cuCtxCreate_v4(&context, nullptr, 0, 0) == CUDA_SUCCESS);
    static std::atomic<int> number{0};
    const std::string text = test::tiers_text() + fmt::format("// text {}\n", ++number);
    REQUIRE(cu.cuModuleLoadData(&module, text.c_str()) == CUDA_SUCCESS);
    REQUIRE(cu.cuMemAlloc_v2(&out, 4) == CUDA_SUCCESS);
  }
  ~Tiers() {
    if (context != nullptr) cu.cuCtxDestroy_v2(context);
  }
  Tiers(const Tiers&) = delete;
  Tiers& operator=(const Tiers&) = delete;

  CUfunction function(const char* name) const {
    CUfunction result = nullptr;
    REQUIRE(cu.cuModuleGetFunction(&result, module, name) == CUDA_SUCCESS);
    return result;
  }
  /// The tier of the code that a launch of `grid` blocks ran.
  std::uint32_t launch(const char* name = "tiers", unsigned grid = 1, unsigned block = 32) {
    CUdeviceptr address = out;
    void* parameters[] = {&address};
    REQUIRE(cu.cuLaunchKernel(function(name), grid, 1, 1, block, 1, 1, 0, nullptr, parameters, nullptr) ==
            CUDA_SUCCESS);
    std::uint32_t tier = 0;
    REQUIRE(cu.cuMemcpyDtoH_v2(&tier, out, sizeof tier) == CUDA_SUCCESS);
    return tier;
  }
  /// A launch before which good code is not finished.
  void launch_held() {
    const Hold held;
    CHECK(launch() == kQuick);
  }
};

/// Launches until the code is good, ten seconds at most.
std::uint32_t launch_until_good(Tiers& tiers) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::uint32_t tier = kQuick;
  while (tier == kQuick && std::chrono::steady_clock::now() < end) tier = tiers.launch();
  return tier;
}

}  // namespace

TEST_CASE_FIXTURE(Tiers, "a launch runs quick code, and later ones good code as soon as there is some") {
  const std::uint64_t before = test::compile_count();
  {
    const Hold held;
    CHECK(launch() == kQuick);
    CHECK(launch() == kQuick);
  }
  CHECK(launch_until_good(*this) == kGood);
  CHECK(launch() == kGood);
  CHECK(test::compile_count() == before + 2);
}

TEST_CASE_FIXTURE(Tiers,
                  "a launch of many threads, or of a block shape with known code, does not run quick code") {
  CHECK(launch("tiers", 5000, 32) == kGood);
  CHECK(launch() == kGood);
}

TEST_CASE_FIXTURE(Tiers, "a large launch waits for good code while quick code runs small ones") {
  launch_held();
  CHECK(launch("tiers", 5000, 32) == kGood);
  CHECK(launch() == kGood);
}

TEST_CASE_FIXTURE(Tiers, "a cooperative launch does not run quick code") {
  CUdeviceptr address = out;
  void* parameters[] = {&address};
  void* found = nullptr;
  REQUIRE(cu.cuGetProcAddress_v2("cuLaunchCooperativeKernel", &found, 12000, CU_GET_PROC_ADDRESS_DEFAULT,
                                 nullptr) == CUDA_SUCCESS);
  const auto launch_together = reinterpret_cast<decltype(&::cuLaunchCooperativeKernel)>(found);
  REQUIRE(launch_together(function("tiers"), 1, 1, 1, 32, 1, 1, 0, nullptr, parameters) == CUDA_SUCCESS);
  std::uint32_t tier = 0;
  REQUIRE(cu.cuMemcpyDtoH_v2(&tier, out, sizeof tier) == CUDA_SUCCESS);
  CHECK(tier == kGood);
}

TEST_CASE_FIXTURE(Tiers, "code that was prepared is good") {
  const std::uint32_t block[3] = {32, 1, 1};
  REQUIRE(quern_cpu_device()->prepare_kernel(function("tiers"), block) == 0);
  CHECK(launch() == kGood);
}

TEST_CASE_FIXTURE(Tiers, "preparing a kernel whose quick code runs makes good code") {
  launch_held();
  const std::uint32_t block[3] = {32, 1, 1};
  REQUIRE(quern_cpu_device()->prepare_kernel(function("tiers"), block) == 0);
  CHECK(launch() == kGood);
}

TEST_CASE_FIXTURE(Tiers, "a kernel whose results could tell the tiers apart does not run quick code") {
  for (const char* name : {"tiers_atom", "tiers_red"}) CHECK(launch(name) == kGood);
}

TEST_CASE_FIXTURE(Tiers, "a kernel whose functions could tell the tiers apart does not run quick code") {
  CHECK(launch("tiers_recursion") == kGood);
}

TEST_CASE_FIXTURE(Tiers, "a kernel that calls a function without recursion runs quick code") {
  const Hold held;
  CHECK(launch("tiers_calls") == kQuick);
}

TEST_CASE("the instructions of called functions decide about quick code, too") {
  struct Case {
    const char* what;
    const char* functions;
    const char* kernel;
    bool shows_tier;
    std::size_t instruction_count;
  };
  const Case cases[] = {
      {"no call", "", "", false, 1},
      {"a function that is called twice", ".func f() { ret; }", "call f;\ncall f;", false, 4},
      {"functions of functions", ".func g() { ret; }\n.func f() { call g; ret; }", "call f;", false, 5},
      {"a function behind its declaration", ".func f();", "call f;", false, 3},
      {"a recursion", ".func f() { call f; ret; }", "call f;", true, 0},
      {"a recursion over two functions", ".func g();\n.func f() { call g; ret; }\n.func g() { call f; ret; }",
       "call f;", true, 0},
      {"a recursion that the kernel does not reach", ".func f() { call f; ret; }", "", false, 1},
      {"an atomic operation in a function",
       ".func f() { .reg .b32 %r; .reg .b64 %rd; atom.global.add.u32 %r, [%rd], 1; ret; }", "call f;", true,
       0},
      {"a call through a register", ".func f() { ret; }",
       ".reg .b64 %rd;\nmov.u64 %rd, f;\ntable: .calltargets f;\ncall %rd, table;", true, 0},
      {"a function of the device", ".extern .func (.param .b64 r) malloc(.param .b64 size);",
       "{ .param .b64 s; .param .b64 r; call (r), malloc, (s); }", true, 0},
  };
  for (const Case& of : cases) {
    CAPTURE(of.what);
    std::string text = fmt::format(
        ".version 8.0\n.target sm_89\n.address_size 64\n{}\n"
        ".visible .entry k() {{\n{}\nret;\n}}\n",
        of.functions, of.kernel);
    if (std::string_view(of.functions) == ".func f();") text += ".func f() { ret; }\n";
    const Expected<ptx::Module> module = ptx::parse(text);
    REQUIRE_MESSAGE(module.has_value(), (module ? "" : to_string(module.errors())));
    const auto facts = cpu::device::find_tier_facts(*module, *module->find_function("k"));
    CHECK(facts.shows_tier == of.shows_tier);
    if (!of.shows_tier) CHECK(facts.instruction_count == of.instruction_count);
  }
}

TEST_CASE_FIXTURE(Tiers, "where no thread can be started, the launch makes good code itself") {
  // A thread that works for an earlier test would take the code.
  while (base::background_thread_count() != 0) std::this_thread::yield();
  std::thread([&] {
    REQUIRE(test::refuse_threads());
    REQUIRE(cu.cuCtxSetCurrent(context) == CUDA_SUCCESS);
    CHECK(launch() == kGood);
  }).join();
}

TEST_CASE("a module and its context may end while good code is made") {
  const Hold held;
  for (const bool with_context : {false, true}) {
    Tiers tiers;
    CHECK(tiers.launch() == kQuick);
    CHECK(tiers.cu.cuModuleUnload(tiers.module) == CUDA_SUCCESS);
    if (!with_context) continue;
    CHECK(tiers.cu.cuCtxDestroy_v2(tiers.context) == CUDA_SUCCESS);
    tiers.context = nullptr;
  }
}

TEST_CASE_FIXTURE(Tiers, "threads that launch while the code is replaced run one or the other") {
  std::vector<std::thread> threads;
  std::atomic<int> good_count{0};
  CUfunction kernel = function("tiers");
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      if (cu.cuCtxSetCurrent(context) != CUDA_SUCCESS) return;
      CUdeviceptr own = 0;
      CUstream stream = nullptr;
      if (cu.cuMemAlloc_v2(&own, 4) != CUDA_SUCCESS || cu.cuStreamCreate(&stream, 1) != CUDA_SUCCESS) return;
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      std::uint32_t tier = kQuick;
      while (tier == kQuick && std::chrono::steady_clock::now() < end) {
        void* parameters[] = {&own};
        if (cu.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr) != CUDA_SUCCESS)
          return;
        if (cu.cuStreamSynchronize(stream) != CUDA_SUCCESS) return;
        if (cu.cuMemcpyDtoH_v2(&tier, own, sizeof tier) != CUDA_SUCCESS) return;
      }
      good_count += tier == kGood ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(good_count == 4);
}
