// SPDX-License-Identifier: Apache-2.0
// component: base
// Messages that quern cannot return or throw, for programs that keep a log of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "quern/export.hpp"

namespace quern {

/// The most serious level first. Only a handler receives `info` and `debug`; quern never writes them to
/// stderr.
enum class LogLevel : std::uint8_t { error, warning, info, debug };

/// "error", "warning", "info", "debug".
QUERN_API std::string_view to_string(LogLevel level) noexcept;

/// A named part of the message, such as `{"device", "quern CPU device"}`. docs/embedding.md lists the names.
struct LogField {
  std::string name;
  std::string value;
};

/// One message. A value: a handler may keep it and pass it to another thread.
struct LogRecord {
  LogLevel level = LogLevel::warning;
  std::string text;  ///< without a newline at its end; it may hold several lines
  std::vector<LogField> fields;

  /// The value of that field; empty if the record has no such field.
  std::string_view field(std::string_view name) const noexcept {
    for (const LogField& each : fields)
      if (each.name == name) return each.value;
    return {};
  }
};

/// Called by any thread of the program or of the CPU device, by several at once, and from inside functions of
/// quern, which may hold locks. It must not call quern, except set_log_handler(), to_string() and the
/// functions of LogRecord, and must not call the driver. Exceptions that it throws are dropped, and so are
/// messages that quern would log on the same thread before it returns.
using LogHandler = std::function<void(const LogRecord&)>;

/// From now on `handler` receives all messages of the process, and quern writes nothing to stderr. An empty
/// handler restores the default: errors and warnings go to stderr. Returns the former handler, which is empty
/// if there was none. The function returns when no other thread is inside the former handler, so the objects
/// that it uses may be destroyed afterwards; therefore the caller must not hold a lock that the former
/// handler takes. Thread-safe; a handler may call it.
QUERN_API LogHandler set_log_handler(LogHandler handler);

}  // namespace quern
