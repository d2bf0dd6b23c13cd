// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/unique_handle.hpp"
#include "quern/expected.hpp"

namespace quern::serve {

struct DescriptorTraits {
  using type = int;
  static type null() noexcept { return -1; }
  static void release(type descriptor) noexcept;
};
using Descriptor = base::UniqueHandle<DescriptorTraits>;

/// A listening socket.
struct Listener {
  Descriptor socket;
  std::string address;      ///< "unix:/run/quern/quern.sock", "tcp:127.0.0.1:8471" with the port in use
  std::string socket_path;  ///< of a Unix socket: to be removed in the end
  bool local = false;       ///< a Unix socket, or a loopback address
};

/// Opens "unix:PATH" (mode 0600; a socket that nobody listens on is replaced) or "tcp:HOST:PORT" (port 0: any
/// that is free; an IPv6 address in brackets): one listener for each address of the host.
Expected<std::vector<Listener>> open_listeners(const std::string& text);

}  // namespace quern::serve
