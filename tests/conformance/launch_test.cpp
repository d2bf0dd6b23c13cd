// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "kernels.hpp"
#include "suite.hpp"

using namespace quern::conformance;

TEST_CASE_FIXTURE(Fixture, "saxpy computes what the host computes, for sizes around a warp and a block") {
  for (const unsigned n : {1u, 31u, 32u, 33u, 255u, 256u, 257u, 10000u}) {
    CAPTURE(n);
    std::vector<float> x(n), y(n), expected(n);
    for (unsigned i = 0; i < n; ++i) {
      x[i] = static_cast<float>(i) * 0.25f;
      y[i] = 1.0f / static_cast<float>(i + 1);
      expected[i] = std::fma(3.5f, x[i], y[i]);
    }
    const CUdeviceptr device_x = upload(x), device_y = upload(y);
    REQUIRE(launch("saxpy", (n + 255) / 256, 256, nullptr, n, 3.5f, device_x, device_y) == CUDA_SUCCESS);
    CHECK(download<float>(device_y, n) == expected);
  }
}

TEST_CASE_FIXTURE(Fixture, "threads of a block share memory and meet at barriers") {
  const CUdeviceptr out = allocate(100 * 64 * 4);
  REQUIRE(launch("reverse", 100, 64, nullptr, out) == CUDA_SUCCESS);
  const auto host = download<std::uint32_t>(out, 6400);
  std::size_t wrong = 0;
  for (std::uint32_t i = 0; i < 6400; ++i) wrong += host[i] != i / 64 * 64 + (63 - i % 64);
  CHECK(wrong == 0);
}

TEST_CASE_FIXTURE(Fixture, "grids and blocks have three dimensions") {
  const CUdeviceptr out = allocate(8 * 12 * 4);
  CUdeviceptr argument = out;
  void* parameters[] = {&argument};
  REQUIRE(cu().cuLaunchKernel(function("shape"), 2, 2, 2, 2, 3, 2, 0, nullptr, parameters, nullptr) ==
          CUDA_SUCCESS);
  const auto host = download<std::uint32_t>(out, 96);
  std::size_t wrong = 0;
  for (std::uint32_t block = 0; block < 8; ++block)
    for (std::uint32_t thread = 0; thread < 12; ++thread)
      wrong +=
          host[block * 12 + thread] != thread % 2 + 10 * (thread / 2 % 3) + 100 * (thread / 6) + 1000 * block;
  CHECK(wrong == 0);
}

TEST_CASE_FIXTURE(Fixture, "every thread of a large grid runs once") {
  const CUdeviceptr counter = allocate(4);
  REQUIRE(cu().cuMemsetD8_v2(counter, 0, 4) == CUDA_SUCCESS);
  REQUIRE(launch("count", 10007, 96, nullptr, counter) == CUDA_SUCCESS);
  CHECK(download<std::uint32_t>(counter, 1)[0] == 10007u * 96u);
}

TEST_CASE_FIXTURE(Fixture, "parameters of all sizes arrive, as pointers and packed") {
  const CUdeviceptr out = allocate(40);
  const auto expect_values = [&] {
    const auto host = download<std::uint64_t>(out, 5);
    double number = 0;
    std::memcpy(&number, &host[3], 8);
    CHECK(host[0] == 200);
    CHECK(host[1] == 60000);
    CHECK(host[2] == 4000000000u);
    CHECK(number == 0.125);
    CHECK(host[4] == 7);
    REQUIRE(cu().cuMemsetD8_v2(out, 0, 40) == CUDA_SUCCESS);
  };
  REQUIRE(launch("many_parameters", 1, 1, nullptr, out, std::uint8_t{200}, std::uint16_t{60000},
                 std::uint32_t{4000000000u}, 0.125, std::uint8_t{7}) == CUDA_SUCCESS);
  expect_values();
  struct {
    CUdeviceptr out;
    std::uint8_t a;
    std::uint16_t b;
    std::uint32_t c;
    double d;
    std::uint8_t e;
  } packed{out, 200, 60000, 4000000000u, 0.125, 7};
  std::size_t size = 25;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  const auto launch_packed = [&](std::size_t bytes) {
    size = bytes;
    return cu().cuLaunchKernel(function("many_parameters"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra);
  };
  REQUIRE(launch_packed(25) == CUDA_SUCCESS);
  expect_values();
  CHECK(launch_packed(sizeof packed) == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);  // longer than the parameters
  CHECK(launch_packed(24) == CUDA_SUCCESS);                                   // the last one lacks
  CHECK(launch_packed(0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "launches beyond the limits are refused and change nothing") {
  const CUfunction empty = function("empty");
  const auto launch_as = [&](unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                             unsigned shared) {
    return cu().cuLaunchKernel(empty, gx, gy, gz, bx, by, bz, shared, nullptr, nullptr, nullptr);
  };
  CHECK(launch_as(1, 1, 1, 1024, 1, 1, 0) == CUDA_SUCCESS);
  CHECK(launch_as(1, 65535, 1, 1, 1, 1, 0) == CUDA_SUCCESS);
  for (const CUresult result :
       {launch_as(0, 1, 1, 1, 1, 1, 0), launch_as(1, 1, 0, 1, 1, 1, 0), launch_as(1, 65536, 1, 1, 1, 1, 0),
        launch_as(1, 1, 65536, 1, 1, 1, 0), launch_as(1, 1, 1, 0, 1, 1, 0), launch_as(1, 1, 1, 1025, 1, 1, 0),
        launch_as(1, 1, 1, 1, 1, 65, 0), launch_as(1, 1, 1, 32, 32, 2, 0),
        launch_as(1, 1, 1, 1, 1, 1, 49153)})
    CHECK(result == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch("at_most_64", 1, 64, nullptr) == CUDA_SUCCESS);
  CHECK(launch("at_most_64", 1, 65, nullptr) != CUDA_SUCCESS);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "more dynamic shared memory is had by asking first") {
  int optin = 0;
  REQUIRE(cu().cuDeviceGetAttribute(&optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0) ==
          CUDA_SUCCESS);
  const CUfunction empty = function("empty");
  const auto with_shared = [&](int bytes) {
    return cu().cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, static_cast<unsigned>(bytes), nullptr, nullptr,
                               nullptr);
  };
  CHECK(with_shared(optin) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cu().cuFuncSetAttribute(empty, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, optin) ==
          CUDA_SUCCESS);
  CHECK(with_shared(optin) == CUDA_SUCCESS);
  CHECK(cu().cuFuncSetAttribute(empty, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, optin + 1) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "cuLaunchKernelEx launches as cuLaunchKernel does") {
  const CUdeviceptr counter = allocate(4);
  REQUIRE(cu().cuMemsetD8_v2(counter, 0, 4) == CUDA_SUCCESS);
  CUlaunchConfig config{};
  config.gridDimX = 5;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 40;
  config.blockDimY = config.blockDimZ = 1;
  CUdeviceptr argument = counter;
  void* parameters[] = {&argument};
  REQUIRE(cu().cuLaunchKernelEx(&config, function("count"), parameters, nullptr) == CUDA_SUCCESS);
  CHECK(download<std::uint32_t>(counter, 1)[0] == 200);
  CHECK(cu().cuLaunchKernelEx(nullptr, function("count"), parameters, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "blocks of a cooperative launch wait for each other, as many as fit") {
  CUmodule waiting = nullptr;
  CUfunction meet = nullptr;
  REQUIRE(cu().cuModuleLoadData(&waiting, kWaitingModule) == CUDA_SUCCESS);
  REQUIRE(cu().cuModuleGetFunction(&meet, waiting, "meet") == CUDA_SUCCESS);
  int processors = 0, each = 0;
  REQUIRE(cu().cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0) ==
          CUDA_SUCCESS);
  REQUIRE(cu().cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, meet, 96, 0) == CUDA_SUCCESS);
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  CUlaunchConfig config{};
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 96;
  config.attrs = &attribute;
  config.numAttrs = 1;
  const auto most = static_cast<unsigned>(processors * each);
  for (const unsigned blocks : {1u, 2u, 7u, most}) {
    CAPTURE(blocks);
    CUdeviceptr words = allocate((1 + blocks) * 4);
    REQUIRE(cu().cuMemsetD32_v2(words, 0, 1 + blocks) == CUDA_SUCCESS);
    void* parameters[] = {&words};
    config.gridDimX = blocks;
    REQUIRE(cu().cuLaunchKernelEx(&config, meet, parameters, nullptr) == CUDA_SUCCESS);
    for (const std::uint32_t word : download<std::uint32_t>(words, 1 + blocks)) REQUIRE(word == blocks * 96);
  }
  config.gridDimX = most + 1;
  void* parameters[] = {nullptr};
  CUdeviceptr none = 0;
  parameters[0] = &none;
  CHECK(cu().cuLaunchKernelEx(&config, meet, parameters, nullptr) == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

TEST_CASE_FIXTURE(Fixture, "blocks that fit on the device at once may wait for each other in any launch") {
  CUmodule waiting = nullptr;
  CUfunction meet = nullptr;
  REQUIRE(cu().cuModuleLoadData(&waiting, kWaitingModule) == CUDA_SUCCESS);
  REQUIRE(cu().cuModuleGetFunction(&meet, waiting, "meet") == CUDA_SUCCESS);
  CUdeviceptr words = allocate(11 * 4);
  REQUIRE(cu().cuMemsetD32_v2(words, 0, 11) == CUDA_SUCCESS);
  void* parameters[] = {&words};
  REQUIRE(cu().cuLaunchKernel(meet, 10, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr) == CUDA_SUCCESS);
  for (const std::uint32_t word : download<std::uint32_t>(words, 11)) REQUIRE(word == 640);
}

TEST_CASE_FIXTURE(Fixture, "recursion to a moderate depth works") {
  const CUdeviceptr out = allocate(4);
  REQUIRE(cu().cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 16384) == CUDA_SUCCESS);
  REQUIRE(launch("recurse", 1, 32, nullptr, out, 100u) == CUDA_SUCCESS);
  CHECK(download<std::uint32_t>(out, 1)[0] == 5050);
}

TEST_CASE_FIXTURE(Fixture, "the deprecated functions set a launch bit by bit") {
  const CUfunction saxpy = function("saxpy");
  const CUdeviceptr x = upload<float>({1, 2, 3, 4, 5}), y = upload<float>({10, 20, 30, 40, 50});
  if (is_cpu()) CHECK(CU(cuLaunch)(saxpy) == CUDA_ERROR_INVALID_VALUE);  // no block shape yet
  CHECK(CU(cuFuncSetBlockShape)(saxpy, 64, 1, 1) == CUDA_SUCCESS);
  CHECK(CU(cuFuncSetSharedSize)(saxpy, 0) == CUDA_SUCCESS);
  CHECK(CU(cuParamSetSize)(saxpy, 24) == CUDA_SUCCESS);
  CHECK(CU(cuParamSeti)(saxpy, 0, 4) == CUDA_SUCCESS);
  CHECK(CU(cuParamSetf)(saxpy, 4, 2.0f) == CUDA_SUCCESS);
  CUdeviceptr pointers[] = {x, y};
  CHECK(CU(cuParamSetv)(saxpy, 8, pointers, sizeof pointers) == CUDA_SUCCESS);
  REQUIRE(CU(cuLaunch)(saxpy) == CUDA_SUCCESS);
  CHECK(download<float>(y, 5) == std::vector<float>{12, 24, 36, 48, 50});
  REQUIRE(CU(cuLaunchGrid)(saxpy, 1, 1) == CUDA_SUCCESS);
  REQUIRE(CU(cuLaunchGridAsync)(saxpy, 1, 1, stream(CU_STREAM_DEFAULT)) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(download<float>(y, 5) == std::vector<float>{16, 32, 48, 64, 50});
  CHECK(CU(cuLaunchGrid)(saxpy, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  if (is_cpu()) {
    CHECK(CU(cuFuncSetBlockShape)(saxpy, 2048, 1, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(CU(cuFuncSetBlockShape)(function("at_most_64"), 65, 1, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(CU(cuFuncSetSharedSize)(saxpy, 1 << 20) == CUDA_ERROR_INVALID_VALUE);
    CHECK(CU(cuParamSeti)(saxpy, -4, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(CU(cuParamSetSize)(saxpy, 1 << 20) == CUDA_ERROR_INVALID_VALUE);
    CHECK(CU(cuParamSeti)(nullptr, 0, 1) == CUDA_ERROR_INVALID_HANDLE);
  }
}

TEST_CASE_FIXTURE(Fixture, "cooperative launches: all blocks are there at one time, or none is") {
  CUmodule waiting = nullptr;
  REQUIRE(cu().cuModuleLoadData(&waiting, kWaitingModule) == CUDA_SUCCESS);
  CUfunction meet = nullptr;
  REQUIRE(cu().cuModuleGetFunction(&meet, waiting, "meet") == CUDA_SUCCESS);
  CUdeviceptr words = upload(std::vector<std::uint32_t>(3, 0));
  void* parameters[] = {&words};
  const CUstream its_stream = stream();
  REQUIRE(CU(cuLaunchCooperativeKernel)(meet, 2, 1, 1, 32, 1, 1, 0, its_stream, parameters) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamSynchronize(its_stream) == CUDA_SUCCESS);
  CHECK(download<std::uint32_t>(words, 3) == std::vector<std::uint32_t>{64, 64, 64});
  CHECK(CU(cuLaunchCooperativeKernel)(meet, 1 << 20, 1, 1, 1024, 1, 1, 0, nullptr, parameters) ==
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  if (!is_cpu()) return;  // GPUs need not have launches over several devices
  CUDA_LAUNCH_PARAMS one{meet, 2, 1, 1, 32, 1, 1, 0, its_stream, parameters};
  words = upload(std::vector<std::uint32_t>(3, 0));
  REQUIRE(CU(cuLaunchCooperativeKernelMultiDevice)(&one, 1, 0) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamSynchronize(its_stream) == CUDA_SUCCESS);
  CHECK(download<std::uint32_t>(words, 3) == std::vector<std::uint32_t>{64, 64, 64});
  one.hStream = nullptr;
  CHECK(CU(cuLaunchCooperativeKernelMultiDevice)(&one, 1, 0) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(CU(cuLaunchCooperativeKernelMultiDevice)(&one, 99, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuLaunchCooperativeKernelMultiDevice)(nullptr, 1, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "preferences of functions are accepted") {
  CHECK(CU(cuFuncSetCacheConfig)(function("saxpy"), CU_FUNC_CACHE_PREFER_SHARED) == CUDA_SUCCESS);
  CHECK(CU(cuFuncSetSharedMemConfig)(function("saxpy"), CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE) ==
        CUDA_SUCCESS);
  if (is_cpu())
    CHECK(CU(cuFuncSetCacheConfig)(nullptr, CU_FUNC_CACHE_PREFER_L1) == CUDA_ERROR_INVALID_HANDLE);
}
