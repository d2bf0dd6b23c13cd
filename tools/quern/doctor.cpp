// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>

#include "command.hpp"
#include "commands.hpp"

namespace quern::cli {
namespace {

const char* state_text(Finding::State state) {
  switch (state) {
    case Finding::State::good:
      return "found";
    case Finding::State::missing:
      return "missing";
    case Finding::State::broken:
      return "broken";
    case Finding::State::info:
      return "absent";
  }
  return "";
}

Json to_json(const DoctorReport& report) {
  Json findings = Json::array();
  for (const Finding& finding : report.findings)
    findings.push_back({{"subject", finding.subject},
                        {"state", state_text(finding.state)},
                        {"detail", finding.detail},
                        {"hint", finding.hint},
                        {"looked_at", finding.looked_at}});
  Json environment = Json::array();
  for (const EnvironmentVariable& row : report.environment) {
    environment.push_back({{"name", row.name}, {"value", nullptr}, {"meaning", row.meaning}});
    if (!row.value.empty()) environment.back()["value"] = row.value;
  }
  return {
      {"ready", report.ready}, {"version", version()}, {"findings", findings}, {"environment", environment}};
}

void print(const DoctorReport& report) {
  for (const Finding& finding : report.findings) {
    fmt::print("{:<14} {:<8} {}\n", finding.subject, state_text(finding.state), finding.detail);
    if (!finding.hint.empty()) fmt::print("{:<23} to do: {}\n", "", finding.hint);
    if (finding.state == Finding::State::good) continue;
    for (const std::string& place : finding.looked_at) fmt::print("{:<23} looked at {}\n", "", place);
  }
  fmt::print("\nenvironment\n");
  for (const EnvironmentVariable& row : report.environment)
    fmt::print("  {:<40} {:<16} {}\n", row.name, row.value.empty() ? "(unset)" : row.value, row.meaning);
  fmt::print("\n{}\n", report.ready
                           ? "quern can compile and run kernels on this machine."
                           : "quern cannot compile and run kernels here yet; see what is missing above.");
}

}  // namespace

int doctor_command(bool json) {
  const DoctorReport report = doctor();
  if (json)
    print_json(to_json(report));
  else
    print(report);
  return report.ready ? kDone : kFailed;
}

}  // namespace quern::cli
