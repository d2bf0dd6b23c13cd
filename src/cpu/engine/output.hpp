// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/thread_annotations.hpp"

namespace quern::cpu::engine {

/// Where device printf goes: the process's stdout, or a function. Texts arrive one at a time and whole, from
/// any thread, and no lock is held while the function runs. Thread-safe.
class Output {
 public:
  using Sink = void (*)(void* user, const char* text, std::size_t size);

  /// Null: stdout again.
  void set_sink(Sink sink, void* user) QUERN_EXCLUDES(mutex_);
  void write(std::string text) QUERN_EXCLUDES(mutex_);
  /// Called when a launch that printed has ended: stdout is flushed, so that the text stands before what the
  /// host prints next.
  void flush() QUERN_EXCLUDES(mutex_);

 private:
  base::Mutex mutex_;
  Sink sink_ QUERN_GUARDED_BY(mutex_) = nullptr;
  void* user_ QUERN_GUARDED_BY(mutex_) = nullptr;
  std::vector<std::string> pending_ QUERN_GUARDED_BY(mutex_);
  bool delivering_ QUERN_GUARDED_BY(mutex_) = false;
  base::ConditionVariable delivered_;
};

/// One line to stderr, with the device's name in front: what no CUresult can say (a diverged barrier, an
/// internal compiler error).
void report(std::string_view message);

}  // namespace quern::cpu::engine
