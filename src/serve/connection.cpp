// SPDX-License-Identifier: Apache-2.0
#include "serve/connection.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"

namespace quern::serve {
namespace {

constexpr auto kLinger = std::chrono::milliseconds(2000);
constexpr std::uint64_t kLingerBytes = std::uint64_t{256} << 20;

std::int64_t after(std::chrono::milliseconds timeout) {
  return base::now_ns() + std::chrono::duration_cast<std::chrono::nanoseconds>(timeout).count();
}

}  // namespace

Connection::Connection(int socket, int wake, std::string peer)
    : socket_(socket), wake_(wake), peer_(std::move(peer)) {}

Connection::~Connection() {
  ssl_.reset();
  ::close(socket_);
}

bool Connection::wait(short events) const {
  for (;;) {
    const std::int64_t left_ns = deadline_ns_ - base::now_ns();
    if (left_ns <= 0) {
      failure_ = Failure::timeout;
      return false;
    }
    pollfd ready{socket_, events, 0};
    const int count = ::poll(&ready, 1, static_cast<int>(left_ns / 1'000'000) + 1);
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

bool Connection::wait_for_tls(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return wait(POLLIN);
    case SSL_ERROR_WANT_WRITE:
      return wait(POLLOUT);
    default:
      return false;
  }
}

bool Connection::start_tls(SSL_CTX& context, Milliseconds timeout) {
  deadline_ns_ = after(timeout);
  ssl_.reset(SSL_new(&context));
  if (!ssl_ || SSL_set_fd(ssl_.get(), socket_) != 1) return false;
  for (int result = SSL_accept(ssl_.get()); result != 1; result = SSL_accept(ssl_.get()))
    if (!wait_for_tls(result)) return false;
  return true;
}

bool Connection::wait_for_request(Milliseconds timeout) {
  if (begin_ != end_ || (ssl_ && SSL_pending(ssl_.get()) > 0)) return true;
  pollfd ready[2] = {{socket_, POLLIN, 0}, {wake_, POLLIN, 0}};
  int count = 0;
  do {
    count = ::poll(ready, 2, static_cast<int>(timeout.count()));
  } while (count < 0 && errno == EINTR);
  // A request that is there when the server stops is still answered.
  return count > 0 && ready[0].revents != 0;
}

void Connection::begin_request(Milliseconds timeout, std::uint64_t head_bytes) {
  deadline_ns_ = after(timeout);
  head_left_ = head_bytes;
}

void Connection::begin_answer(Milliseconds timeout) {
  deadline_ns_ = after(timeout);
  if (failure_ != Failure::gone) failure_ = Failure::none;
}

ssize_t Connection::receive(char* data, std::size_t size) {
  for (;;) {
    if (!ssl_) {
      const ssize_t got = ::recv(socket_, data, size, MSG_DONTWAIT);
      if (got >= 0) return got;
      if (errno == EINTR) continue;
      if ((errno != EAGAIN && errno != EWOULDBLOCK) || !wait(POLLIN)) return -1;
      continue;
    }
    const int got = SSL_read(ssl_.get(), data, static_cast<int>(size));
    if (got > 0) return got;
    if (!wait_for_tls(got)) return -1;
  }
}

ssize_t Connection::send(const char* data, std::size_t size) {
  for (;;) {
    if (!ssl_) {
      const ssize_t sent = ::send(socket_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) return sent;
      if (errno == EINTR) continue;
      if ((errno != EAGAIN && errno != EWOULDBLOCK) || !wait(POLLOUT)) return -1;
      continue;
    }
    const int sent = SSL_write(ssl_.get(), data, static_cast<int>(std::min<std::size_t>(size, 1 << 20)));
    if (sent > 0) return sent;
    if (!wait_for_tls(sent)) return -1;
  }
}

ssize_t Connection::read(char* data, std::size_t size) {
  if (failure_ != Failure::none) return -1;
  if (begin_ == end_) {
    // The limit also holds if single bytes keep arriving.
    if (base::now_ns() >= deadline_ns_) {
      failure_ = Failure::timeout;
      return -1;
    }
    const ssize_t got = receive(buffer_.data(), buffer_.size());
    if (got <= 0) {
      if (failure_ == Failure::none) failure_ = Failure::gone;
      return -1;
    }
    begin_ = 0;
    end_ = static_cast<std::size_t>(got);
  }
  const std::size_t count = std::min(size, end_ - begin_);
  if (count > head_left_) {
    failure_ = Failure::too_large;
    return -1;
  }
  if (head_left_ != UINT64_MAX) head_left_ -= count;
  std::memcpy(data, buffer_.data() + begin_, count);
  begin_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* data, std::size_t size) {
  std::size_t sent = 0;
  while (sent < size) {
    const ssize_t count = send(data + sent, size - sent);
    if (count <= 0) {
      failure_ = Failure::gone;
      return -1;
    }
    sent += static_cast<std::size_t>(count);
  }
  return static_cast<ssize_t>(size);
}

void Connection::finish() {
  if (failure_ == Failure::gone) return;
  if (ssl_) SSL_shutdown(ssl_.get());
  ::shutdown(socket_, SHUT_WR);
  deadline_ns_ = after(kLinger);
  std::uint64_t dropped = 0;
  while (dropped < kLingerBytes && wait(POLLIN)) {
    const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got <= 0) return;
    dropped += static_cast<std::uint64_t>(got);
  }
}

bool Connection::is_gone() const {
  pollfd ready{socket_, POLLRDHUP, 0};
  return ::poll(&ready, 1, 0) > 0 && (ready.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip = peer_;
  port = 0;
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

}  // namespace quern::serve
