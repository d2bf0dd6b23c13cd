// SPDX-License-Identifier: Apache-2.0
#include "remote/http.hpp"

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
#include <charconv>
#include <csignal>
#include <cstring>

#include "base/clock.hpp"

namespace quern::remote {
namespace {

constexpr int kTickMs = 100;
constexpr std::uint64_t kMaxHeadBytes = 64 << 10;
constexpr std::uint64_t kMaxBodyBytes = std::uint64_t{1} << 30;

std::int64_t after(std::chrono::milliseconds patience) {
  return base::now_ns() + std::chrono::duration_cast<std::chrono::nanoseconds>(patience).count();
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool read_number(std::string_view text, int base, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

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

/// Connects one address without waiting for longer than the deadline. 0, or the error's number.
int connect_within(int socket, const sockaddr* address, socklen_t size, std::int64_t deadline_ns) {
  if (::connect(socket, address, size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  for (;;) {
    const std::int64_t left_ns = deadline_ns - base::now_ns();
    if (left_ns <= 0) return ETIMEDOUT;
    pollfd ready{socket, POLLOUT, 0};
    if (::poll(&ready, 1, static_cast<int>(left_ns / 1'000'000) + 1) > 0) break;
  }
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

/// OpenSSL writes without MSG_NOSIGNAL, and SIGPIPE belongs to the program: while this lives, one that a
/// write of this thread raises is held back, and taken away at the end.
class NoSigpipe {
 public:
  NoSigpipe() noexcept {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&only_);
    sigaddset(&only_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &only_, &before_);
  }
  ~NoSigpipe() {
    const timespec none{};
    if (!was_pending_) ::sigtimedwait(&only_, nullptr, &none);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t only_, before_;
  bool was_pending_ = false;
};

}  // namespace

std::string HttpAnswer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

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

void HttpConnection::SocketTraits::release(type socket) noexcept { ::close(socket); }

Diagnostic HttpConnection::failure(const char* code, const std::string& reason) const {
  return diagnostic(code, fmt::format("compile server {}: {}", endpoint_.text, reason));
}

Expected<HttpConnection> HttpConnection::open(const Endpoint& endpoint, const TlsClientContext& tls,
                                              const Patience& patience) {
  constexpr int kType = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  const std::int64_t deadline = after(patience.connect);
  const auto unreachable = [&](const std::string& reason) {
    return diagnostic("unreachable", fmt::format("compile server {}: {}", endpoint.text, reason));
  };
  if (!endpoint.socket_path.empty()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (endpoint.socket_path.size() >= sizeof address.sun_path) return unreachable("the path is too long");
    std::memcpy(address.sun_path, endpoint.socket_path.data(), endpoint.socket_path.size());
    base::UniqueHandle<SocketTraits> socket(::socket(AF_UNIX, kType, 0));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return unreachable(std::strerror(errno));
    return HttpConnection(std::move(socket), endpoint);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &hints, &found);
      error != 0)
    return unreachable(::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, ::freeaddrinfo);
  int error = EHOSTUNREACH;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    base::UniqueHandle<SocketTraits> socket(::socket(each->ai_family, kType, each->ai_protocol));
    error = connect_within(socket.get(), each->ai_addr, each->ai_addrlen, deadline);
    if (error != 0) continue;
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    HttpConnection connection(std::move(socket), endpoint);
    connection.deadline_ns_ = deadline;
    if (endpoint.tls)
      if (Expected<void> secured = connection.start_tls(*tls); !secured) return std::move(secured).errors();
    return connection;
  }
  return unreachable(std::strerror(error));
}

Expected<void> HttpConnection::start_tls(SSL_CTX& context) {
  ssl_.reset(SSL_new(&context));
  const NoSigpipe guard;
  if (!ssl_ || SSL_set_fd(ssl_.get(), socket_.get()) != 1) return failure("unreachable", tls_reason());
  // A name is also what the certificate must be for; an address needs the other check.
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), endpoint_.host.c_str()) != 1) {
    SSL_set_tlsext_host_name(ssl_.get(), endpoint_.host.c_str());
    if (SSL_set1_host(ssl_.get(), endpoint_.host.c_str()) != 1) return failure("unreachable", tls_reason());
  }
  for (int result = SSL_connect(ssl_.get()); result != 1; result = SSL_connect(ssl_.get())) {
    const int error = SSL_get_error(ssl_.get(), result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
      return failure("unreachable", tls_reason());
    if (Expected<void> ready = wait_or_fail(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT); !ready)
      return ready;
  }
  return {};
}

HttpConnection::Wait HttpConnection::wait(short events) const {
  for (;;) {
    const std::int64_t left_ns = deadline_ns_ - base::now_ns();
    if (left_ns <= 0) return Wait::timeout;
    pollfd ready{socket_.get(), events, 0};
    const auto left_ms = static_cast<int>(std::min<std::int64_t>(left_ns / 1'000'000 + 1, kTickMs));
    if (::poll(&ready, 1, left_ms) > 0) return Wait::ready;
    if (goes_on_ && !goes_on_()) return Wait::cancelled;
  }
}

Expected<void> HttpConnection::wait_or_fail(short events) const {
  switch (wait(events)) {
    case Wait::ready:
      return {};
    case Wait::timeout:
      return failure("timeout", "it did not answer in time");
    case Wait::cancelled:
      break;
  }
  return failure("cancelled", "the request was cancelled");
}

Expected<void> HttpConnection::send(std::string_view text) {
  while (!text.empty()) {
    short events = POLLOUT;
    ssize_t sent = 0;
    if (ssl_) {
      const NoSigpipe guard;
      const int result =
          SSL_write(ssl_.get(), text.data(), static_cast<int>(std::min<std::size_t>(text.size(), 1 << 20)));
      const int error = result > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), result);
      if (error == SSL_ERROR_WANT_READ) events = POLLIN;
      if (error != SSL_ERROR_NONE && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
        return failure("lost", tls_reason());
      sent = std::max(result, 0);
    } else {
      sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return failure("lost", std::strerror(errno));
      sent = std::max<ssize_t>(sent, 0);
    }
    text.remove_prefix(static_cast<std::size_t>(sent));
    if (sent == 0)
      if (Expected<void> ready = wait_or_fail(events); !ready) return ready;
  }
  return {};
}

Expected<bool> HttpConnection::fill() {
  char block[16384];
  for (;;) {
    short events = POLLIN;
    if (ssl_) {
      const NoSigpipe guard;
      const int got = SSL_read(ssl_.get(), block, sizeof block);
      if (got > 0) return buffer_.append(block, static_cast<std::size_t>(got)), true;
      const int error = SSL_get_error(ssl_.get(), got);
      if (error == SSL_ERROR_ZERO_RETURN) return false;
      if (error == SSL_ERROR_WANT_WRITE) events = POLLOUT;
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return failure("lost", tls_reason());
    } else {
      const ssize_t got = ::recv(socket_.get(), block, sizeof block, 0);
      if (got > 0) return buffer_.append(block, static_cast<std::size_t>(got)), true;
      if (got == 0) return false;
      if (errno != EAGAIN && errno != EINTR) return failure("lost", std::strerror(errno));
    }
    if (Expected<void> ready = wait_or_fail(events); !ready) return std::move(ready).errors();
  }
}

Expected<std::string> HttpConnection::line() {
  for (;;) {
    if (const std::size_t end = buffer_.find("\r\n"); end != std::string::npos) {
      std::string text = buffer_.substr(0, end);
      buffer_.erase(0, end + 2);
      return text;
    }
    if (buffer_.size() > kMaxHeadBytes) return failure("protocol", "its answer is no HTTP");
    Expected<bool> more = fill();
    if (!more) return std::move(more).errors();
    if (!*more) return failure("lost", "it closed the connection");
  }
}

Expected<std::string> HttpConnection::exactly(std::uint64_t size) {
  if (size > kMaxBodyBytes) return failure("protocol", "its answer is too large");
  while (buffer_.size() < size) {
    Expected<bool> more = fill();
    if (!more) return std::move(more).errors();
    if (!*more) return failure("lost", "it closed the connection");
  }
  std::string text = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return text;
}

Expected<void> HttpConnection::read_head(HttpAnswer& answer) {
  Expected<std::string> status = line();
  if (!status) return std::move(status).errors();
  std::uint64_t number = 0;
  if (!status->starts_with("HTTP/1.") || status->size() < 12 ||
      !read_number(std::string_view(*status).substr(9, 3), 10, number))
    return failure("protocol", "its answer is no HTTP");
  answer.status = static_cast<int>(number);
  for (std::size_t count = 0; count < 100; ++count) {
    Expected<std::string> text = line();
    if (!text) return std::move(text).errors();
    if (text->empty()) return {};
    const std::size_t colon = text->find(':');
    if (colon == std::string::npos) break;
    answer.headers[lower(text->substr(0, colon))] = trim(std::string_view(*text).substr(colon + 1));
  }
  return failure("protocol", "the headers of its answer are no HTTP");
}

Expected<void> HttpConnection::read_chunks(HttpAnswer& answer) {
  for (;;) {
    Expected<std::string> head = line();
    if (!head) return std::move(head).errors();
    std::uint64_t size = 0;
    if (!read_number(trim(std::string_view(*head).substr(0, head->find(';'))), 16, size))
      return failure("protocol", "the body of its answer is no HTTP");
    if (size > kMaxBodyBytes - answer.body.size()) return failure("protocol", "its answer is too large");
    Expected<std::string> chunk = exactly(size);
    if (!chunk) return std::move(chunk).errors();
    answer.body += *chunk;
    if (size == 0) break;
    if (Expected<std::string> end = line(); !end || !end->empty())
      return failure("protocol", "the body of its answer is no HTTP");
  }
  for (;;) {
    Expected<std::string> trailer = line();
    if (!trailer) return std::move(trailer).errors();
    if (trailer->empty()) return {};
  }
}

Expected<void> HttpConnection::read_body(HttpAnswer& answer) {
  if (answer.status == 204 || answer.status == 304) return {};
  if (lower(answer.header("transfer-encoding")) == "chunked") return read_chunks(answer);
  std::uint64_t size = 0;
  if (!read_number(answer.header("content-length"), 10, size))
    return failure("protocol", "the size of its answer is not known");
  Expected<std::string> body = exactly(size);
  if (!body) return std::move(body).errors();
  answer.body = *std::move(body);
  return {};
}

Expected<HttpAnswer> HttpConnection::ask(const HttpRequest& request, const Patience& patience) {
  usable_ = false;
  goes_on_ = patience.goes_on;
  deadline_ns_ = after(patience.answer);
  const std::string host = endpoint_.socket_path.empty() ? endpoint_.host : "quern";
  std::string head = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n", request.method,
                                 request.path, host, request.body.size());
  for (const auto& [name, value] : request.headers) head += fmt::format("{}: {}\r\n", name, value);
  head += "\r\n";
  if (Expected<void> sent = send(head); !sent) return std::move(sent).errors();
  // A server that refuses a body answers and closes before it has read it all.
  const Expected<void> body_sent = send(request.body);
  if (!body_sent && body_sent.errors().front().code != "lost") return body_sent.errors();
  deadline_ns_ = after(patience.answer);
  HttpAnswer answer;
  do {
    answer.headers.clear();
    if (Expected<void> read = read_head(answer); !read) return std::move(read).errors();
  } while (answer.status >= 100 && answer.status < 200);
  if (Expected<void> read = read_body(answer); !read) return std::move(read).errors();
  usable_ = body_sent && lower(answer.header("connection")) != "close" && buffer_.empty();
  goes_on_ = nullptr;
  return answer;
}

bool HttpConnection::is_usable() const {
  if (!usable_) return false;
  pollfd ready{socket_.get(), POLLIN | POLLRDHUP, 0};
  return ::poll(&ready, 1, 0) == 0;  // a server that says anything now is closing
}

}  // namespace quern::remote
