// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quern/expected.hpp"

namespace quern::remote {

/// The address of a server.
struct Endpoint {
  std::string text;         ///< as the user wrote it
  std::string socket_path;  ///< of a Unix socket; else empty
  std::string host;
  std::string port;
  bool tls = false;
};

/// "unix:PATH", "http://HOST:PORT", "https://HOST[:PORT]", "tcp:HOST:PORT". An IPv6 address stands in
/// brackets.
Expected<Endpoint> read_endpoint(std::string_view text);

/// A list of them, separated by spaces or commas.
Expected<std::vector<Endpoint>> read_endpoints(std::string_view text);

}  // namespace quern::remote
