// SPDX-License-Identifier: Apache-2.0
#include "driver/driver_table.hpp"

namespace quern::driver {
namespace {

/// A function of the slot's own type: calling through a cast pointer would be undefined.
template <class F>
struct Unsupported;
template <class... Args>
struct Unsupported<CUresult (*)(Args...)> {
  static CUresult call(Args...) { return CUDA_ERROR_NOT_SUPPORTED; }
};

}  // namespace

DriverTable unsupported_table() noexcept {
  DriverTable table;
#define QUERN_DRIVER_FUNCTION(name, ...) table.name = &Unsupported<decltype(table.name)>::call;
#include "driver/functions.def"
  return table;
}

}  // namespace quern::driver
