// SPDX-License-Identifier: Apache-2.0
// Captures everything that the process writes to stdout and stderr.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace quern::test {

/// During its lifetime, descriptors 1 and 2 refer to a file. Make no assertions in its scope, since their
/// output would go there.
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

  /// Ends capturing and returns all that was written.
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

/// Returns the text that `action` writes.
template <class Action>
std::string output_of(Action&& action) {
  CapturedOutput output;
  action();
  return output.end();
}

}  // namespace quern::test
