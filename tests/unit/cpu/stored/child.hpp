// SPDX-License-Identifier: Apache-2.0
// A process that loads PTX and launches a kernel of it on the device.
#pragma once

namespace quern::test {

/// `library`: the device. Scenarios: "fill", "stray", "cancel", "limit"; each is one kernel. Prints a line
/// "name value" for each observation, and the device's counters. Returns the exit status.
int run_child(const char* library, const char* scenario, unsigned block);

}  // namespace quern::test
