// SPDX-License-Identifier: Apache-2.0
#include "driver/check.hpp"

#include <doctest/doctest.h>

using namespace quern;

namespace {
driver::DriverTable named_table() {
  driver::DriverTable table = driver::unsupported_table();
  table.cuGetErrorName = [](CUresult result, const char** name) {
    *name = result == CUDA_ERROR_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : nullptr;
    return *name != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  table.cuGetErrorString = [](CUresult, const char** text) {
    *text = "invalid argument";
    return CUDA_SUCCESS;
  };
  table.cuMemGetInfo_v2 = [](std::size_t* free_bytes, std::size_t* total_bytes) {
    *free_bytes = 100;
    *total_bytes = 1000;
    return CUDA_SUCCESS;
  };
  return table;
}
}  // namespace

TEST_CASE("success passes") { driver::check(named_table(), CUDA_SUCCESS, "cuInit", "start the driver"); }

TEST_CASE("a failed call says what was attempted, the call, the result and the driver's sentence") {
  try {
    driver::check(named_table(), CUDA_ERROR_INVALID_VALUE, "cuMemFree_v2", "free 0x10");
    FAIL("no exception");
  } catch (const DriverError& error) {
    CHECK(error.result() == 1);
    CHECK(error.result_name() == "CUDA_ERROR_INVALID_VALUE");
    CHECK(error.call() == "cuMemFree_v2");
    CHECK(error.code() == ErrorCode::driver);
    CHECK(std::string(error.what()) ==
          "cannot free 0x10: cuMemFree_v2 answered CUDA_ERROR_INVALID_VALUE (invalid argument)");
  }
}

TEST_CASE("out of memory carries the sizes and advice") {
  try {
    driver::check_allocation(named_table(), CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc_v2", "allocate 500 bytes",
                             500);
    FAIL("no exception");
  } catch (const OutOfMemory& error) {
    CHECK(error.code() == ErrorCode::out_of_memory);
    CHECK(error.requested_bytes() == 500);
    CHECK(error.free_bytes() == 100);
    CHECK(error.total_bytes() == 1000);
    CHECK(std::string(error.what()).find("100 of 1000 bytes are free") != std::string::npos);
  }
}

TEST_CASE("out of memory through check is OutOfMemory too") {
  CHECK_THROWS_AS(driver::check(named_table(), CUDA_ERROR_OUT_OF_MEMORY, "cuModuleLoadData", "load"),
                  OutOfMemory);
}

TEST_CASE("faults of a kernel are device faults") {
  for (const CUresult result : {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_ASSERT,
                                CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_LAUNCH_FAILED})
    CHECK(driver::error_code(result) == ErrorCode::device_fault);
}

TEST_CASE("the message of a fault says that a new session recovers") {
  try {
    driver::check(named_table(), CUDA_ERROR_ILLEGAL_ADDRESS, "cuCtxSynchronize", "wait");
    FAIL("no exception");
  } catch (const DriverError& error) {
    CHECK(std::string(error.what()).find("; open a new session") != std::string::npos);
  }
}

TEST_CASE("a result without a name is given as a number") {
  CHECK(driver::result_name(named_table(), CUDA_ERROR_UNKNOWN) == "CUresult 999");
}
