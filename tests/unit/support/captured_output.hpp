// SPDX-License-Identifier: Apache-2.0
// Captures all that the process writes to its stdout and stderr.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace quern::test {

/// Descriptors 1 and 2 lead to a file while it lives. Make no assertions in its scope: their output
/// goes there too.
class CapturedOutput {
 public:
  CapturedOutput() {
    std::fflush(nullptr);
    for (int i = 0; i < 2; ++i) saved_[i] = ::dup(i + 1);
    for (int i = 0; i < 2; ++i)
      if (::dup2(::fileno(file_), i + 1) < 0) std::abort();
  }
  ~CapturedOutput() {
    end();
    std::fclose(file_);
  }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  /// All that was written so far, and the end of capturing.
  std::string end() {
    if (ended_) return {};
    ended_ = true;
    std::fflush(nullptr);
    for (int i = 0; i < 2; ++i) {
      ::dup2(saved_[i], i + 1);
      ::close(saved_[i]);
    }
    std::string text;
    std::rewind(file_);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) text += static_cast<char>(c);
    return text;
  }

 private:
  std::FILE* const file_ = std::tmpfile();
  int saved_[2];
  bool ended_ = false;
};

/// Returns what `action` writes.
template <class Action>
std::string output_of(Action&& action) {
  CapturedOutput output;
  action();
  return output.end();
}

}  // namespace quern::test
