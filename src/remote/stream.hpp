// SPDX-License-Identifier: Apache-2.0
// A connection as bytes, with or without TLS, whose every wait ends at a deadline.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/unique_handle.hpp"
#include "quern/expected.hpp"
#include "remote/endpoint.hpp"

namespace quern::remote {

using TlsClientContext = std::shared_ptr<SSL_CTX>;
/// Empty names are left out: the system's authorities, no certificate of the client's.
Expected<TlsClientContext> make_client_tls(const std::string& authority, const std::string& certificate,
                                           const std::string& key);

/// The time for an exchange: until the deadline, which each byte that is sent or received moves on. Thus a
/// large value has enough time, and the other side must keep up a minimum rate.
struct Pace {
  std::int64_t deadline_ns = 0;  ///< by base::now_ns()
  std::int64_t ns_per_byte = 0;
};

/// Thread-compatible. After an error it is of no use any more. Errors have the codes "unreachable" (nothing
/// was sent), "timeout", "lost" and "cancelled"; their messages name `peer`.
class Stream {
 public:
  /// Connects to one of the endpoint's addresses by the deadline. The look-up of a name can take longer.
  static Expected<Stream> open(const Endpoint& endpoint, const TlsClientContext& tls, std::string peer,
                               std::int64_t deadline_ns);

  void set_pace(const Pace& pace) noexcept { pace_ = pace; }
  /// The pace with its current deadline.
  const Pace& pace() const noexcept { return pace_; }
  /// Asked ten times a second while it waits; false cancels. May be empty.
  void set_goes_on(std::function<bool()> goes_on) { goes_on_ = std::move(goes_on); }

  Expected<void> send(std::string_view bytes);
  /// Appends what has come, at least a byte; false at the end.
  Expected<bool> receive(std::string& into);
  /// True if the other side has neither sent anything nor closed.
  bool is_quiet() const;
  /// "PEER: REASON".
  Diagnostic failure(const char* code, const std::string& reason) const;

 private:
  struct SocketTraits {
    using type = int;
    static type null() noexcept { return -1; }
    static void release(type socket) noexcept;
  };
  struct FreeSsl {
    void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
  };
  using Socket = base::UniqueHandle<SocketTraits>;

  Stream(Socket socket, std::string peer) : socket_(std::move(socket)), peer_(std::move(peer)) {}
  static Expected<Stream> open_unix(const Endpoint& endpoint, std::string peer);
  Expected<void> start_tls(SSL_CTX& context, const std::string& host);
  Expected<void> wait(short events) const;
  /// Fails if the deadline has passed or `goes_on` is false, even while bytes arrive.
  Expected<void> check_time();
  void moved(std::size_t bytes) noexcept;

  Socket socket_;
  std::string peer_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  Pace pace_;
  std::function<bool()> goes_on_;
  std::int64_t asked_ns_ = 0;  ///< when goes_on_ was asked
};

}  // namespace quern::remote
