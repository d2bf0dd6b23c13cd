// SPDX-License-Identifier: Apache-2.0
// One connection of a client's, as cpp-httplib reads and writes it: every request must arrive within a time
// and within bounds, so that a slow client holds a thread only that long.
#pragma once

#include <httplib.h>
#include <openssl/ssl.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace quern::serve {

class Connection final : public httplib::Stream {
 public:
  enum class Failure : std::uint8_t { none, timeout, too_large, gone };
  using Milliseconds = std::chrono::milliseconds;

  /// Owns the socket. `wake` becomes readable when the server stops.
  Connection(int socket, int wake, std::string peer);
  ~Connection() override;

  /// The handshake; returns false if it failed.
  bool start_tls(SSL_CTX& context, Milliseconds timeout);
  /// Waits for the first byte of a request. Returns false if there is none, or the server stops.
  bool wait_for_request(Milliseconds timeout);
  /// From now on the request must arrive: within `timeout`, its line and headers within `head_bytes`.
  void begin_request(Milliseconds timeout, std::uint64_t head_bytes);
  /// Line and headers are there: what follows is limited by its reader.
  void begin_body() noexcept { head_left_ = UINT64_MAX; }
  /// From now on the answer must be taken within `timeout`.
  void begin_answer(Milliseconds timeout);
  /// Closes so that the client can still read the answer, though it may be sending.
  void finish();

  /// True if the client has closed its side, or only its sending side.
  bool is_gone() const;
  Failure failure() const noexcept { return failure_; }

  bool is_readable() const override { return true; }
  bool is_writable() const override { return failure_ == Failure::none; }
  ssize_t read(char* data, std::size_t size) override;
  ssize_t write(const char* data, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  /// httplib asks only in order to refuse descriptors that select() cannot take, which is not used here.
  socket_t socket() const override { return 0; }

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
  };
  bool wait(short events) const;
  ssize_t receive(char* data, std::size_t size);
  ssize_t send(const char* data, std::size_t size);
  /// Waits as `result` of an OpenSSL call says; false if it failed for good.
  bool wait_for_tls(int result);

  const int socket_;
  const int wake_;
  const std::string peer_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  std::int64_t deadline_ns_ = 0;
  std::uint64_t head_left_ = 0;
  mutable Failure failure_ = Failure::none;
  std::array<char, 16384> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace quern::serve
