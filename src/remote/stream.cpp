// SPDX-License-Identifier: Apache-2.0
#include "remote/stream.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/held_signal.hpp"

namespace quern::remote {
namespace {

constexpr std::int64_t kTick_ns = 100'000'000;

std::string tls_reason() {
  char reason[256] = "the connection was closed";
  if (const unsigned long error = ERR_get_error(); error != 0)
    ERR_error_string_n(error, reason, sizeof reason);
  ERR_clear_error();
  return reason;
}

Diagnostic diagnostic(const char* code, const std::string& message) {
  Diagnostic made;
  made.code = code;
  made.message = message;
  return made;
}

/// Waits for at most that time; false if nothing came.
bool poll_for(int socket, short events, std::int64_t time_ns) {
  pollfd ready{socket, events, 0};
  const timespec time{time_ns / 1'000'000'000, time_ns % 1'000'000'000};
  return ::ppoll(&ready, 1, &time, nullptr) > 0;
}

/// Connects one address without waiting for longer than the deadline. 0, or the error's number.
int connect_within(int socket, const sockaddr* address, socklen_t size, std::int64_t deadline_ns) {
  if (::connect(socket, address, size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  for (;;) {
    const std::int64_t left_ns = deadline_ns - base::now_ns();
    if (left_ns <= 0) return ETIMEDOUT;
    if (poll_for(socket, POLLOUT, left_ns)) break;
  }
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

}  // namespace

Expected<TlsClientContext> make_client_tls(const std::string& authority, const std::string& certificate,
                                           const std::string& key) {
  const TlsClientContext context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  const auto failed = [](const std::string& file) {
    return diagnostic("tls", fmt::format("cannot use {} for TLS: {}", file, tls_reason()));
  };
  if (!context) return failed("OpenSSL");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const int trusted = authority.empty()
                          ? SSL_CTX_set_default_verify_paths(context.get())
                          : SSL_CTX_load_verify_locations(context.get(), authority.c_str(), nullptr);
  if (trusted != 1) return failed(authority.empty() ? "the system's authorities" : authority);
  if (certificate.empty()) return context;
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1) return failed(certificate);
  if (SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1) return failed(key);
  return context;
}

void Stream::SocketTraits::release(type socket) noexcept { ::close(socket); }

Diagnostic Stream::failure(const char* code, const std::string& reason) const {
  return diagnostic(code, fmt::format("{}: {}", peer_, reason));
}

Expected<Stream> Stream::open_unix(const Endpoint& endpoint, std::string peer) {
  Stream stream(Socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), std::move(peer));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (endpoint.socket_path.size() >= sizeof address.sun_path)
    return stream.failure("unreachable", "the path is too long");
  std::memcpy(address.sun_path, endpoint.socket_path.data(), endpoint.socket_path.size());
  if (::connect(stream.socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return stream.failure("unreachable", std::strerror(errno));
  return stream;
}

Expected<Stream> Stream::open(const Endpoint& endpoint, const TlsClientContext& tls, std::string peer,
                              std::int64_t deadline_ns) {
  if (!endpoint.socket_path.empty()) return open_unix(endpoint, std::move(peer));
  const auto unreachable = [&](const std::string& reason) {
    return diagnostic("unreachable", fmt::format("{}: {}", peer, reason));
  };
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &hints, &found);
      error != 0)
    return unreachable(::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, ::freeaddrinfo);
  int error = EHOSTUNREACH;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    Socket socket(::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, each->ai_protocol));
    error = connect_within(socket.get(), each->ai_addr, each->ai_addrlen, deadline_ns);
    if (error != 0) continue;
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Stream stream(std::move(socket), std::move(peer));
    stream.pace_.deadline_ns = deadline_ns;
    if (endpoint.tls)
      if (Expected<void> secured = stream.start_tls(*tls, endpoint.host); !secured)
        return std::move(secured).errors();
    return stream;
  }
  return unreachable(std::strerror(error));
}

Expected<void> Stream::start_tls(SSL_CTX& context, const std::string& host) {
  ssl_.reset(SSL_new(&context));
  const base::HeldSignal quiet(SIGPIPE);  // OpenSSL writes without MSG_NOSIGNAL
  if (!ssl_ || SSL_set_fd(ssl_.get(), socket_.get()) != 1) return failure("unreachable", tls_reason());
  // A name is also what the certificate must be for; an address needs the other check.
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str()) != 1) {
    SSL_set_tlsext_host_name(ssl_.get(), host.c_str());
    if (SSL_set1_host(ssl_.get(), host.c_str()) != 1) return failure("unreachable", tls_reason());
  }
  for (int result = SSL_connect(ssl_.get()); result != 1; result = SSL_connect(ssl_.get())) {
    const int error = SSL_get_error(ssl_.get(), result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
      return failure("unreachable", tls_reason());
    if (Expected<void> ready = wait(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT); !ready) return ready;
  }
  return {};
}

Expected<void> Stream::wait(short events) const {
  for (;;) {
    const std::int64_t left_ns = pace_.deadline_ns - base::now_ns();
    if (left_ns <= 0) return failure("timeout", "it did not answer in time");
    if (poll_for(socket_.get(), events, std::min(left_ns, kTick_ns))) return {};
    if (goes_on_ && !goes_on_()) return failure("cancelled", "the request was cancelled");
  }
}

Expected<void> Stream::check_time() {
  const std::int64_t now_ns = base::now_ns();
  if (now_ns >= pace_.deadline_ns) return failure("timeout", "it did not answer in time");
  if (!goes_on_ || now_ns < asked_ns_ + kTick_ns) return {};
  asked_ns_ = now_ns;
  if (!goes_on_()) return failure("cancelled", "the request was cancelled");
  return {};
}

void Stream::moved(std::size_t bytes) noexcept {
  pace_.deadline_ns += static_cast<std::int64_t>(bytes) * pace_.ns_per_byte;
}

Expected<void> Stream::send(std::string_view bytes) {
  while (!bytes.empty()) {
    if (Expected<void> in_time = check_time(); !in_time) return in_time;
    short events = POLLOUT;
    ssize_t sent = 0;
    if (ssl_) {
      const base::HeldSignal quiet(SIGPIPE);
      const int result =
          SSL_write(ssl_.get(), bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), 1 << 20)));
      const int error = result > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), result);
      if (error == SSL_ERROR_WANT_READ) events = POLLIN;
      if (error != SSL_ERROR_NONE && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
        return failure("lost", tls_reason());
      sent = std::max(result, 0);
    } else {
      sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return failure("lost", std::strerror(errno));
      sent = std::max<ssize_t>(sent, 0);
    }
    moved(static_cast<std::size_t>(sent));
    bytes.remove_prefix(static_cast<std::size_t>(sent));
    if (sent == 0)
      if (Expected<void> ready = wait(events); !ready) return ready;
  }
  return {};
}

Expected<bool> Stream::receive(std::string& into) {
  char block[16384];
  for (;;) {
    if (Expected<void> in_time = check_time(); !in_time) return std::move(in_time).errors();
    short events = POLLIN;
    if (ssl_) {
      const base::HeldSignal quiet(SIGPIPE);
      const int got = SSL_read(ssl_.get(), block, sizeof block);
      if (got > 0) {
        moved(static_cast<std::size_t>(got));
        return into.append(block, static_cast<std::size_t>(got)), true;
      }
      const int error = SSL_get_error(ssl_.get(), got);
      if (error == SSL_ERROR_ZERO_RETURN) return false;
      if (error == SSL_ERROR_WANT_WRITE) events = POLLOUT;
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return failure("lost", tls_reason());
    } else {
      const ssize_t got = ::recv(socket_.get(), block, sizeof block, 0);
      if (got > 0) {
        moved(static_cast<std::size_t>(got));
        return into.append(block, static_cast<std::size_t>(got)), true;
      }
      if (got == 0) return false;
      if (errno != EAGAIN && errno != EINTR) return failure("lost", std::strerror(errno));
    }
    if (Expected<void> ready = wait(events); !ready) return std::move(ready).errors();
  }
}

bool Stream::is_quiet() const { return !poll_for(socket_.get(), POLLIN | POLLRDHUP, 0); }

}  // namespace quern::remote
