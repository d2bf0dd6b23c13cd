// SPDX-License-Identifier: Apache-2.0
// The process that compiles: started by the server with nothing but a socket, it loads NVRTC, gives up what
// compiling does not need, and answers one request after the other.
#pragma once

#include <cstdint>

namespace quern::serve {

/// The descriptor of the worker's socket.
inline constexpr int kWorkerSocket = 3;

/// Runs until the server closes the socket. Returns the exit status.
int worker_main(std::uint64_t memory_bytes);

}  // namespace quern::serve
