// SPDX-License-Identifier: Apache-2.0
// The device, through its driver table, with the fake compiler's kernels.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "driver/cpu_plugin.h"
#include "driver/driver_table.hpp"
#include "fake_compiler.hpp"

using namespace quern;
using quern::test::table;

namespace {

/// A separate context in which the kernels are loaded, so that a fault in one test does not affect others.
struct Fixture {
  const driver::DriverTable& cu = table();
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  Fixture() {
    REQUIRE(cu.cuCtxCreate_v4(&context, nullptr, 0, 0) == CUDA_SUCCESS);
    // A unique text: modules with equal texts share machine code.
    static std::atomic<int> number{0};
    const std::string text = test::kKernels + ("// " + std::to_string(++number) + "\n");
    REQUIRE(cu.cuModuleLoadData(&module, text.c_str()) == CUDA_SUCCESS);
  }
  ~Fixture() { cu.cuCtxDestroy_v2(context); }
  CUfunction function(const char* name) const {
    CUfunction result = nullptr;
    REQUIRE(cu.cuModuleGetFunction(&result, module, name) == CUDA_SUCCESS);
    return result;
  }
  template <class... Args>
  CUresult launch(const char* name, unsigned grid, unsigned block, CUstream stream, Args... args) const {
    void* parameters[] = {&args..., nullptr};
    return cu.cuLaunchKernel(function(name), grid, 1, 1, block, 1, 1, 0, stream, parameters, nullptr);
  }
  CUdeviceptr allocate(std::size_t bytes) const {
    CUdeviceptr pointer = 0;
    REQUIRE(cu.cuMemAlloc_v2(&pointer, bytes) == CUDA_SUCCESS);
    return pointer;
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a launch writes device memory and a copy brings it back") {
  const CUdeviceptr out = allocate(1000 * 4);
  REQUIRE(launch("fill", 10, 100, nullptr, out, 42u) == CUDA_SUCCESS);
  std::vector<std::uint32_t> host(1000);
  REQUIRE(cu.cuMemcpyDtoH_v2(host.data(), out, 4000) == CUDA_SUCCESS);
  CHECK(host == std::vector<std::uint32_t>(1000, 42));
}

TEST_CASE_FIXTURE(Fixture, "packed parameters through extra mean the same") {
  const CUdeviceptr out = allocate(400);
  struct {
    CUdeviceptr out;
    std::uint32_t value;
  } packed{out, 5};
  std::size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  REQUIRE(cu.cuLaunchKernel(function("fill"), 1, 1, 1, 100, 1, 1, 0, nullptr, nullptr, extra) ==
          CUDA_SUCCESS);
  std::uint32_t last = 0;
  REQUIRE(cu.cuMemcpyDtoH_v2(&last, out + 396, 4) == CUDA_SUCCESS);
  CHECK(last == 5);
  size = 8;  // what lacks is zero
  CHECK(cu.cuLaunchKernel(function("fill"), 1, 1, 1, 100, 1, 1, 0, nullptr, nullptr, extra) == CUDA_SUCCESS);
  REQUIRE(cu.cuMemcpyDtoH_v2(&last, out + 396, 4) == CUDA_SUCCESS);
  CHECK(last == 0);
}

TEST_CASE_FIXTURE(Fixture, "a kernel is compiled once a block shape, also when threads race for it") {
  const std::uint64_t before = test::compile_count();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([this] {
      cu.cuCtxSetCurrent(context);
      for (int i = 0; i < 50; ++i) CHECK(launch("empty", 1, 32, nullptr) == CUDA_SUCCESS);
      CHECK(cu.cuCtxSynchronize() == CUDA_SUCCESS);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(test::compile_count() == before + 1);
  CHECK(launch("empty", 1, 64, nullptr) == CUDA_SUCCESS);
  CHECK(test::compile_count() == before + 2);
}

TEST_CASE_FIXTURE(Fixture, "a launch whose machine code finds no memory says so, and can be tried again") {
  const auto text = [this](CUresult result) {
    const char* found = nullptr;
    CHECK(cu.cuGetErrorString(result, &found) == CUDA_SUCCESS);
    return std::string(found != nullptr ? found : "");
  };
  test::refuse_memory(2);
  REQUIRE(launch("empty", 1, 96, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(text(CUDA_ERROR_OUT_OF_MEMORY) == "out of memory: no mapping is left; free some");
  CHECK(text(CUDA_ERROR_INVALID_VALUE) == "invalid argument");
  std::thread([&] { CHECK(text(CUDA_ERROR_OUT_OF_MEMORY) == "out of memory"); }).join();
  CHECK(launch("empty", 1, 96, nullptr) == CUDA_SUCCESS);
  // A later failure of another kind does not have this reason.
  CUdeviceptr none = 0;
  REQUIRE(cu.cuMemAlloc_v2(&none, std::size_t{1} << 60) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(text(CUDA_ERROR_OUT_OF_MEMORY) == "out of memory");
}

TEST_CASE_FIXTURE(Fixture, "launches beyond the limits are refused") {
  const CUfunction empty = function("empty");
  const auto launch_as = [&](unsigned gx, unsigned gy, unsigned bx, unsigned bz, unsigned shared) {
    return cu.cuLaunchKernel(empty, gx, gy, 1, bx, 1, bz, shared, nullptr, nullptr, nullptr);
  };
  CHECK(launch_as(1, 1, 1024, 1, 0) == CUDA_SUCCESS);
  CHECK(launch_as(0, 1, 1, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch_as(1, 65536, 1, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch_as(1, 1, 0, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch_as(1, 1, 1025, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch_as(1, 1, 1, 65, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch_as(1, 1, 32, 33, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch_as(1, 1, 1, 1, 48 * 1024) == CUDA_SUCCESS);
  CHECK(launch_as(1, 1, 1, 1, 48 * 1024 + 1) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cu.cuFuncSetAttribute(empty, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 99 * 1024) ==
          CUDA_SUCCESS);
  CHECK(launch_as(1, 1, 1, 1, 99 * 1024) == CUDA_SUCCESS);
  CHECK(cu.cuFuncSetAttribute(empty, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 99 * 1024 + 1) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(launch("small", 1, 65, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu.cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
        CUDA_ERROR_INVALID_HANDLE);
  CHECK(cu.cuLaunchKernel(function("fill"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cu.cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "static and dynamic shared memory together fit the opt-in limit") {
  const CUfunction user = function("shared_user");
  int limit = 0;
  REQUIRE(cu.cuFuncGetAttribute(&limit, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, user) ==
          CUDA_SUCCESS);
  CHECK(limit == 47 * 1024);
  REQUIRE(cu.cuFuncSetAttribute(user, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 98 * 1024) ==
          CUDA_SUCCESS);
  CHECK(cu.cuLaunchKernel(user, 4, 1, 1, 32, 1, 1, 98 * 1024, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
  CHECK(cu.cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE("faults end the context with the result a GPU gives, and the process goes on") {
  struct Row {
    const char* kernel;
    CUresult result;
  };
  for (const Row& row :
       {Row{"trap", CUDA_ERROR_LAUNCH_FAILED}, Row{"recurse", CUDA_ERROR_HARDWARE_STACK_ERROR},
        Row{"divide", CUDA_ERROR_LAUNCH_FAILED}, Row{"illegal", CUDA_ERROR_ILLEGAL_INSTRUCTION}}) {
    CAPTURE(std::string(row.kernel));
    Fixture fixture;
    const CUfunction empty = fixture.function("empty");
    REQUIRE(fixture.launch(row.kernel, 3, 32, nullptr) == CUDA_SUCCESS);
    CHECK(fixture.cu.cuCtxSynchronize() == row.result);
    CUdeviceptr pointer = 0;
    CHECK(fixture.cu.cuMemAlloc_v2(&pointer, 16) == row.result);
    CHECK(fixture.cu.cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == row.result);
  }
  Fixture after;
  CHECK(after.launch("empty", 1, 1, nullptr) == CUDA_SUCCESS);
  CHECK(after.cu.cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE(
    "wild pointers are illegal addresses: null, host memory, freed memory, the end of an allocation, kernel "
    "space") {
  std::uint64_t on_the_stack = 1234;
  std::vector<std::uint64_t> addresses{0, 8, reinterpret_cast<std::uint64_t>(&on_the_stack),
                                       ~std::uint64_t{3}, std::uint64_t{1} << 47};
  {
    Fixture fixture;
    const CUdeviceptr freed = fixture.allocate(1 << 20);
    REQUIRE(fixture.cu.cuMemFree_v2(freed) == CUDA_SUCCESS);
    addresses.push_back(freed);
    addresses.push_back(fixture.allocate(4096) + 4096);
  }
  for (const std::uint64_t address : addresses) {
    CAPTURE(address);
    Fixture fixture;
    REQUIRE(fixture.launch("wild", 1, 1, nullptr, address) == CUDA_SUCCESS);
    CHECK(fixture.cu.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  CHECK(on_the_stack == 1234);
}

TEST_CASE("resetting the primary context ends the sticky error and all it owned") {
  const driver::DriverTable& cu = table();
  CUcontext primary = nullptr;
  REQUIRE(cu.cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  REQUIRE(cu.cuCtxPushCurrent_v2(primary) == CUDA_SUCCESS);
  std::size_t free_before = 0, free_after = 0, total = 0;
  REQUIRE(cu.cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS);  // removes the state of other cases
  REQUIRE(cu.cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  cu.cuMemGetInfo_v2(&free_before, &total);
  CUdeviceptr pointer = 0;
  REQUIRE(cu.cuMemAlloc_v2(&pointer, 1 << 20) == CUDA_SUCCESS);
  CUmodule module = nullptr;
  CUfunction trap = nullptr;
  REQUIRE(cu.cuModuleLoadData(&module, test::kKernels) == CUDA_SUCCESS);
  REQUIRE(cu.cuModuleGetFunction(&trap, module, "trap") == CUDA_SUCCESS);
  REQUIRE(cu.cuLaunchKernel(trap, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
  CHECK(cu.cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED);
  REQUIRE(cu.cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS);
  CHECK(cu.cuCtxSynchronize() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  REQUIRE(cu.cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  CHECK(cu.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(cu.cuModuleGetFunction(&trap, module, "trap") == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cu.cuMemFree_v2(pointer) == CUDA_ERROR_INVALID_VALUE);
  cu.cuMemGetInfo_v2(&free_after, &total);
  CHECK(free_after == free_before);
  CUcontext popped = nullptr;
  CHECK(cu.cuCtxPopCurrent_v2(&popped) == CUDA_SUCCESS);
  CHECK(popped == primary);
  CHECK(cu.cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture,
                  "a kernel that waits for the host does not block the launch, nor copies on other streams") {
  CUstream busy = nullptr, other = nullptr;
  REQUIRE(cu.cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  REQUIRE(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  void* flag_memory = nullptr;
  REQUIRE(cu.cuMemHostAlloc(&flag_memory, 64, CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
  auto* flag = static_cast<std::atomic<std::uint32_t>*>(flag_memory);
  flag->store(0);
  CUdeviceptr device_flag = 0;
  REQUIRE(cu.cuMemHostGetDevicePointer_v2(&device_flag, flag_memory, 0) == CUDA_SUCCESS);
  REQUIRE(launch("spin", 1, 1, busy, device_flag) == CUDA_SUCCESS);
  CHECK(cu.cuStreamQuery(busy) == CUDA_ERROR_NOT_READY);
  const CUdeviceptr memory = allocate(64);
  REQUIRE(cu.cuMemsetD8Async(memory, 3, 64, other) == CUDA_SUCCESS);
  CHECK(cu.cuStreamSynchronize(other) == CUDA_SUCCESS);
  flag->store(1);
  CHECK(cu.cuStreamSynchronize(busy) == CUDA_SUCCESS);
  CHECK(cu.cuMemFreeHost(flag_memory) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture,
                  "a cooperative launch runs all its blocks at once and is refused where they do not fit") {
  const CUdeviceptr arrived = allocate(8);
  REQUIRE(cu.cuMemsetD8_v2(arrived, 0, 8) == CUDA_SUCCESS);
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  CUlaunchConfig config{};
  config.gridDimX = 2;
  config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CUdeviceptr argument = arrived;
  void* parameters[] = {&argument};
  for (int round = 0; round < 20; ++round) {
    REQUIRE(cu.cuMemsetD8_v2(arrived, 0, 8) == CUDA_SUCCESS);
    REQUIRE(cu.cuLaunchKernelEx(&config, function("meet"), parameters, nullptr) == CUDA_SUCCESS);
    CHECK(cu.cuCtxSynchronize() == CUDA_SUCCESS);
  }
  config.gridDimX =
      2 * 24 + 1;  // two workers, and the resources of a multiprocessor of compute capability 8.9
  CHECK(cu.cuLaunchKernelEx(&config, function("meet"), parameters, nullptr) ==
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

TEST_CASE_FIXTURE(Fixture, "malloc in a kernel gives memory of the heap until its limit") {
  const CUdeviceptr out = allocate(8);
  REQUIRE(launch("allocate", 1, 1, nullptr, out, std::uint64_t{1000}) == CUDA_SUCCESS);
  CUdeviceptr given = 0;
  REQUIRE(cu.cuMemcpyDtoH_v2(&given, out, 8) == CUDA_SUCCESS);
  CHECK(given != 0);
  CHECK(cu.cuMemFree_v2(given) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cu.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 4096) == CUDA_SUCCESS);
  REQUIRE(launch("allocate", 1, 1, nullptr, out, std::uint64_t{4000}) == CUDA_SUCCESS);
  REQUIRE(cu.cuMemcpyDtoH_v2(&given, out, 8) == CUDA_SUCCESS);
  CHECK(given == 0);
}

TEST_CASE_FIXTURE(Fixture, "free in a kernel takes the heap memory of its own context alone") {
  const CUdeviceptr out = allocate(8);
  REQUIRE(launch("allocate", 1, 1, nullptr, out, std::uint64_t{1000}) == CUDA_SUCCESS);
  CUdeviceptr given = 0;
  REQUIRE(cu.cuMemcpyDtoH_v2(&given, out, 8) == CUDA_SUCCESS);
  REQUIRE(given != 0);
  {
    const Fixture other;
    REQUIRE(other.launch("release", 1, 1, nullptr, given) == CUDA_SUCCESS);
    CHECK(cu.cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED);
  }
  REQUIRE(cu.cuCtxSetCurrent(context) == CUDA_SUCCESS);
  REQUIRE(launch("release", 1, 1, nullptr, given) == CUDA_SUCCESS);
  CHECK(cu.cuCtxSynchronize() == CUDA_SUCCESS);
  REQUIRE(launch("release", 1, 1, nullptr, given) == CUDA_SUCCESS);
  CHECK(cu.cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED);  // the context is lost
}

TEST_CASE_FIXTURE(Fixture, "after fork the driver is not initialised, but it tells its version") {
  const pid_t child = ::fork();
  if (child == 0) {
    CUcontext current = nullptr;
    int count = 0, version = 0;
    const bool refused = cu.cuDriverGetVersion(&version) == CUDA_SUCCESS && version == 13040 &&
                         cu.cuDriverGetVersion(nullptr) == CUDA_ERROR_INVALID_VALUE &&
                         cu.cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                         cu.cuCtxGetCurrent(&current) == CUDA_ERROR_NOT_INITIALIZED &&
                         cu.cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                         cu.cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED;
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(cu.cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "module variables have their values and addresses") {
  CUdeviceptr counter = 0, pointer = 0;
  std::size_t bytes = 0;
  REQUIRE(cu.cuModuleGetGlobal_v2(&counter, &bytes, module, "counter") == CUDA_SUCCESS);
  CHECK(bytes == 4);
  REQUIRE(cu.cuModuleGetGlobal_v2(&pointer, nullptr, module, "pointer") == CUDA_SUCCESS);
  std::uint32_t value = 0;
  CUdeviceptr target = 0;
  REQUIRE(cu.cuMemcpyDtoH_v2(&value, counter, 4) == CUDA_SUCCESS);
  REQUIRE(cu.cuMemcpyDtoH_v2(&target, pointer, 8) == CUDA_SUCCESS);
  CHECK(value == 7);
  CHECK(target == counter);
  CHECK(cu.cuModuleGetGlobal_v2(&counter, &bytes, module, "nothing") == CUDA_ERROR_NOT_FOUND);
}

// The benchmarks measure how long this takes.
TEST_CASE_FIXTURE(Fixture, "two thousand launches, each waited for, all end") {
  const CUfunction empty = function("empty");
  for (int i = 0; i < 2000; ++i) {
    REQUIRE(cu.cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
    REQUIRE(cu.cuCtxSynchronize() == CUDA_SUCCESS);
  }
}
