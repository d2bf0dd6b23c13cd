// SPDX-License-Identifier: Apache-2.0
// room: base
// What quern has to say beside exceptions and results, for a program that has a log of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "quern/export.hpp"

namespace quern {

/// The most serious first. `info` and `debug` go to a handler only: without one they are not written.
enum class LogLevel : std::uint8_t { error, warning, info, debug };

/// "error", "warning", "info", "debug".
QUERN_API std::string_view to_string(LogLevel level) noexcept;

/// A part of the message by its name: `{"device", "quern CPU device"}`. docs/embedding.md lists the names.
struct LogField {
  std::string name;
  std::string value;
};

/// One message. A value: a handler may keep it, and give it to another thread.
struct LogRecord {
  LogLevel level = LogLevel::warning;
  std::string text;  ///< without a newline at its end; it may hold several lines
  std::vector<LogField> fields;

  /// The value of that field; empty where the record has none of that name.
  std::string_view field(std::string_view name) const noexcept {
    for (const LogField& each : fields)
      if (each.name == name) return each.value;
    return {};
  }
};

/// Called from any thread of the program's and of the CPU device's, from several at once, and from inside
/// quern's functions, which may hold locks then: it must make no call of quern's other than
/// set_log_handler(), to_string() and those of LogRecord, and none of the driver's. What it throws is
/// dropped, and so is what quern would log on the same thread before it returns.
using LogHandler = std::function<void(const LogRecord&)>;

/// From now on `handler` receives what quern would write to stderr, in the whole process; quern then writes
/// nothing there. An empty one: stderr again, as at the beginning. Returns the former handler (empty: there
/// was none), when no other thread is inside it any more: what it uses may be destroyed then. So the caller
/// must hold no lock that the former handler takes. Thread-safe; may be called by a handler.
QUERN_API LogHandler set_log_handler(LogHandler handler);

}  // namespace quern
