// SPDX-License-Identifier: Apache-2.0
#include "quern/service.hpp"

#include <chrono>

#include "remote/client.hpp"

namespace quern {

Expected<std::string> service_stats(const std::string& server, const ServiceQuery& query) {
  Expected<remote::ClientOptions> options = remote::client_options_for(server);
  if (!options) return std::move(options).errors();
  options->timeouts.answer = std::chrono::milliseconds(static_cast<std::int64_t>(query.timeout_s * 1e3));
  options->timeouts.goes_on = query.goes_on;
  return remote::fetch_stats(*options);
}

}  // namespace quern
