// SPDX-License-Identifier: Apache-2.0
// docs/protocol.md's paths.
#pragma once

#include <httplib.h>

#include <atomic>
#include <memory>
#include <string>

#include "base/thread_annotations.hpp"
#include "serve/auth.hpp"
#include "serve/compile_pool.hpp"
#include "serve/connection.hpp"
#include "serve/metrics.hpp"
#include "serve/settings.hpp"

namespace quern::serve {

/// The request that a thread answers.
struct Exchange;

/// Answers requests; thread-safe. cpp-httplib reads the requests and writes the answers.
class Service : private httplib::Server {
 public:
  explicit Service(const Settings& settings);

  /// Reads one request of the connection and answers it. Returns false if the connection ends.
  bool serve_one(Connection& connection, bool last);

  /// From now on requests are refused with 503 and not ready.
  void drain() noexcept { draining_ = true; }
  void set_tokens(Tokens tokens) QUERN_EXCLUDES(mutex_);
  Metrics& metrics() noexcept { return metrics_; }
  CompilePool& pool() noexcept { return pool_; }
  /// The document of /v1/stats.
  std::string stats() const;

 private:
  using Request = httplib::Request;
  using Response = httplib::Response;

  HandlerResponse before_body(const Request& request, Response& response);
  bool check_head(const Request& request, Response& response) const;
  bool check_path(const Request& request, Response& response) QUERN_EXCLUDES(mutex_);
  void get(const Request& request, Response& response);
  void post(const Request& request, Response& response, const httplib::ContentReader& reader);
  void put(const Request& request, Response& response, const httplib::ContentReader& reader);
  void on_error(Response& response);
  /// Answers a request whose first line is too long.
  void refuse_head(Connection& connection);
  void note(const Request& request, const Response& response);

  /// The body; false if it did not arrive, and the response has the reason.
  bool read_body(const httplib::ContentReader& reader, std::uint64_t most, std::string& body,
                 Response& response);
  void compile(const std::string& body, Response& response);
  bool take_headers(remote::CompileMessage& message, Response& response);
  void artifact(const Request& request, Response& response);
  const char* state() const;  ///< as /readyz says it
  void ready(Response& response) const;

  const Settings& settings_;
  Metrics metrics_;
  ArtifactStore artifacts_;
  CompilePool pool_;
  std::atomic<bool> draining_{false};
  std::atomic<std::uint64_t> body_bytes_{0};
  mutable base::Mutex mutex_;
  std::shared_ptr<const Tokens> tokens_ QUERN_GUARDED_BY(mutex_) = std::make_shared<const Tokens>();
};

}  // namespace quern::serve
