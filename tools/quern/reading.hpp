// SPDX-License-Identifier: Apache-2.0
// The statistics of compile services as `quern top` needs them: parses /v1/stats (docs/protocol.md), compares
// it with the previous reading, and adds readings up.
#pragma once

#include <quern/expected.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quern::cli {

struct SlowRow {
  double ms = 0;
  int status = 0;
  double time_s = 0;  ///< Unix time
  std::string name;
  std::string language;
  std::string request_id;
  std::string server;  ///< the label of the row to which it belongs
};

/// The statistics of one server at one moment; counters since its start. Texts come from the server and are
/// not safe to print.
struct Reading {
  std::string state;
  std::string nvrtc;
  double started_s = 0;  ///< Unix time; distinguishes two runs of a server
  double uptime_s = 0;
  std::uint64_t requests = 0;                               ///< answers to POST /v1/compile
  std::uint64_t failed = 0;                                 ///< of these with the status 429 or from 500
  std::uint64_t compiled = 0;                               ///< runs of NVRTC
  std::vector<std::pair<std::string, std::uint64_t>> hits;  ///< by tier, in the server's order
  std::uint64_t workers = 0, busy = 0, restarts = 0;
  std::uint64_t queue = 0, queue_limit = 0;
  std::uint64_t connections = 0, connection_limit = 0;
  std::uint64_t cache_bytes = 0, artifact_bytes = 0;
  std::vector<SlowRow> slowest;
};

/// Missing members count as 0, since servers may have other versions. Fails for any other document.
Expected<Reading> read_reading(std::string_view json);

/// Events a second between two readings.
struct Rates {
  double requests = 0, failed = 0, compiled = 0;
  std::vector<std::pair<std::string, double>> hits;
};

/// Nothing if the server was restarted between the two or no time has passed. Never negative.
std::optional<Rates> rates_between(const Reading& before, const Reading& now);

/// A server in the view.
struct ServerRow {
  std::string label;
  std::optional<Reading> now;  ///< the last answer
  std::optional<Rates> rates;
  std::string problem;  ///< not empty: it did not answer this time, and `now` is older
};

/// The sum of all servers that answered this time, with the slowest compiles of all. `now` is empty if none
/// did; `rates` is empty if one of them has none.
ServerRow sum_of(const std::vector<ServerRow>& rows);

}  // namespace quern::cli
