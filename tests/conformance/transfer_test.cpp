// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "suite.hpp"

using namespace quern::conformance;

namespace {
std::vector<std::uint32_t> numbers(std::size_t count) {
  std::vector<std::uint32_t> result(count);
  std::iota(result.begin(), result.end(), 1u);
  return result;
}
}  // namespace

TEST_CASE_FIXTURE(Fixture, "what is copied up comes back, through another allocation too") {
  const auto host = numbers(100000);
  const CUdeviceptr first = upload(host);
  const CUdeviceptr second = allocate(400000);
  CHECK(cu().cuMemcpyDtoD_v2(second, first, 400000) == CUDA_SUCCESS);
  CHECK(download<std::uint32_t>(second, 100000) == host);
}

TEST_CASE_FIXTURE(Fixture, "copies beyond an allocation are refused") {
  const CUdeviceptr pointer = allocate(1024);
  std::vector<std::byte> host(4096);
  CHECK(cu().cuMemcpyHtoD_v2(pointer, host.data(), 0) == CUDA_SUCCESS);
  if (!is_cpu()) return;  // a GPU checks by its pages
  CHECK(cu().cuMemcpyHtoD_v2(pointer, host.data(), 1025) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemcpyDtoH_v2(host.data(), pointer + 1, 1024) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemcpyDtoD_v2(pointer, 0x1000, 16) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemcpyHtoD_v2(pointer, nullptr, 16) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuMemsetD8_v2(pointer, 1, 1025) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "fills set bytes and words") {
  const CUdeviceptr pointer = allocate(400);
  CHECK(cu().cuMemsetD32_v2(pointer, 0x01020304, 100) == CUDA_SUCCESS);
  CHECK(cu().cuMemsetD8_v2(pointer + 4, 0xff, 4) == CUDA_SUCCESS);
  const auto host = download<std::uint32_t>(pointer, 100);
  CHECK(host[0] == 0x01020304);
  CHECK(host[1] == 0xffffffff);
  CHECK(host[99] == 0x01020304);
  CHECK(cu().cuMemsetD32_v2(pointer + 2, 0, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "a copy waits for the launch before it") {
  const CUdeviceptr pointer = allocate(4 << 20);
  for (std::uint32_t round = 0; round < 20; ++round) {
    REQUIRE(launch("fill", 4096, 256, nullptr, pointer, 1u << 20, round) == CUDA_SUCCESS);
    const auto host = download<std::uint32_t>(pointer, 1 << 20);
    CHECK(host.front() == round);
    CHECK(host.back() == round);
  }
}

TEST_CASE_FIXTURE(Fixture, "copies on a stream keep their order with launches on it") {
  const CUstream on = stream();
  const CUdeviceptr pointer = allocate(4096);
  void* pinned = nullptr;
  REQUIRE(cu().cuMemHostAlloc(&pinned, 4096, 0) == CUDA_SUCCESS);
  auto* host = static_cast<std::uint32_t*>(pinned);
  REQUIRE(cu().cuMemsetD32Async(pointer, 1, 1024, on) == CUDA_SUCCESS);
  REQUIRE(launch("fill", 4, 128, on, pointer, 512u, 2u) == CUDA_SUCCESS);
  REQUIRE(cu().cuMemcpyDtoDAsync_v2(pointer + 1024 * 3, pointer, 1024, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuMemcpyDtoHAsync_v2(host, pointer, 4096, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  CHECK(host[0] == 2);
  CHECK(host[512] == 1);
  CHECK(host[768] == 2);
  CHECK(cu().cuMemFreeHost(pinned) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "ordinary memory may be reused once an asynchronous copy from it has returned") {
  const CUstream on = stream();
  const CUdeviceptr pointer = allocate(4096), target = allocate(4096);
  for (std::uint32_t round = 1; round < 50; ++round) {
    REQUIRE(launch("fill", 8, 128, on, target, 1024u, round) == CUDA_SUCCESS);
    std::vector<std::uint32_t> host(1024, round);
    REQUIRE(cu().cuMemcpyHtoDAsync_v2(pointer, host.data(), 4096, on) == CUDA_SUCCESS);
    host.assign(1024, 0);
    std::vector<std::uint32_t> back(1024);
    REQUIRE(cu().cuMemcpyDtoHAsync_v2(back.data(), pointer, 4096, on) == CUDA_SUCCESS);
    CHECK(back == std::vector<std::uint32_t>(1024, round));
  }
  CHECK(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
}
