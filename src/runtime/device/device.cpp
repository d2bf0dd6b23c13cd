// SPDX-License-Identifier: Apache-2.0
#include "quern/device.hpp"

#include <fmt/format.h>

#include "runtime/device/driver.hpp"
#include "runtime/device/exit.hpp"

namespace quern {
namespace runtime {
namespace {

int attribute(const DeviceState& device, CUdevice_attribute which) {
  int value = 0;
  device.driver->check(device.driver->api.cuDeviceGetAttribute(&value, which, device.handle),
                       "cuDeviceGetAttribute", "read an attribute of the device");
  return value;
}

std::array<std::uint32_t, 3> extents(const DeviceState& device, std::array<CUdevice_attribute, 3> which) {
  std::array<std::uint32_t, 3> values{};
  for (std::size_t axis = 0; axis < 3; ++axis)
    values[axis] = static_cast<std::uint32_t>(attribute(device, which[axis]));
  return values;
}

void read_attributes(DeviceState& device) {
  device.compute_capability = 10 * attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                              attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  device.multiprocessor_count = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  device.warp_size = attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  device.max_threads_per_block =
      static_cast<std::uint32_t>(attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  device.max_block =
      extents(device, {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                       CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z});
  device.max_grid = extents(device, {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                                     CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z});
  device.shared_bytes_per_block =
      static_cast<std::size_t>(attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
  device.max_shared_bytes_per_block =
      static_cast<std::size_t>(attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  device.cooperative_launch = attribute(device, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) != 0;
}

}  // namespace

std::shared_ptr<const Driver> initialise(Driver driver) {
  driver.check(driver.api.cuInit(0), "cuInit", "start the driver of " + driver.path);
  driver.check(driver.api.cuDriverGetVersion(&driver.version), "cuDriverGetVersion",
               "query the driver's version");
  watch_process_exit();
  return std::make_shared<const Driver>(std::move(driver));
}

int device_count(const Driver& driver) {
  int count = 0;
  driver.check(driver.api.cuDeviceGetCount(&count), "cuDeviceGetCount", "count the devices");
  return count;
}

Device open_device(std::shared_ptr<const Driver> driver, int ordinal) {
  auto device = std::make_shared<DeviceState>();
  device->driver = std::move(driver);
  device->ordinal = ordinal;
  const driver::DriverTable& api = device->driver->api;
  device->driver->check(api.cuDeviceGet(&device->handle, ordinal), "cuDeviceGet",
                        fmt::format("open device {}", ordinal));
  char name[256] = {};
  device->driver->check(api.cuDeviceGetName(name, sizeof name, device->handle), "cuDeviceGetName",
                        "query the device's name");
  device->name = name;
  device->driver->check(api.cuDeviceTotalMem_v2(&device->total_memory_bytes, device->handle),
                        "cuDeviceTotalMem_v2", "query the device's memory");
  read_attributes(*device);
  return Device(std::move(device));
}

}  // namespace runtime

DeviceKind Device::kind() const noexcept { return state_->driver->kind; }
int Device::ordinal() const noexcept { return state_->ordinal; }
std::string Device::label() const {
  if (kind() == DeviceKind::cuda) return fmt::format("cuda:{}", ordinal());
  return ordinal() == 0 ? std::string("cpu") : fmt::format("cpu:{}", ordinal());
}
const std::string& Device::name() const noexcept { return state_->name; }
int Device::compute_capability() const noexcept { return state_->compute_capability; }
int Device::driver_version() const noexcept { return state_->driver->version; }
std::size_t Device::total_memory_bytes() const noexcept { return state_->total_memory_bytes; }
int Device::multiprocessor_count() const noexcept { return state_->multiprocessor_count; }
int Device::warp_size() const noexcept { return state_->warp_size; }
std::uint32_t Device::max_threads_per_block() const noexcept { return state_->max_threads_per_block; }
std::array<std::uint32_t, 3> Device::max_block() const noexcept { return state_->max_block; }
std::array<std::uint32_t, 3> Device::max_grid() const noexcept { return state_->max_grid; }
std::size_t Device::shared_bytes_per_block() const noexcept { return state_->shared_bytes_per_block; }
std::size_t Device::max_shared_bytes_per_block() const noexcept { return state_->max_shared_bytes_per_block; }
bool Device::cooperative_launch() const noexcept { return state_->cooperative_launch; }
const std::string& Device::driver_path() const noexcept { return state_->driver->path; }

}  // namespace quern
