// SPDX-License-Identifier: Apache-2.0
#include "quern/native.hpp"

#include "runtime/device/driver.hpp"

namespace quern {

void* driver_function(const Device& device, std::string_view name) noexcept {
  const driver::DriverTable& api = device.state()->driver->api;
#define QUERN_DRIVER_FUNCTION(function, ...) \
  if (name == #function) return reinterpret_cast<void*>(api.function);
#include "driver/functions.def"
  return nullptr;
}

}  // namespace quern
