// SPDX-License-Identifier: Apache-2.0
#include "suite.hpp"

using namespace quern::conformance;

namespace {

int sm_count() {
  int count = 0;
  REQUIRE(cu().cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0) == CUDA_SUCCESS);
  return count;
}

/// The more threads, the more shared memory: from 129 threads on a block does not fit.
std::size_t steep(int threads) { return threads > 128 ? std::size_t{1} << 20 : 0; }

}  // namespace

TEST_CASE_FIXTURE(Fixture, "active blocks follow threads and shared memory") {
  int blocks = 0;
  const auto with_flags = CU(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
  const CUfunction saxpy = function("saxpy");
  CHECK(with_flags(&blocks, saxpy, 512, 0, CU_OCCUPANCY_DEFAULT) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(blocks == 3);  // 1,536 threads on a multiprocessor of compute capability 8.9
  CHECK(with_flags(&blocks, saxpy, 512, 40 << 10, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(blocks == 2);  // of 41 KiB in 100 KiB
  CHECK(with_flags(&blocks, saxpy, 512, 0, 99) == CUDA_ERROR_INVALID_VALUE);
  CHECK(with_flags(nullptr, saxpy, 512, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(with_flags(&blocks, saxpy, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  if (is_cpu()) CHECK(with_flags(&blocks, nullptr, 32, 0, 0) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE_FIXTURE(Fixture, "the potential block size has the most threads on a multiprocessor") {
  int grid = 0, block = 0;
  const auto potential = CU(cuOccupancyMaxPotentialBlockSize);
  REQUIRE(potential(&grid, &block, function("saxpy"), nullptr, 0, 0) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(block == 768);  // twice that are 1,536; of 1,024 only one block fits
  if (is_cpu()) CHECK(grid == 2 * sm_count());
  REQUIRE(potential(&grid, &block, function("saxpy"), nullptr, 0, 100) == CUDA_SUCCESS);
  CHECK(block <= 100);
  REQUIRE(potential(&grid, &block, function("at_most_64"), nullptr, 0, 0) == CUDA_SUCCESS);
  CHECK(block <= 64);
  REQUIRE(CU(cuOccupancyMaxPotentialBlockSizeWithFlags)(&grid, &block, function("saxpy"), &steep, 0, 0, 0) ==
          CUDA_SUCCESS);
  CHECK(block <= 128);
  CHECK(potential(nullptr, &block, function("saxpy"), nullptr, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(potential(&grid, &block, function("saxpy"), nullptr, 0, -1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "dynamic shared memory that leaves room for so many blocks") {
  std::size_t bytes = 0;
  const auto available = CU(cuOccupancyAvailableDynamicSMemPerBlock);
  REQUIRE(available(&bytes, function("saxpy"), 1, 128) == CUDA_SUCCESS);
  CHECK(bytes == 48 << 10);
  REQUIRE(available(&bytes, function("saxpy"), 4, 128) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(bytes == 24 << 10);  // a quarter of 100 KiB, less the 1 KiB of each block
  CHECK(available(&bytes, function("saxpy"), 9, 512) == CUDA_ERROR_INVALID_VALUE);  // so many do not fit
  CHECK(available(nullptr, function("saxpy"), 1, 128) == CUDA_ERROR_INVALID_VALUE);
  CHECK(available(&bytes, function("saxpy"), 0, 128) == CUDA_ERROR_INVALID_VALUE);
  CHECK(available(&bytes, function("saxpy"), 1, 0) == CUDA_ERROR_INVALID_VALUE);
}
