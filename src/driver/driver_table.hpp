// SPDX-License-Identifier: Apache-2.0
// The CUDA Driver API as a value. Everything above works over a DriverTable and never calls cu* by
// name.
#pragma once

#include <cuda.h>

namespace quern::driver {

/// One slot a row of functions.def, in that order, each of the type of cuda.h's declaration. A slot that a
/// driver lacks is filled with a function that answers CUDA_ERROR_NOT_SUPPORTED: no slot is ever null. Plain
/// data; copy freely.
struct DriverTable {
#define QUERN_DRIVER_FUNCTION(name, ...) decltype(&::name) name = nullptr;
#include "driver/functions.def"
};

/// A table whose every function returns CUDA_ERROR_NOT_SUPPORTED.
DriverTable unsupported_table() noexcept;

}  // namespace quern::driver
