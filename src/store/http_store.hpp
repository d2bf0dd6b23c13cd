// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/address.hpp"
#include "store/engine.hpp"
#include "store/redis.hpp"

namespace quern::store {

/// Stores behind HTTP, by the address's engine.
///
/// http_cache: FOLDER/ac/KEY is an ActionResult that names FOLDER/cas/DIGEST, the value. There are no locks:
/// GET and PUT alone decide nothing between two servers.
///
/// dav: FOLDER/KEY is the value. A lock is the collection FOLDER/KEY.lock.N: MKCOL succeeds for one alone.
/// Its holder writes FOLDER/KEY.lock.N/beat again and again. A lock whose beat has not changed for a lease,
/// by the clock of the server that waits, is dead, and N + 1 is the next. The holder that finishes removes
/// all.
std::unique_ptr<Connector> make_http_store(const Address& address, remote::TlsClientContext tls,
                                           LoginSource login);

}  // namespace quern::store
