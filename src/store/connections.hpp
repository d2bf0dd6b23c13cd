// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/thread_annotations.hpp"
#include "store/breaker.hpp"
#include "store/engine.hpp"

namespace quern::store {

/// Open connections to one store. A thread of its own opens them, since looking up a name, connecting and TLS
/// can take longer than a request should wait, and probes a store that failed. Thread-safe.
class Connections {
 public:
  /// `budget`: the longest time for a request's round trip, and for a probe's. `on_change(is_up, reason)` is
  /// called by any thread, without a lock.
  Connections(Connector& connector, std::chrono::nanoseconds budget,
              std::function<void(bool is_up, const std::string& reason)> on_change);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  /// A connection; null if the store is down, or none was free until the deadline.
  std::unique_ptr<Connection> take(std::int64_t deadline_ns) QUERN_EXCLUDES(mutex_);
  void give_back(std::unique_ptr<Connection> connection) QUERN_EXCLUDES(mutex_);
  /// The store failed on the connection, which was taken and is dropped.
  void fail(const Diagnostic& reason) QUERN_EXCLUDES(mutex_);

  /// Connections from now on are new ones, opened by the connector as it is now.
  void renew() QUERN_EXCLUDES(mutex_);
  bool is_up() const QUERN_EXCLUDES(mutex_);
  std::uint64_t failures() const QUERN_EXCLUDES(mutex_);

 private:
  static constexpr std::size_t kMost = 16;
  static constexpr std::chrono::milliseconds kTimeout{2000};  // of the thread, to connect

  /// Lets all know that the store is down. Returns true if it was up.
  bool open_breaker() QUERN_REQUIRES(mutex_);
  void tend() QUERN_EXCLUDES(mutex_);
  Expected<std::unique_ptr<Connection>> connect_and_ping();
  void took(Expected<std::unique_ptr<Connection>> connection) QUERN_EXCLUDES(mutex_);

  Connector& connector_;
  const std::int64_t budget_ns_;
  const std::function<void(bool, const std::string&)> on_change_;
  mutable base::Mutex mutex_;
  base::ConditionVariable changed_;  // for threads that wait for a connection
  base::ConditionVariable wanted_;   // for the thread
  bool stopping_ QUERN_GUARDED_BY(mutex_) = false;
  Breaker breaker_ QUERN_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Connection>> idle_ QUERN_GUARDED_BY(mutex_);
  std::size_t used_ QUERN_GUARDED_BY(mutex_) = 0;
  std::size_t waiting_ QUERN_GUARDED_BY(mutex_) = 0;
  std::uint64_t moves_ QUERN_GUARDED_BY(mutex_) = 0;  // connections that came or were given back
  std::uint64_t failures_ QUERN_GUARDED_BY(mutex_) = 0;
  bool told_down_ QUERN_GUARDED_BY(mutex_) = false;  // on_change_ was called for what is so
  std::thread thread_;
};

}  // namespace quern::store
