// SPDX-License-Identifier: Apache-2.0
// NVRTC opens a temporary file where it uses a precompiled header: backing for its heap, which it maps
// privately. Behind the sandbox nothing can be created, so that system call is trapped, and its handler
// answers with a file in memory that was made before, of fixed size.
#pragma once

#include <cstdint>

namespace quern::serve {

/// The folder to be named in TMPDIR. There is none of that name.
inline constexpr const char* kTemporaryFolder = "/quern-temporary";

/// Makes the file. Without it, opening one fails with EPERM.
bool make_temporary_file(std::uint64_t bytes);

/// From now on trapped system calls (SIGSYS of seccomp) that open or remove files below kTemporaryFolder
/// succeed, and all others fail with EPERM.
bool handle_trapped_calls();

}  // namespace quern::serve
