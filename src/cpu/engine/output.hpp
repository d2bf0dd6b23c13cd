// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "base/thread_annotations.hpp"

namespace quern::cpu::engine {

inline constexpr std::string_view kDeviceName = "quern CPU device";

/// The output of one call of printf, with its kernel and context.
struct Print {
  std::string text;
  std::string kernel;
  std::uint64_t owner = 0;
};

/// Delivers printf output to a function. If there is none, or it does not accept a text, the text is written
/// to the process's stdout. Texts are delivered whole and one at a time, by any thread; no lock is held while
/// the function runs. Thread-safe.
class Output {
 public:
  /// Returns false if it did not accept the text.
  using Sink = bool (*)(const Print& print);

  /// Null restores the default: stdout.
  void set_sink(Sink sink) QUERN_EXCLUDES(mutex_);
  void write(Print print) QUERN_EXCLUDES(mutex_);
  /// Must be called when a launch that printed has ended. Waits until its texts are delivered and flushes
  /// stdout, so that they come before the next output of the host.
  void flush() QUERN_EXCLUDES(mutex_);

 private:
  base::Mutex mutex_;
  Sink sink_ QUERN_GUARDED_BY(mutex_) = nullptr;
  std::vector<Print> pending_ QUERN_GUARDED_BY(mutex_);
  bool delivering_ QUERN_GUARDED_BY(mutex_) = false;
  bool uses_stdout_ QUERN_GUARDED_BY(mutex_) = false;
  base::ConditionVariable delivered_;
};

/// Logs a message that no CUresult can express (an internal compiler error, a thread that cannot be started).
/// Its first field is the name of the device.
void report(std::string_view message);
void report(LogLevel level, std::string_view message, std::vector<LogField> fields = {},
            std::string_view prefix = "quern CPU device: ");
/// Has the signature of base::EnvComplaint.
void report_variable(const char* variable, std::string_view message);

}  // namespace quern::cpu::engine
