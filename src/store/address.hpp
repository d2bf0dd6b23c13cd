// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "quern/expected.hpp"
#include "remote/endpoint.hpp"

namespace quern::store {

enum class Engine : std::uint8_t {
  redis,       ///< Redis, Valkey, and others that speak RESP2
  http_cache,  ///< GET and PUT under /ac and /cas, as bazel-remote answers them
  dav,         ///< a folder of files: GET, PUT, DELETE and MKCOL
};

/// The place of a shared store, and the login that asks it.
struct Address {
  Engine engine = Engine::redis;
  remote::Endpoint endpoint;  ///< `text` holds neither user nor password
  std::string user;           ///< empty if there is none
  std::string password;
  std::string folder;          ///< HTTP: "" or "/a/b"
  std::uint32_t database = 0;  ///< Redis: of SELECT
};

/// Takes redis://, rediss:// (TLS), redis+unix:PATH, http://, https://, dav:// and davs://. User and password
/// stand before the host as in any URL, with %XX for characters that a URL gives a meaning. Messages hold no
/// password.
Expected<Address> read_address(std::string_view text);

/// The part of `text` that is a password; empty if it has none.
std::string_view password_in(std::string_view text);

}  // namespace quern::store
