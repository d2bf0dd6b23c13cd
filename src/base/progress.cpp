// SPDX-License-Identifier: Apache-2.0
#include "base/progress.hpp"

#include <exception>

#include "base/log.hpp"

namespace quern {

std::string_view to_string(ProgressStage stage) noexcept {
  switch (stage) {
    case ProgressStage::translate:
      return "translate";
    case ProgressStage::compile:
      return "compile";
    case ProgressStage::load:
      return "load";
    case ProgressStage::generate:
      return "generate";
    case ProgressStage::copy_to_device:
      return "copy to the device";
    case ProgressStage::copy_to_host:
      return "copy to the host";
  }
  return "unknown";
}

namespace base {

bool Work::tell(std::uint64_t done, bool finished) noexcept try {
  if (stop_ != nullptr && stop_->load() && !finished) return false;
  if (slot_ == nullptr) return true;
  const Progress progress{stage_, name_, done, total_, finished};
  bool goes_on = true;
  try {
    slot_->visit([&](const ProgressHandler& handler) { goes_on = handler(progress); });
  } catch (const std::exception& error) {
    log({LogLevel::warning, std::string("the progress handler threw: ") + error.what(), {}});
  } catch (...) {
    log({LogLevel::warning, "the progress handler threw what is no std::exception", {}});
  }
  return goes_on;
} catch (...) {  // no memory for the warning
  return true;
}

Diagnostic cancelled(const std::string& attempted) {
  Diagnostic diagnostic;
  diagnostic.code = "cancelled";
  diagnostic.message = "cannot " + attempted + ": the progress handler cancelled it";
  return diagnostic;
}

}  // namespace base
}  // namespace quern
