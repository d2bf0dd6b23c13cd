// SPDX-License-Identifier: Apache-2.0
// Good code of a kernel that a background thread makes while quick code of it runs
// (docs/decisions/0050-quick-code-first.md).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/background.hpp"
#include "cpu/compiler/compiler.hpp"
#include "cpu/device/module/read_ptx.hpp"

namespace quern::cpu::device {

/// Thread-safe.
class BackgroundCode {
 public:
  /// Begins to make the code. Returns null if the system starts no thread.
  static std::shared_ptr<const BackgroundCode> begin(std::shared_ptr<const SharedPtx> ptx, std::string kernel,
                                                     const Specialisation& specialisation);

  bool done() const noexcept { return task_->done(); }
  /// After done(): null if the code could not be made.
  const std::shared_ptr<const KernelCode>& code() const noexcept { return made_->code; }

 private:
  /// Written by the thread that makes the code, before the task is done.
  struct Made {
    std::shared_ptr<const KernelCode> code;
  };
  BackgroundCode(std::shared_ptr<const Made> made, std::shared_ptr<const base::Task> task)
      : made_(std::move(made)), task_(std::move(task)) {}

  std::shared_ptr<const Made> made_;
  std::shared_ptr<const base::Task> task_;
};

/// Waits until no code is being made in the background, or `end`: code that is finished is on the disk.
void wait_for_background_code(std::chrono::steady_clock::time_point end) noexcept;

}  // namespace quern::cpu::device
