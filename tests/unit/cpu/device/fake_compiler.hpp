// SPDX-License-Identifier: Apache-2.0
// A compiler for tests. It reads only the name of a kernel; its "machine code" is a C++ function.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "driver/driver_table.hpp"

namespace quern::test {

/// PTX that declares the fake's kernels. The text describes their parameters.
extern const char* const kKernels;

/// The number of calls of compile_image().
std::uint64_t compile_count();

/// Each call of compile_image() takes at least this long from now on.
void delay_compiler(std::chrono::milliseconds time);

/// From now on calls of compile_image() wait until `count` of them have begun, but no longer than ten
/// seconds.
void gather_compilers(int count);
/// The most calls of compile_image() that were in progress at once since gather_compilers().
int most_compilers();

/// PTX of kernels that are long enough for quick code. They store the tier of their code at the address that
/// is their parameter, 1 for quick code, 2 for good code: `tiers`; `tiers_calls`, which calls a
/// function; others as their names say.
std::string tiers_text();
/// While it is held, good code of these kernels is not finished, but for at most ten seconds.
void hold_good_code(bool held);

/// The functions of a device that has two workers and was initialised.
const driver::DriverTable& table();

/// As many calls of load_image() fail from now on, as if machine code could not be mapped.
void refuse_memory(int times);

}  // namespace quern::test
