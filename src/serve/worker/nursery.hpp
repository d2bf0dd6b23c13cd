// SPDX-License-Identifier: Apache-2.0
// The process that workers are forked from. It loads NVRTC once, and makes precompiled headers, which its
// workers share; it never sees a client's source. The server starts it with two sockets.
#pragma once

#include <cstdint>

namespace quern::serve {

/// Over this socket the server asks for workers: kForkFrame, then the descriptor of the worker's socket. The
/// answer's text is the worker's process number.
inline constexpr int kNurserySocket = 3;
/// Over this one it asks for precompiled headers, one at a time: a compile message of #include lines. The
/// answer's status is 0, and its text the size in bytes, or another with the reason.
inline constexpr int kHeaderSocket = 4;
inline constexpr std::uint32_t kForkFrame = 10;

struct NurseryOptions {
  std::uint64_t memory_bytes = 0;  ///< of a worker's address space; 0 if not limited
  bool precompiled_headers = true;
};

/// Runs until the server closes the sockets. Returns the exit status.
int nursery_main(const NurseryOptions& options);

}  // namespace quern::serve
