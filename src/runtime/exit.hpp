// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace quern::runtime {

/// Arranges that process_is_exiting() turns true before libraries loaded so far are torn down. Called after a
/// driver is opened.
void watch_process_exit() noexcept;

/// True once the process runs its exit handlers: from then on nothing is released any more, since the driver
/// may be gone.
bool process_is_exiting() noexcept;

}  // namespace quern::runtime
