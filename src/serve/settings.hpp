// SPDX-License-Identifier: Apache-2.0
// The settings of a server: the options of `quern serve`, checked.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace quern::serve {

struct Settings {
  std::vector<std::string> listen;  ///< "unix:PATH", "tcp:HOST:PORT"
  std::string token_file;           ///< empty if there are no tokens
  std::string tls_certificate;      ///< PEM files; empty without TLS
  std::string tls_key;
  std::string tls_client_ca;
  std::string log_file;      ///< instead of stderr; empty for stderr
  int stats_descriptor = 0;  ///< a connected socket on which figures are asked for; 0 if there is none
  bool open_to_all = false;  ///< listen on TCP beyond this machine without tokens and client certificates

  std::string store;  ///< URL of the shared store; empty if there is none
  std::string store_key;
  std::string store_password_file;
  std::string store_ca;  ///< PEM files
  std::string store_certificate;
  std::string store_certificate_key;
  bool store_trusted = false;  ///< use a store that others reach without a key
  double store_timeout_s = 0.02;
  double store_lease_s = 4;

  unsigned workers = 0;  ///< 0 for one on each processor
  std::uint64_t worker_memory_bytes = std::uint64_t{2} << 30;
  std::uint64_t worker_requests = 256;                         ///< a worker is replaced after so many
  std::uint64_t precompiled_bytes = std::uint64_t{512} << 20;  ///< 0 for none
  double compile_timeout_s = 60;

  std::uint64_t max_source_bytes = std::uint64_t{4} << 20;
  std::uint64_t max_queue = 256;
  std::uint64_t max_connections = 2048;
  std::uint64_t max_body_memory_bytes = std::uint64_t{256} << 20;  ///< all bodies that are being received
  std::uint64_t cache_bytes = std::uint64_t{256} << 20;
  std::uint64_t artifact_bytes = std::uint64_t{256} << 20;
  double request_timeout_s = 20;
  double idle_timeout_s = 60;
  double drain_timeout_s = 90;

  std::uint64_t max_body_bytes() const { return 2 * max_source_bytes + (std::uint64_t{64} << 10); }
};

}  // namespace quern::serve
