// SPDX-License-Identifier: Apache-2.0
// The messages of server and worker over their socket pair: frames of a status, a text and bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace quern::serve {

struct Frame {
  std::uint32_t status = 0;
  std::string text;
  std::string bytes;
};

/// Writes the whole frame; returns false if the other side is gone.
bool send_frame(int socket, const Frame& frame);

enum class Receive : std::uint8_t { frame, closed, stopped, too_large };

/// Waits for a frame of at most `max_bytes`. `goes_on` (may be empty) is asked ten times a second; when it
/// answers false, the wait ends with `stopped`. The other side is not trusted.
Receive receive_frame(int socket, std::uint64_t max_bytes, const std::function<bool()>& goes_on,
                      Frame& frame);

/// Hands a descriptor to the process at the other side of a Unix socket.
bool send_descriptor(int socket, int descriptor);
/// The descriptor that is sent next, which closes at an exec; -1: none came.
int receive_descriptor(int socket);

}  // namespace quern::serve
