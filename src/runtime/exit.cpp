// SPDX-License-Identifier: Apache-2.0
#include "runtime/exit.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <vector>

#include "base/env.hpp"
#include "base/exit_handler.hpp"
#include "base/log.hpp"
#include "base/thread_annotations.hpp"
#include "runtime/context.hpp"

namespace quern::runtime {
namespace {

// Exit is a fact about the process, so this flag and the contexts to report on are the process's.
std::atomic<bool> exiting{false};

std::atomic<bool> begun{false};
base::ExitHandler begins{[](int, void*) { begun.store(true, std::memory_order_relaxed); }};

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
    std::string report = const_cast<Context*>(context)->counters().leak_report();
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

void watch_process_exit() noexcept {
  // Exit handlers run in reverse order: one registered now runs before the static destructors of libraries
  // that were loaded before now.
  static const int registered = ::on_exit(
      [](int, void*) {
        exiting.store(true, std::memory_order_relaxed);
        report_leaks();
      },
      nullptr);
  static_cast<void>(registered);
}

bool process_is_exiting() noexcept { return exiting.load(std::memory_order_relaxed); }

void note_object() noexcept { begins.note_object(); }
void watch_exit_of_statics() noexcept { begins.arm(); }
bool exit_has_begun() noexcept { return begun.load(std::memory_order_relaxed); }

void watch_for_leaks(const Context& context) {
  if (!base::env_switch("QUERN_LEAK_REPORT", &base::warn_of_env).value_or(false)) return;
  const base::LockGuard lock(watched().mutex);
  watched().contexts.push_back(&context);
}

void forget_for_leaks(const Context& context) noexcept {
  const base::LockGuard lock(watched().mutex);
  std::erase(watched().contexts, &context);
}

}  // namespace quern::runtime
