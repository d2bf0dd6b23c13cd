// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "cpu/device/driver.hpp"
#include "cpu/device/objects.hpp"

namespace quern::cpu::device {

struct LaunchRequest {
  std::uint32_t grid[3]{1, 1, 1};
  std::uint32_t block[3]{1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  CUstream stream = nullptr;
  void** parameters = nullptr;  ///< one pointer a parameter, or null
  void** extra = nullptr;       ///< CU_LAUNCH_PARAM_*, or null
};

/// Checks everything that can be checked before the kernel runs, copies the parameters, and queues the
/// launch. Throws Failure.
void launch(Driver& driver, CUfunction function, const LaunchRequest& request);

/// Generates the code that launch() would for this block shape and a small grid. Throws Failure.
void prepare(Driver& driver, CUfunction function, const std::uint32_t (&block)[3]);

/// Sets the time limit for launches of this thread from now on, in ns; 0: the device's own limit applies.
void set_launch_limit(std::uint64_t nanoseconds) noexcept;

}  // namespace quern::cpu::device
