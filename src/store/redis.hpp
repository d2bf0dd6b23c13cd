// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "store/address.hpp"
#include "store/engine.hpp"

namespace quern::store {

/// User and password to log in with; asked for each connection.
struct Login {
  std::string user;
  std::string password;
};
using LoginSource = std::function<Login()>;

/// Redis and compatible servers. Values lie under "quern:value:KEY", locks under "quern:lock:KEY" with their
/// lease as expiry. Needs the commands PING, GET, SET and EVAL, and AUTH, SELECT where the address has them.
std::unique_ptr<Connector> make_redis(const Address& address, remote::TlsClientContext tls,
                                      LoginSource login);

}  // namespace quern::store
