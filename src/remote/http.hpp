// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 as a client of the compile service needs it: one request at a time on a connection that stays
// open. Made by hand: an HTTP library in libquern would meet another version of itself in the program.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/unique_handle.hpp"
#include "quern/expected.hpp"
#include "remote/endpoint.hpp"

namespace quern::remote {

/// Limits for the time of each part, and a question whether to go on at all.
struct Patience {
  std::chrono::milliseconds connect{2000};
  std::chrono::milliseconds answer{90'000};  ///< from the request's end
  std::function<bool()> goes_on;             ///< asked ten times a second; may be empty
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

using TlsClientContext = std::shared_ptr<SSL_CTX>;
/// Empty names are left out: the system's authorities, no certificate of the client's.
Expected<TlsClientContext> make_client_tls(const std::string& authority, const std::string& certificate,
                                           const std::string& key);

/// A connection. Thread-compatible. After an error it is of no use any more. Errors have the codes
/// "unreachable" (nothing was sent), "timeout", "lost", "cancelled" and "protocol".
class HttpConnection {
 public:
  static Expected<HttpConnection> open(const Endpoint& endpoint, const TlsClientContext& tls,
                                       const Patience& patience);

  Expected<HttpAnswer> ask(const HttpRequest& request, const Patience& patience);
  /// True if another request may be sent.
  bool is_usable() const;

 private:
  struct SocketTraits {
    using type = int;
    static type null() noexcept { return -1; }
    static void release(type socket) noexcept;
  };
  struct FreeSsl {
    void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
  };
  enum class Wait : std::uint8_t { ready, timeout, cancelled };

  HttpConnection(base::UniqueHandle<SocketTraits> socket, const Endpoint& endpoint)
      : socket_(std::move(socket)), endpoint_(endpoint) {}
  Expected<void> start_tls(SSL_CTX& context);
  Wait wait(short events) const;
  Expected<void> wait_or_fail(short events) const;
  Expected<void> send(std::string_view text);
  /// Reads more into buffer_; false at the end.
  Expected<bool> fill();
  Expected<std::string> line();
  Expected<std::string> exactly(std::uint64_t size);
  Expected<void> read_head(HttpAnswer& answer);
  Expected<void> read_body(HttpAnswer& answer);
  Expected<void> read_chunks(HttpAnswer& answer);
  Diagnostic failure(const char* code, const std::string& reason) const;

  base::UniqueHandle<SocketTraits> socket_;
  Endpoint endpoint_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  std::string buffer_;
  std::int64_t deadline_ns_ = 0;
  std::function<bool()> goes_on_;
  bool usable_ = true;
};

}  // namespace quern::remote
