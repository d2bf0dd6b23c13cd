// SPDX-License-Identifier: Apache-2.0
// component: session
// Figures of compile services (docs/service.md) for observers.
#pragma once

#include <functional>
#include <string>

#include "quern/expected.hpp"
#include "quern/export.hpp"

namespace quern {

struct ServiceQuery {
  double timeout_s = 5;           ///< for the answer; connecting may take 2 s
  std::function<bool()> goes_on;  ///< called ten times a second; returns false to cancel; may be empty
};

/// The figures of the compile service at `server` ("unix:PATH", "http://HOST:PORT", "https://HOST:PORT"): the
/// JSON document that docs/protocol.md describes under /v1/stats, unchanged. Token and certificates are those
/// of QUERN_REMOTE_TOKEN_FILE, QUERN_REMOTE_CA, QUERN_REMOTE_CERT and QUERN_REMOTE_KEY, read at each call.
/// Error codes: "usage" (no address, or variables that cannot be used), "unreachable", "timeout", "lost",
/// "unauthorised", "protocol" (no compile service), "cancelled". Thread-safe.
QUERN_API Expected<std::string> service_stats(const std::string& server, const ServiceQuery& query = {});

}  // namespace quern
