// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace quern::conformance {

/// PTX written by hand; the comments there say what each kernel does.
extern const char* const kKernels;

/// Only the first lines of a module.
extern const char* const kEmptyModule;

/// Kernels that wait: `spin` for the host, `meet` for every block of the grid, `abandoned` for a block that
/// traps.
extern const char* const kWaitingModule;

}  // namespace quern::conformance
