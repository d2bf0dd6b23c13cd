// SPDX-License-Identifier: Apache-2.0
// The driver under test: the CPU device's, or the system's with a GPU.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "driver/driver_table.hpp"
#include "generate.hpp"
#include "quern/expected.hpp"

namespace quern::oracle {

/// A call that failed, or a result that differs.
struct Failure {
  std::string what;
};

/// Throws Failure unless the call succeeded.
void must(CUresult result, const char* call);

/// Loads a device, "cpu" or "cuda", and makes its primary context current. The result has no value if there
/// is no such device; throws Failure if it does not start.
Expected<driver::DriverTable> open_device(const std::string& name);

struct DeviceLaunch {
  const std::string& ptx;
  Extents grid, block;
  bool optimised;
};

/// Loads the PTX and runs its kernel "k", whose parameters are the addresses of `input` and `output` and, if
/// it has a third, a zero. The device's memory for `output` begins as `output` is. Throws Failure.
void run_kernel(const driver::DriverTable& table, const DeviceLaunch& launch,
                std::span<const std::byte> input, std::span<std::byte> output);

}  // namespace quern::oracle
