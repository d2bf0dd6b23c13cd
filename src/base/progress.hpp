// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/handler_slot.hpp"
#include "quern/diagnostic.hpp"
#include "quern/progress.hpp"

namespace quern::base {

using ProgressSlot = HandlerSlot<bool(const Progress&)>;

/// While it lives, work that this thread begins ends, as if a handler cancelled it, when the flag becomes
/// true.
class StopScope {
 public:
  explicit StopScope(const std::atomic<bool>& flag) noexcept : before_(current_) { current_ = &flag; }
  ~StopScope() { current_ = before_; }
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
  /// This thread's flag, or null.
  static const std::atomic<bool>* current() noexcept { return current_; }

 private:
  static inline thread_local const std::atomic<bool>* current_ = nullptr;
  const std::atomic<bool>* const before_;
};

/// Tells the handler in a slot of one piece of work. Without a handler it does nothing, and nothing is
/// cancelled. Thread-compatible.
class Work {
 public:
  /// `slot` may be null. `total` is 0 if it is not known.
  Work(ProgressSlot* slot, ProgressStage stage, std::string_view name, std::uint64_t total)
      : slot_(slot), stage_(stage), name_(name), total_(total) {}

  /// True if there is a handler or a stop flag.
  bool told() const { return stop_ != nullptr || (slot_ != nullptr && !slot_->empty()); }

  /// Returns false if the handler cancels the work.
  bool begin() noexcept { return tell(0, false); }
  bool advance(std::uint64_t done) noexcept { return tell(done, false); }
  void finish(std::uint64_t done) noexcept { tell(done, true); }

 private:
  bool tell(std::uint64_t done, bool finished) noexcept;

  ProgressSlot* const slot_;
  const ProgressStage stage_;
  const std::string name_;
  const std::uint64_t total_;
  const std::atomic<bool>* const stop_ = StopScope::current();
};

/// The diagnostic "cannot compile x.cu: the progress handler cancelled it", with code "cancelled".
Diagnostic cancelled(const std::string& attempted);

}  // namespace quern::base
