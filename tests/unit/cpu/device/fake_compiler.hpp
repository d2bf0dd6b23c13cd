// SPDX-License-Identifier: Apache-2.0
// A compiler for tests: it reads nothing but a kernel's name, and its "machine code" is a C++ function.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "driver/driver_table.hpp"

namespace quern::test {

/// PTX that declares the fake's kernels. Their text describes their parameters.
extern const char* const kKernels;

/// The number of calls of compile_image().
std::uint64_t compile_count();

/// The device's functions, of a device with two workers that has been initialised.
const driver::DriverTable& table();

/// That many calls of load_image() fail from now on, as if machine code could not be mapped.
void refuse_memory(int times);

}  // namespace quern::test
