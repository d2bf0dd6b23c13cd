// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <atomic>
#include <cstdio>
#include <new>
#include <string>

#include "base/handler_slot.hpp"
#include "base/held_signal.hpp"
#include "base/printable.hpp"

namespace quern {

std::string_view to_string(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::error:
      return "error";
    case LogLevel::warning:
      return "warning";
    case LogLevel::info:
      return "info";
    case LogLevel::debug:
      return "debug";
  }
  return "unknown";
}

namespace base {
namespace {

using LogSlot = HandlerSlot<void(const LogRecord&)>;
LogSlot& log_slot() {
  static auto* const slot = new LogSlot;  // exit handlers log too
  return *slot;
}

std::atomic<LogForward> forward_to{nullptr};

bool is_taken(const LogRecord& record) noexcept {
  if (offer_log(record)) return true;
  try {
    const LogForward forward = forward_to.load();
    return forward != nullptr && forward(record);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void call_trimmed(const LogHandler& handler, const LogRecord& record) {
  if (!record.text.ends_with('\n')) return handler(record);
  LogRecord trimmed = record;
  trimmed.text.pop_back();
  handler(trimmed);
}

}  // namespace

bool offer_log(const LogRecord& record) noexcept {
  try {
    return log_slot().visit([&](const LogHandler& handler) { call_trimmed(handler, record); });
  } catch (...) {  // it cannot be reported anywhere else
    return true;
  }
}

void forward_log(LogForward forward) noexcept { forward_to.store(forward); }
bool is_log_forwarded() noexcept { return forward_to.load() != nullptr; }

void log(const LogRecord& record, std::string_view prefix) noexcept {
  if (is_taken(record) || record.level > LogLevel::warning) return;
  const HeldSignal quiet(SIGXFSZ);
  try {  // in one piece: other threads write to stderr too
    const std::string line = std::string(prefix) + printable(record.text) + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (...) {
    std::fwrite(record.text.data(), 1, record.text.size(), stderr);
    std::fputc('\n', stderr);
  }
}

}  // namespace base

LogHandler set_log_handler(LogHandler handler) { return base::log_slot().exchange(std::move(handler)); }

}  // namespace quern
