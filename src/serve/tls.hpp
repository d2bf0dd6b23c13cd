// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "quern/expected.hpp"
#include "serve/settings.hpp"

namespace quern::serve {

using TlsContext = std::shared_ptr<SSL_CTX>;

/// The server side of TLS 1.2 and later, with the certificate of the settings. If they name a client CA,
/// clients must have a certificate of it. Returns null if the settings name no certificate.
Expected<TlsContext> make_tls_context(const Settings& settings);

}  // namespace quern::serve
