// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace quern::conformance {

/// PTX written by hand; kernels.cpp says what each kernel does.
extern const char* const kKernels;

/// Only the first lines of a module.
extern const char* const kEmptyModule;

/// A kernel that waits for the host: `spin`. By itself, because a device may refuse it.
extern const char* const kSpinModule;

}  // namespace quern::conformance
