// SPDX-License-Identifier: Apache-2.0
// quern bench: checks the cases marked `bench` once, and then measures their time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "arrays/files.hpp"
#include "cases.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "judge.hpp"
#include "terminal/output.hpp"
#include "terminal/progress.hpp"

namespace quern::cli {
namespace {

/// One case on one device; milliseconds of a launch.
struct Row {
  std::string name;
  std::string device;
  BenchFigures figures;
  double median_ms = 0;
  double minimum_ms = 0;
  std::size_t launches = 0;
  std::string failure;   ///< the reason why there are no times
  double before_ms = 0;  ///< the median in the document to compare with; 0: it has none

  double gigabytes() const { return median_ms > 0 ? figures.bytes / median_ms / 1e6 : 0; }
  double gigaflops() const { return median_ms > 0 ? figures.flops / median_ms / 1e6 : 0; }
};

std::string key(const std::string& name, const std::string& device) { return name + "\n" + device; }

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const std::size_t middle = times.size() / 2;
  return times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
}

/// The first launch is checked and not timed; the later ones start from its results.
void time_case(const Session& session, const Case& of, const BenchSettings& settings, Row& row) {
  Job job(session, load_kernel(session, of.kernel, of.load, of.launch), of.launch);
  job.launch();
  if (const std::optional<std::string> wrong = wrong_result(session, of, job)) {
    row.failure = *wrong;
    return;
  }
  std::vector<double> times;
  double total = 0;
  while (times.size() < settings.least || total < settings.seconds * 1e3) {
    times.push_back(job.launch());
    total += times.back();
    if (times.size() >= 100'000) break;
  }
  row.median_ms = median(times);
  row.minimum_ms = *std::min_element(times.begin(), times.end());
  row.launches = times.size();
}

std::vector<Case> marked_cases(const BenchSettings& settings) {
  std::vector<Case> cases;
  for (const std::string& path : settings.paths)
    for (const std::filesystem::path& file : find_case_files(path))
      for (Case& of : read_cases(file))
        if (of.bench && (file.string() + ": " + of.name).find(settings.word) != std::string::npos)
          cases.push_back(std::move(of));
  if (cases.empty())
    throw Error(
        ErrorCode::usage,
        "there is nothing to time: no case below PATH has a `bench` and matches -k\nhint: mark one with "
        "bench = { flops = \"2 * 256**3\" }");
  return cases;
}

std::vector<Session> sessions(const BenchSettings& settings) {
  std::vector<Session> opened;
  if (!settings.device.empty()) return {Session(settings.device)};
  for (const Device& device : devices()) opened.emplace_back(device.label());
  if (opened.empty()) fail_without_device();
  return opened;
}

/// The medians of an earlier `quern bench --json`, by case and device.
std::map<std::string, double> read_medians(const std::string& path) {
  std::map<std::string, double> medians;
  const Json document = Json::parse(read_whole_file(path), nullptr, false);
  const auto benchmarks = document.is_object() ? document.find("benchmarks") : document.end();
  if (!document.is_object() || benchmarks == document.end() || !benchmarks->is_array())
    throw Error(
        ErrorCode::usage,
        fmt::format(
            "cannot compare with {}: it is no document that `quern bench --json` printed\nhint: print "
            "one with quern bench --json >FILE.json",
            path));
  for (const Json& row : *benchmarks) {
    if (!row.is_object() || !row.contains("name") || !row.contains("device") || !row.contains("median_ms"))
      continue;
    if (row["name"].is_string() && row["device"].is_string() && row["median_ms"].is_number())
      medians[key(row["name"], row["device"])] = row["median_ms"];
  }
  return medians;
}

std::string figure_text(double value) { return value > 0 ? fmt::format("{:.2f}", value) : "-"; }

void print(const std::vector<Row>& rows, bool compared) {
  std::size_t width = 4;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  fmt::print("{:<{}} {:<8} {:>10} {:>10} {:>9} {:>9} {:>8}{}\n", "case", width, "device", "median ms",
             "min ms", "GB/s", "GFLOP/s", "launches", compared ? "   before   ratio" : "");
  for (const Row& row : rows) {
    if (!row.failure.empty()) {
      fmt::print("{:<{}} {:<8} FAILED {}\n", row.name, width, row.device, row.failure);
      continue;
    }
    fmt::print("{:<{}} {:<8} {:>10.4f} {:>10.4f} {:>9} {:>9} {:>8}", row.name, width, row.device,
               row.median_ms, row.minimum_ms, figure_text(row.gigabytes()), figure_text(row.gigaflops()),
               row.launches);
    if (compared && row.before_ms > 0)
      fmt::print(" {:>8.4f} {:>7.2f}", row.before_ms, row.median_ms / row.before_ms);
    else if (compared)
      fmt::print(" {:>8} {:>7}", "-", "-");
    fmt::print("\n");
  }
}

Json document(const std::vector<Row>& rows, bool compared) {
  Json list = Json::array();
  for (const Row& row : rows) {
    Json item = {{"name", row.name}, {"device", row.device}};
    if (!row.failure.empty()) {
      item["error"] = row.failure;
    } else {
      item.update({{"median_ms", row.median_ms}, {"min_ms", row.minimum_ms}, {"launches", row.launches}});
      if (row.figures.bytes > 0) item["gb_per_s"] = row.gigabytes();
      if (row.figures.flops > 0) item["gflop_per_s"] = row.gigaflops();
      if (compared && row.before_ms > 0) item["ratio"] = row.median_ms / row.before_ms;
    }
    list.push_back(std::move(item));
  }
  return {{"benchmarks", list}};
}

}  // namespace

int bench_command(const BenchSettings& settings) {
  ::setenv("QUERN_CPU_TIER", "good", 0);  // no launch runs the code that is made first
  const std::vector<Case> cases = marked_cases(settings);
  const std::map<std::string, double> before =
      settings.compare.empty() ? std::map<std::string, double>() : read_medians(settings.compare);
  std::vector<Row> rows;
  {
    const std::vector<Session> opened = sessions(settings);
    Progress progress(cases.size() * opened.size(), settled(settings.progress, false, settings.json));
    for (const Session& session : opened)
      for (const Case& of : cases) {
        Row row;
        row.name = fmt::format("{}: {}", of.file.string(), of.name);
        row.device = session.device().label();
        row.figures = *of.bench;
        const auto found = before.find(key(row.name, row.device));
        if (found != before.end()) row.before_ms = found->second;
        try {
          time_case(session, of, settings, row);
        } catch (const Error& error) {
          if (error.code() == ErrorCode::device_fault) throw;  // no kernel can run in this session any more
          row.failure = error.what();
        }
        progress.done(row.name);
        rows.push_back(std::move(row));
      }
  }
  const bool compared = !settings.compare.empty();
  end_line();
  if (settings.json)
    print_json(document(rows, compared));
  else
    print(rows, compared);
  const bool failed =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.failure.empty(); });
  return failed ? kFailed : kDone;
}

}  // namespace quern::cli
