// SPDX-License-Identifier: Apache-2.0
// Machine code that modules, contexts and threads share, with the fake compiler's kernels.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "driver/cpu_plugin.h"
#include "driver/driver_table.hpp"
#include "fake_compiler.hpp"

using namespace quern;
using quern::test::table;

namespace {

/// PTX that no other test has loaded: the kernels, and a unique line.
std::string own_text() {
  static std::atomic<int> number{0};
  return fmt::format("{}// text {}\n", test::kKernels, ++number);
}

struct Context {
  const driver::DriverTable& cu = table();
  CUcontext handle = nullptr;
  Context() { REQUIRE(cu.cuCtxCreate_v4(&handle, nullptr, 0, 0) == CUDA_SUCCESS); }
  ~Context() { cu.cuCtxDestroy_v2(handle); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  CUmodule load(const std::string& text) const {
    CUmodule module = nullptr;
    REQUIRE(cu.cuModuleLoadData(&module, text.c_str()) == CUDA_SUCCESS);
    return module;
  }
  CUresult launch(CUmodule module, const char* name, unsigned block) const {
    CUfunction function = nullptr;
    REQUIRE(cu.cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS);
    const CUresult result = cu.cuLaunchKernel(function, 1, 1, 1, block, 1, 1, 0, nullptr, nullptr, nullptr);
    REQUIRE(cu.cuCtxSynchronize() == CUDA_SUCCESS);
    return result;
  }
};

}  // namespace

TEST_CASE("equal PTX shares a kernel's machine code, in any module and context") {
  const std::string text = own_text();
  const std::uint64_t before = test::compile_count();
  const Context first;
  const CUmodule module = first.load(text);
  CHECK(first.launch(module, "empty", 32) == CUDA_SUCCESS);
  CHECK(test::compile_count() == before + 1);
  CHECK(first.launch(first.load(text), "empty", 32) == CUDA_SUCCESS);
  CHECK(first.cu.cuModuleUnload(module) == CUDA_SUCCESS);
  CHECK(first.launch(first.load(text), "empty", 32) == CUDA_SUCCESS);
  {
    const Context second;
    CHECK(second.launch(second.load(text), "empty", 32) == CUDA_SUCCESS);
  }
  CHECK(test::compile_count() == before + 1);
}

TEST_CASE("another kernel, block shape, optimisation level or text has machine code of its own") {
  const std::string text = own_text();
  const Context context;
  const CUmodule module = context.load(text);
  const std::uint64_t before = test::compile_count();
  CHECK(context.launch(module, "empty", 32) == CUDA_SUCCESS);
  CHECK(context.launch(module, "empty", 64) == CUDA_SUCCESS);
  CHECK(test::compile_count() == before + 2);
  CHECK(context.launch(module, "small", 32) == CUDA_SUCCESS);
  CHECK(test::compile_count() == before + 3);
  CUjit_option option = CU_JIT_OPTIMIZATION_LEVEL;
  void* level = nullptr;
  CUmodule plain = nullptr;
  REQUIRE(context.cu.cuModuleLoadDataEx(&plain, text.c_str(), 1, &option, &level) == CUDA_SUCCESS);
  CHECK(context.launch(plain, "empty", 32) == CUDA_SUCCESS);
  CHECK(test::compile_count() == before + 4);
  // A comment changes the line numbers, and with them those in reports of faults.
  CHECK(context.launch(context.load(own_text()), "empty", 32) == CUDA_SUCCESS);
  CHECK(test::compile_count() == before + 5);
}

TEST_CASE("threads that load and launch one new text generate its machine code once") {
  const std::string text = own_text();
  const Context context;
  const std::uint64_t before = test::compile_count();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      const Context own;
      CHECK(own.launch(own.load(text), "empty", 32) == CUDA_SUCCESS);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(test::compile_count() == before + 1);
}

TEST_CASE("launches of different kernels and block shapes generate machine code at once") {
  const Context context;
  const CUmodule module = context.load(own_text());
  test::gather_compilers(4);
  std::vector<std::thread> threads;
  for (const auto& [name, block] : {std::pair{"empty", 32u}, std::pair{"empty", 64u}, std::pair{"small", 32u},
                                    std::pair{"shared_user", 32u}})
    threads.emplace_back([&, name, block] {
      const driver::DriverTable& cu = context.cu;
      CHECK(cu.cuCtxSetCurrent(context.handle) == CUDA_SUCCESS);
      CUstream stream = nullptr;
      CHECK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
      CUfunction function = nullptr;
      CHECK(cu.cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS);
      CHECK(cu.cuLaunchKernel(function, 1, 1, 1, block, 1, 1, 0, stream, nullptr, nullptr) == CUDA_SUCCESS);
      CHECK(cu.cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(test::most_compilers() == 4);
  test::gather_compilers(0);
}

TEST_CASE("the device states the time for which it compiled, of what it did not know") {
  const auto times_of = [](const Context& context, CUmodule module, const char* name) {
    CUfunction function = nullptr;
    REQUIRE(context.cu.cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS);
    QuernCpuCompileTimes times{};
    times.struct_bytes = sizeof times;
    REQUIRE(quern_cpu_device()->compile_times(function, &times) == 0);
    return times;
  };
  constexpr std::uint64_t kDelayNs = 20'000'000;
  const std::string text = own_text();
  const Context context;
  const CUmodule module = context.load(text);
  CHECK(times_of(context, module, "empty").load_ns > 0);
  CHECK(times_of(context, module, "empty").machine_code_ns == 0);
  test::delay_compiler(std::chrono::milliseconds(20));
  CHECK(context.launch(module, "empty", 32) == CUDA_SUCCESS);
  const std::uint64_t once = times_of(context, module, "empty").machine_code_ns;
  CHECK(once >= kDelayNs);
  CHECK(context.launch(module, "empty", 32) == CUDA_SUCCESS);
  CHECK(times_of(context, module, "empty").machine_code_ns == once);
  CHECK(context.launch(module, "empty", 64) == CUDA_SUCCESS);
  CHECK(times_of(context, module, "empty").machine_code_ns >= once + kDelayNs);
  CHECK(times_of(context, module, "small").machine_code_ns == 0);
  test::delay_compiler(std::chrono::milliseconds(0));

  const CUmodule again = context.load(text);
  CHECK(context.launch(again, "empty", 32) == CUDA_SUCCESS);
  CHECK(times_of(context, again, "empty").load_ns == 0);
  CHECK(times_of(context, again, "empty").machine_code_ns == 0);
  QuernCpuCompileTimes times{};
  CHECK(quern_cpu_device()->compile_times(nullptr, &times) == 1);
}

TEST_CASE("PTX that is refused is refused again, with its reason") {
  const Context context;
  const std::string text =
      "// a target that this device has not\n.version 8.0\n.target sm_90\n.address_size 64\n";
  for (int again = 0; again < 2; ++again) {
    std::string log(1000, '\0');
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    CUmodule module = nullptr;
    CHECK(context.cu.cuModuleLoadDataEx(&module, text.c_str(), 2, options, values) == CUDA_ERROR_INVALID_PTX);
    CHECK(log.find("the PTX is for sm_90") != std::string::npos);
  }
}

TEST_CASE("a mapping that is refused is tried again without the code that nobody uses") {
  const std::string text = own_text(), other = own_text();
  const Context context;
  const CUmodule module = context.load(text);
  CHECK(context.launch(module, "empty", 32) == CUDA_SUCCESS);
  const CUmodule gone = context.load(other);
  CHECK(context.launch(gone, "empty", 32) == CUDA_SUCCESS);
  CHECK(context.cu.cuModuleUnload(gone) == CUDA_SUCCESS);
  const std::uint64_t before = test::compile_count();
  test::refuse_memory(1);
  CHECK(context.launch(module, "small", 32) == CUDA_SUCCESS);
  CHECK(test::compile_count() == before + 1);
  CHECK(context.launch(context.load(other), "empty", 32) == CUDA_SUCCESS);
  CHECK(test::compile_count() == before + 2);  // its code was released
  CHECK(context.launch(module, "empty", 32) == CUDA_SUCCESS);
  CHECK(test::compile_count() == before + 2);  // a function keeps its own
}
