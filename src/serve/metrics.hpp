// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/thread_annotations.hpp"
#include "serve/slowest.hpp"

namespace quern::serve {

/// Counts of durations up to each of a few bounds. Thread-safe.
class Histogram {
 public:
  static constexpr std::array<double, 10> kBounds_s = {0.0005, 0.001, 0.005, 0.025, 0.1, 0.25, 1, 5, 20, 60};
  void add(double seconds);
  /// The lines of an OpenMetrics histogram of that name.
  std::string text(const std::string& name) const;

 private:
  std::array<std::atomic<std::uint64_t>, kBounds_s.size() + 1> counts_{};
  std::atomic<std::uint64_t> sum_ns_{0};
};

/// The server's counters. Thread-safe.
struct Metrics {
  std::atomic<std::uint64_t> nvrtc_runs{0};
  std::atomic<std::uint64_t> precompiled_uses{0}, precompiled_headers{0}, precompiled_bytes{0};
  std::atomic<std::uint64_t> compiles_ok{0}, compiles_error{0}, compiles_crashed{0}, compiles_timeout{0},
      compiles_abandoned{0};
  std::atomic<std::uint64_t> hits_memory{0}, hits_disk{0}, hits_shared{0}, hits_store{0};
  std::atomic<std::uint64_t> workers{0}, workers_busy{0}, worker_restarts{0};
  std::atomic<std::uint64_t> queue_length{0}, connections{0};
  Histogram compile_seconds;
  Histogram request_seconds;
  SlowestCompiles slowest;
  const std::int64_t begin_ns = base::now_ns();
  const double started_s = unix_time_s();

  void count_request(const std::string& path, int status) QUERN_EXCLUDES(mutex_);
  std::map<std::pair<std::string, int>, std::uint64_t> requests() const QUERN_EXCLUDES(mutex_);

  /// The whole OpenMetrics text; `more` has lines of other components.
  std::string text(std::uint64_t cache_bytes, std::uint64_t artifact_bytes, const std::string& more) const;

 private:
  mutable base::Mutex mutex_;
  std::map<std::pair<std::string, int>, std::uint64_t> requests_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::serve
