// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 as a client of the compile service needs it: one request at a time on a connection that stays
// open. It uses no HTTP library, which could conflict with another version of itself in the program.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "quern/expected.hpp"
#include "remote/endpoint.hpp"
#include "remote/stream.hpp"

namespace quern::remote {

/// Limits for the time of each part, and a question whether to go on at all.
struct Timeouts {
  std::chrono::milliseconds connect{2000};
  std::chrono::milliseconds answer{90'000};  ///< from the request's end
  std::function<bool()> goes_on;             ///< asked ten times a second; may be empty
  std::optional<Pace> pace;                  ///< in place of `answer`, for the request and its answer
};

struct HttpRequest {
  std::string_view method;
  std::string path;
  std::map<std::string, std::string> headers;
  std::string_view body;
};

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
  std::string header(const std::string& name) const;
};

/// A connection. Thread-compatible. After an error it is of no use any more. Errors have the codes
/// "unreachable" (nothing was sent), "timeout", "lost", "cancelled" and "protocol".
class HttpConnection {
 public:
  /// `peer` names the other side in messages.
  static Expected<HttpConnection> open(const Endpoint& endpoint, const TlsClientContext& tls,
                                       const Timeouts& timeouts, const std::string& peer = "compile server");

  Expected<HttpAnswer> ask(const HttpRequest& request, const Timeouts& timeouts);
  /// The pace with the deadline that the last exchange has left.
  const Pace& pace() const noexcept { return stream_.pace(); }
  /// True if another request may be sent.
  bool is_usable() const;

 private:
  HttpConnection(Stream stream, const Endpoint& endpoint) : stream_(std::move(stream)), endpoint_(endpoint) {}
  Expected<std::string> line();
  Expected<std::string> exactly(std::uint64_t size);
  Expected<void> read_head(HttpAnswer& answer);
  Expected<void> read_body(HttpAnswer& answer);
  Expected<void> read_chunks(HttpAnswer& answer);
  Diagnostic failure(const char* code, const std::string& reason) const;

  Stream stream_;
  Endpoint endpoint_;
  std::string buffer_;
  bool usable_ = true;
};

}  // namespace quern::remote
