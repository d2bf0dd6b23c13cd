// SPDX-License-Identifier: Apache-2.0
// Messages and printf output of devices.
#pragma once

#include <string_view>

#include "driver/cpu_plugin.h"

namespace quern::driver {

/// From now on the handlers of the program receive the messages and the printf output of the plug-in.
void take_output(const QuernCpuPlugin& plugin) noexcept;

/// Call when a session is opened on a device whose driver itself writes printf output to stdout. If a handler
/// is set, now or later, one warning in a process says that it does not receive that output.
void note_own_stdout(std::string_view device);

}  // namespace quern::driver
