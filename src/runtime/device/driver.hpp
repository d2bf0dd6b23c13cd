// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "driver/check.hpp"
#include "driver/cpu_plugin.h"
#include "driver/driver_table.hpp"
#include "quern/device.hpp"

namespace quern::runtime {

/// An initialised driver: its table and its library. Immutable, shared by all its callers. The library is
/// never closed: threads of the driver may outlive the last of our objects.
struct Driver {
  driver::DriverTable api;
  DeviceKind kind = DeviceKind::cpu;
  std::string path;
  int version = 0;
  const QuernCpuPlugin* plugin = nullptr;  ///< null for libcuda

  void check(CUresult result, std::string_view call, std::string_view attempted) const {
    if (result != CUDA_SUCCESS) [[unlikely]]
      driver::fail(api, result, call, attempted, driver::current_fault(plugin));
  }
};

/// cuInit and cuDriverGetVersion. Throws DriverError, for a machine without a device as well.
std::shared_ptr<const Driver> initialise(Driver driver);

/// A device and its attributes, read once.
struct DeviceState {
  std::shared_ptr<const Driver> driver;
  CUdevice handle = 0;
  int ordinal = 0;
  std::string name;
  std::size_t total_memory_bytes = 0;
  int compute_capability = 0;
  int multiprocessor_count = 0;
  int warp_size = 0;
  std::uint32_t max_threads_per_block = 0;
  std::array<std::uint32_t, 3> max_block{};
  std::array<std::uint32_t, 3> max_grid{};
  std::size_t shared_bytes_per_block = 0;
  std::size_t max_shared_bytes_per_block = 0;
  bool cooperative_launch = false;
};

int device_count(const Driver& driver);
/// `ordinal` is below device_count().
Device open_device(std::shared_ptr<const Driver> driver, int ordinal);

}  // namespace quern::runtime
