// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/handler_slot.hpp"
#include "quern/diagnostic.hpp"
#include "quern/progress.hpp"

namespace quern::base {

using ProgressSlot = HandlerSlot<bool(const Progress&)>;

/// Tells the handler in a slot of one piece of work. Without a handler it does nothing, and nothing is
/// cancelled. Thread-compatible.
class Work {
 public:
  /// `slot` may be null. `total` is 0 if it is not known.
  Work(ProgressSlot* slot, ProgressStage stage, std::string_view name, std::uint64_t total)
      : slot_(slot), stage_(stage), name_(name), total_(total) {}

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
};

/// The diagnostic "cannot compile x.cu: the progress handler cancelled it", with code "cancelled".
Diagnostic cancelled(const std::string& attempted);

}  // namespace quern::base
