// SPDX-License-Identifier: Apache-2.0
// The driver calls of a program that `quern exec --stats` ran.
#pragma once

#include <string>

namespace quern::cli {

/// A temporary file in which the counting library stores its counts.
class CallCounts {
 public:
  /// Throws Error(io).
  CallCounts();
  ~CallCounts();
  CallCounts(const CallCounts&) = delete;
  CallCounts& operator=(const CallCounts&) = delete;

  const std::string& file() const noexcept { return file_; }
  /// The counts as text for users.
  std::string text() const;

 private:
  std::string file_;
};

}  // namespace quern::cli
