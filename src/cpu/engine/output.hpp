// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
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
  const void* launch = nullptr;  ///< identifies the launch while it runs
};

/// Delivers printf output to a function. If there is none, or it does not accept a text, the text is written
/// to the process's stdout. Texts are delivered whole, in order and one at a time, by any thread that prints
/// or flushes; no lock of this class is held while the function runs. Thread-safe.
class Output {
 public:
  /// Returns false if it did not accept the text.
  using Sink = bool (*)(const Print& print) noexcept;
  /// Returns true if the calling thread's launch has been asked to end. Takes no lock. Empty: never.
  using Stopped = std::function<bool()>;

  /// A thread that prints waits while the pending texts have this size, the default of
  /// CU_LIMIT_PRINTF_FIFO_SIZE. (A GPU overwrites the oldest texts.)
  static constexpr std::size_t kMostPendingBytes = std::size_t{1} << 20;

  /// Null restores the default: stdout.
  void set_sink(Sink sink) QUERN_EXCLUDES(mutex_);
  /// Waits while there is no room, and may deliver texts of others. Once the launch is stopped it does not
  /// wait, neither for room nor for stdout: the text may be lost, those of others stay pending. Throws
  /// std::bad_alloc.
  void write(Print print, const Stopped& stopped = {}) QUERN_EXCLUDES(mutex_);
  /// Must be called when a launch that printed has ended. Waits until its texts are delivered and flushes
  /// stdout, so that they come before the next output of the host. Once the launch is stopped it does not
  /// wait, and drops those of its texts that are pending.
  void flush(const void* launch = nullptr, const Stopped& stopped = {}) QUERN_EXCLUDES(mutex_);
  /// The size of the texts that are not delivered yet, with what is needed to keep them.
  std::size_t pending_bytes() QUERN_EXCLUDES(mutex_);

 private:
  struct Pending {
    Print print;
    std::uint64_t number = 0;  ///< of this text, counted from 1
    std::size_t written = 0;   ///< the part of the text that is in stdout already
    std::size_t bytes() const noexcept { return sizeof *this + print.text.size() + print.kernel.size(); }
  };

  bool is_delivered(std::uint64_t number) const QUERN_REQUIRES(mutex_) {
    return pending_.empty() || pending_.front().number > number;
  }
  /// True if threads that waited for room go on: not after each text.
  bool has_room() const QUERN_REQUIRES(mutex_) { return pending_bytes_ <= kMostPendingBytes / 2; }
  /// Delivers the texts up to `last`, and goes on until none is pending or another thread waits, which then
  /// takes the delivery over. Ends earlier if the launch is stopped. Some text must be pending.
  void deliver(std::uint64_t last, const Stopped& stopped) QUERN_REQUIRES(mutex_);
  /// Returns false if there is no room and the launch is stopped.
  bool await_room(const Stopped& stopped) QUERN_REQUIRES(mutex_);
  /// Waits for some milliseconds or until it is ready.
  template <class Ready>
  void wait(Ready ready) QUERN_REQUIRES(mutex_);
  void drop(const void* launch) QUERN_REQUIRES(mutex_);

  base::Mutex mutex_;
  Sink sink_ QUERN_GUARDED_BY(mutex_) = nullptr;
  /// In the order of delivery. While a thread delivers, the first one is its, and stays where it is.
  std::list<Pending> pending_ QUERN_GUARDED_BY(mutex_);
  std::size_t pending_bytes_ QUERN_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_number_ QUERN_GUARDED_BY(mutex_) = 0;
  std::uint32_t waiting_ QUERN_GUARDED_BY(mutex_) = 0;  ///< threads that wait for room or for their texts
  bool delivering_ QUERN_GUARDED_BY(mutex_) = false;
  bool uses_stdout_ QUERN_GUARDED_BY(mutex_) = false;
  base::ConditionVariable changed_;
};

/// Logs a message that no CUresult can express (an internal compiler error, a thread that cannot be started).
/// Its first field is the name of the device.
void report(std::string_view message);
void report(LogLevel level, std::string_view message, std::vector<LogField> fields = {},
            std::string_view prefix = "quern CPU device: ");
/// Has the signature of base::EnvComplaint.
void report_variable(const char* variable, std::string_view message);

}  // namespace quern::cpu::engine
