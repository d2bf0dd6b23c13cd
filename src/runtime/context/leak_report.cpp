// SPDX-License-Identifier: Apache-2.0
#include "runtime/context/leak_report.hpp"

#include <string>
#include <vector>

#include "base/env.hpp"
#include "base/log.hpp"
#include "base/thread_annotations.hpp"
#include "runtime/context/context.hpp"
#include "runtime/device/exit.hpp"

namespace quern::runtime {
namespace {

// The process exits once, so these contexts are the process's.
struct Watched {
  base::Mutex mutex;
  std::vector<const Context*> contexts QUERN_GUARDED_BY(mutex);
};
Watched& watched() {
  static auto* const instance = new Watched;  // outlives every static object
  return *instance;
}

std::vector<LogRecord> leak_records() {
  const base::LockGuard lock(watched().mutex);
  std::vector<LogRecord> records;
  for (const Context* context : watched().contexts) {
    std::string report = context->resources().counters().leak_report();
    if (report.empty()) continue;
    if (report.back() == '\n') report.pop_back();
    const std::string& device = context->device().name;
    records.push_back(
        {LogLevel::warning, "still live at exit on " + device + ":\n" + report, {{"device", device}}});
  }
  return records;
}

void report_leaks() {
  for (const LogRecord& record : leak_records()) base::log(record, "quern: ");
}

}  // namespace

void watch_for_leaks(const Context& context) {
  if (!base::env_switch("QUERN_LEAK_REPORT", &base::warn_of_env).value_or(false)) return;
  call_at_process_exit(&report_leaks);
  const base::LockGuard lock(watched().mutex);
  watched().contexts.push_back(&context);
}

void forget_for_leaks(const Context& context) noexcept {
  const base::LockGuard lock(watched().mutex);
  std::erase(watched().contexts, &context);
}

}  // namespace quern::runtime
