// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace quern::cpu::device {

/// In programs that `quern exec` runs: logs, once for each library, that the one with the code address
/// `caller` asked for private tables of NVIDIA's driver, which this device does not have. Never throws.
void report_private_table(const void* caller) noexcept;

}  // namespace quern::cpu::device
