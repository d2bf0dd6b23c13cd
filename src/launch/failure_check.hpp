// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "runtime/context/module.hpp"

namespace quern::launch {

/// Reads and reports the failures that a debug build (Kernel Python's debug=True) detected in a launch.
/// Immutable; thread-compatible: if launches run at once on several streams, one of them reports a failure.
class FailureCheck {
 public:
  FailureCheck(const runtime::Module& module, std::string kernel);

  /// Waits for the stream; throws Error(device_fault) with source line and reason if the kernel has failed,
  /// and makes the module ready for the next launch.
  void after_launch(const runtime::Context& context, CUstream stream) const;

 private:
  std::string kernel_;
  std::string file_;
  std::optional<runtime::ModuleVariable> failure_;
};

}  // namespace quern::launch
