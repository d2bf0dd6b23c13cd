// SPDX-License-Identifier: Apache-2.0
#include "serve/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace quern::serve {

void Histogram::add(double seconds) {
  const auto bound = std::lower_bound(kBounds_s.begin(), kBounds_s.end(), seconds);
  ++counts_[static_cast<std::size_t>(bound - kBounds_s.begin())];
  sum_ns_ += static_cast<std::uint64_t>(std::max(0.0, seconds) * 1e9);
}

std::string Histogram::text(const std::string& name) const {
  std::string text = fmt::format("# TYPE {} histogram\n", name);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    total += counts_[i];
    const std::string bound = i < kBounds_s.size() ? fmt::format("{}", kBounds_s[i]) : "+Inf";
    text += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bound, total);
  }
  text += fmt::format("{}_count {}\n", name, total);
  text += fmt::format("{}_sum {:.9f}\n", name, static_cast<double>(sum_ns_.load()) * 1e-9);
  return text;
}

void Metrics::count_request(const std::string& path, int status) {
  const base::LockGuard lock(mutex_);
  ++requests_[{path, status}];
}

std::map<std::pair<std::string, int>, std::uint64_t> Metrics::requests() const {
  const base::LockGuard lock(mutex_);
  return requests_;
}

std::string Metrics::text(std::uint64_t cache_bytes, std::uint64_t artifact_bytes,
                          const std::string& more) const {
  std::string text = "# TYPE quern_requests counter\n";
  for (const auto& [label, count] : requests())
    text += fmt::format("quern_requests_total{{path=\"{}\",status=\"{}\"}} {}\n", label.first, label.second,
                        count);
  const auto counters = [&](const char* name, const char* label,
                            std::initializer_list<std::pair<const char*, std::uint64_t>> rows) {
    text += fmt::format("# TYPE {} counter\n", name);
    for (const auto& [value, count] : rows)
      text += *label == '\0' ? fmt::format("{}_total {}\n", name, count)
                             : fmt::format("{}_total{{{}=\"{}\"}} {}\n", name, label, value, count);
  };
  const auto gauge = [&](const char* name, std::uint64_t value) {
    text += fmt::format("# TYPE {} gauge\n{} {}\n", name, name, value);
  };
  counters("quern_compiles", "result",
           {{"ok", compiles_ok},
            {"error", compiles_error},
            {"crashed", compiles_crashed},
            {"timeout", compiles_timeout},
            {"abandoned", compiles_abandoned}});
  counters("quern_nvrtc_runs", "", {{"", nvrtc_runs}});
  counters("quern_precompiled_uses", "", {{"", precompiled_uses}});
  counters("quern_cache_hits", "tier",
           {{"memory", hits_memory}, {"disk", hits_disk}, {"shared", hits_shared}, {"store", hits_store}});
  counters("quern_worker_restarts", "", {{"", worker_restarts}});
  gauge("quern_precompiled_headers", precompiled_headers);
  gauge("quern_precompiled_bytes", precompiled_bytes);
  gauge("quern_workers", workers);
  gauge("quern_workers_busy", workers_busy);
  gauge("quern_queue_length", queue_length);
  gauge("quern_connections", connections);
  gauge("quern_cache_bytes", cache_bytes);
  gauge("quern_artifact_bytes", artifact_bytes);
  text += compile_seconds.text("quern_compile_seconds");
  text += request_seconds.text("quern_request_seconds");
  return text + more + "# EOF\n";
}

}  // namespace quern::serve
