// SPDX-License-Identifier: Apache-2.0
#include "driver/failing_table.hpp"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

using namespace quern::driver;

namespace {
DriverTable working_table() {
  DriverTable table = unsupported_table();
  table.cuInit = [](unsigned) { return CUDA_SUCCESS; };
  table.cuMemFree_v2 = [](CUdeviceptr p) { return p == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; };
  return table;
}
}  // namespace

TEST_CASE("calls reach the decorated table with their arguments") {
  const FailingTable failing(working_table());
  const DriverTable table = failing.table();
  CHECK(table.cuInit(0) == CUDA_SUCCESS);
  CHECK(table.cuMemFree_v2(0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(table.cuMemFree_v2(8) == CUDA_SUCCESS);
  CHECK(failing.call_count() == 3);
  CHECK(failing.call_count("cuMemFree_v2") == 2);
  CHECK(failing.trace() == std::vector<std::string>{"cuInit", "cuMemFree_v2", "cuMemFree_v2"});
}

TEST_CASE("the n-th call of any function fails once") {
  FailingTable failing(working_table());
  const DriverTable table = failing.table();
  REQUIRE(failing.fail_call(2, CUDA_ERROR_ILLEGAL_ADDRESS));
  CHECK(table.cuInit(0) == CUDA_SUCCESS);
  CHECK(table.cuMemFree_v2(8) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(table.cuMemFree_v2(8) == CUDA_SUCCESS);
}

TEST_CASE("the n-th call of one function fails, others do not count") {
  FailingTable failing(working_table());
  const DriverTable table = failing.table();
  REQUIRE(failing.fail_call(2, CUDA_ERROR_OUT_OF_MEMORY, "cuMemFree_v2"));
  CHECK(table.cuInit(0) == CUDA_SUCCESS);
  CHECK(table.cuInit(0) == CUDA_SUCCESS);
  CHECK(table.cuMemFree_v2(8) == CUDA_SUCCESS);
  CHECK(table.cuMemFree_v2(8) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_FALSE(failing.fail_call(1, CUDA_ERROR_UNKNOWN, "cuNoSuchFunction"));
}

TEST_CASE("cleared failures do not happen") {
  FailingTable failing(working_table());
  REQUIRE(failing.fail_call(1, CUDA_ERROR_UNKNOWN));
  failing.clear_failures();
  CHECK(failing.table().cuInit(0) == CUDA_SUCCESS);
}

TEST_CASE("a table that outlives its decorator answers DEINITIALIZED") {
  DriverTable table;
  {
    const FailingTable failing(working_table());
    table = failing.table();
  }
  CHECK(table.cuInit(0) == CUDA_ERROR_DEINITIALIZED);
}

TEST_CASE("calls from several threads are all counted") {
  const FailingTable failing(working_table());
  const DriverTable table = failing.table();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&table] {
      for (int i = 0; i < 1000; ++i) table.cuInit(0);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(failing.call_count("cuInit") == 4000);
}
