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

/// What one call of printf printed, and for whom: the kernel, and the context that it runs in.
struct Print {
  std::string text;
  std::string kernel;
  std::uint64_t owner = 0;
};

/// Where device printf goes: a function, or, where there is none or it does not want it, the process's
/// stdout. Texts arrive one at a time and whole, from any thread, and no lock is held while the function
/// runs. Thread-safe.
class Output {
 public:
  /// False: it did not take the text.
  using Sink = bool (*)(const Print& print);

  /// Null: stdout again.
  void set_sink(Sink sink) QUERN_EXCLUDES(mutex_);
  void write(Print print) QUERN_EXCLUDES(mutex_);
  /// Called when a launch that printed has ended: what it printed has been delivered, and what went to stdout
  /// is flushed, so that the text stands before what the host prints next.
  void flush() QUERN_EXCLUDES(mutex_);

 private:
  base::Mutex mutex_;
  Sink sink_ QUERN_GUARDED_BY(mutex_) = nullptr;
  std::vector<Print> pending_ QUERN_GUARDED_BY(mutex_);
  bool delivering_ QUERN_GUARDED_BY(mutex_) = false;
  bool uses_stdout_ QUERN_GUARDED_BY(mutex_) = false;
  base::ConditionVariable delivered_;
};

/// What no CUresult can say (an internal compiler error, a thread that cannot be started), to the log, with
/// the device's name as its first field.
void report(std::string_view message);
void report(LogLevel level, std::string_view message, std::vector<LogField> fields = {},
            std::string_view prefix = "quern CPU device: ");
/// A base::EnvComplaint.
void report_variable(const char* variable, std::string_view message);

}  // namespace quern::cpu::engine
