// SPDX-License-Identifier: Apache-2.0
#include "reading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "command.hpp"

namespace quern::cli {
namespace {

const Json& member(const Json& object, const char* name) {
  static const Json kNone = Json::object();
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? *found : kNone;
}

std::uint64_t count(const Json& object, const char* name) { return object.value(name, std::uint64_t{0}); }

void read_requests(const Json& rows, Reading& reading) {
  for (const Json& row : rows) {
    if (row.value("path", "") != "/v1/compile") continue;
    const int status = row.value("status", 0);
    reading.requests += count(row, "count");
    if (status == 429 || status >= 500) reading.failed += count(row, "count");
  }
}

void read_slowest(const Json& rows, Reading& reading) {
  for (const Json& row : rows)
    reading.slowest.push_back({row.value("ms", 0.0), row.value("status", 0), row.value("time_s", 0.0),
                               row.value("name", ""), row.value("language", ""), row.value("request_id", ""),
                               ""});
}

Reading reading_of(const Json& json) {
  Reading reading;
  reading.state = json.value("state", "?");
  reading.nvrtc = member(json, "toolkit").value("nvrtc", "");
  reading.started_s = json.value("started_s", 0.0);
  reading.uptime_s = json.value("uptime_s", 0.0);
  reading.compiled = count(json, "nvrtc_runs");
  reading.queue = count(json, "queue_length");
  reading.connections = count(json, "connections");
  reading.cache_bytes = count(json, "cache_bytes");
  reading.artifact_bytes = count(json, "artifact_bytes");
  const Json& workers = member(json, "workers");
  reading.workers = count(workers, "count");
  reading.busy = count(workers, "busy");
  reading.restarts = count(workers, "restarts");
  const Json& limits = member(json, "limits");
  reading.queue_limit = count(limits, "queue");
  reading.connection_limit = count(limits, "connections");
  for (const auto& [tier, value] : member(json, "hits").items())
    reading.hits.emplace_back(tier, value.get<std::uint64_t>());
  if (json.contains("requests")) read_requests(json["requests"], reading);
  if (json.contains("slowest")) read_slowest(json["slowest"], reading);
  return reading;
}

template <class Value>
Value& tier_of(std::vector<std::pair<std::string, Value>>& tiers, const std::string& name) {
  const auto found =
      std::find_if(tiers.begin(), tiers.end(), [&](const auto& each) { return each.first == name; });
  return found != tiers.end() ? found->second : tiers.emplace_back(name, Value{}).second;
}

double rate(std::uint64_t before, std::uint64_t now, double seconds) {
  return now > before ? static_cast<double>(now - before) / seconds : 0;
}

void add(Reading& sum, const Reading& each, const std::string& label) {
  sum.requests += each.requests;
  sum.failed += each.failed;
  sum.compiled += each.compiled;
  for (const auto& [tier, value] : each.hits) tier_of(sum.hits, tier) += value;
  sum.workers += each.workers;
  sum.busy += each.busy;
  sum.restarts += each.restarts;
  sum.queue += each.queue;
  sum.queue_limit += each.queue_limit;
  sum.connections += each.connections;
  sum.connection_limit += each.connection_limit;
  sum.cache_bytes += each.cache_bytes;
  sum.artifact_bytes += each.artifact_bytes;
  for (SlowRow row : each.slowest) {
    row.server = label;
    sum.slowest.push_back(std::move(row));
  }
}

void add(Rates& sum, const Rates& each) {
  sum.requests += each.requests;
  sum.failed += each.failed;
  sum.compiled += each.compiled;
  for (const auto& [tier, value] : each.hits) tier_of(sum.hits, tier) += value;
}

}  // namespace

Expected<Reading> read_reading(std::string_view json) {
  Diagnostic failure;
  failure.code = "protocol";
  try {
    const Json document = Json::parse(json);
    if (document.is_object() && document.contains("protocol") && document.contains("nvrtc_runs"))
      return reading_of(document);
    failure.message = "its answer has no figures of a compile service";
  } catch (const Json::exception& error) {
    failure.message = fmt::format("its answer cannot be read: {}", error.what());
  }
  return failure;
}

std::optional<Rates> rates_between(const Reading& before, const Reading& now) {
  const double seconds = now.uptime_s - before.uptime_s;
  if (before.started_s != now.started_s || !(seconds > 0)) return std::nullopt;
  Rates rates;
  rates.requests = rate(before.requests, now.requests, seconds);
  rates.failed = rate(before.failed, now.failed, seconds);
  rates.compiled = rate(before.compiled, now.compiled, seconds);
  auto earlier = before.hits;
  for (const auto& [tier, value] : now.hits)
    rates.hits.emplace_back(tier, rate(tier_of(earlier, tier), value, seconds));
  return rates;
}

ServerRow sum_of(const std::vector<ServerRow>& rows) {
  ServerRow sum;
  Rates rates;
  bool all_have_rates = true;
  for (const ServerRow& row : rows) {
    if (!row.now || !row.problem.empty()) continue;
    if (!sum.now) sum.now.emplace();
    add(*sum.now, *row.now, row.label);
    if (row.rates)
      add(rates, *row.rates);
    else
      all_have_rates = false;
  }
  if (!sum.now) return sum;
  if (all_have_rates) sum.rates = std::move(rates);
  std::ranges::sort(sum.now->slowest, std::greater(),
                    [](const SlowRow& row) { return std::tie(row.ms, row.request_id); });
  return sum;
}

}  // namespace quern::cli
