// SPDX-License-Identifier: Apache-2.0
// What a device says beside results: messages and device printf.
#pragma once

#include <string_view>

#include "driver/cpu_plugin.h"

namespace quern::driver {

/// Messages and prints of the plug-in go to the program's handlers from now on, where it has set some.
void take_output(const QuernCpuPlugin& plugin) noexcept;

/// A session on this device is opened whose driver prints to stdout whatever handler is set: once in a
/// process a warning says so, if there is a handler, now or later.
void note_own_stdout(std::string_view device);

}  // namespace quern::driver
