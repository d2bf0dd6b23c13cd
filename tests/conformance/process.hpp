// SPDX-License-Identifier: Apache-2.0
// Tests with two processes: the other one is this program again, which runs one test case that the
// environment gives its part.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "suite.hpp"

namespace quern::conformance {

inline constexpr const char* kHandle = "QUERN_TEST_HANDLE";
inline constexpr const char* kDescriptor = "QUERN_TEST_DESCRIPTOR";

template <class Handle>
std::string to_hex(const Handle& handle) {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&handle);
  std::string text;
  for (std::size_t i = 0; i < sizeof handle; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}
template <class Handle>
Handle from_hex(const std::string& text) {
  Handle handle{};
  auto* const bytes = reinterpret_cast<unsigned char*>(&handle);
  REQUIRE(text.size() == 2 * sizeof handle);
  for (std::size_t i = 0; i < sizeof handle; ++i)
    bytes[i] = static_cast<unsigned char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return handle;
}

/// This program, running one test case. It inherits descriptors that are not close-on-exec.
class Process {
 public:
  explicit Process(const char* test_case) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const std::string device = "--device=" + device_name(), filter = std::string("-tc=") + test_case;
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      ::execl("/proc/self/exe", "conformance", device.c_str(), filter.c_str(), "--no-skip", nullptr);
      ::_exit(1);
    }
    ::close(ends[1]);
    output_ = ::fdopen(ends[0], "r");
  }
  ~Process() {
    kill();
    if (output_ != nullptr) ::fclose(output_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Returns the rest of the next line of its output that begins with `key`.
  std::string answer(const std::string& key) {
    char line[1024];
    while (std::fgets(line, sizeof line, output_) != nullptr) {
      std::string text(line);
      output_text_ += text;
      if (!text.starts_with(key)) continue;
      text.erase(0, key.size());
      if (!text.empty() && text.back() == '\n') text.pop_back();
      return text;
    }
    return {};
  }
  /// True if it prints that line.
  bool answers(const std::string& line) { return answer(line).empty() && !std::feof(output_); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  /// True if its test case passed; otherwise its output is a message of this test.
  bool succeeds() {
    for (int next = std::fgetc(output_); next != EOF; next = std::fgetc(output_))
      output_text_ += static_cast<char>(next);
    int status = 0;
    const bool ended = ::waitpid(pid_, &status, 0) == pid_;
    pid_ = 0;
    const bool passed = ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!passed) MESSAGE(output_text_);
    return passed;
  }

 private:
  ::pid_t pid_ = 0;
  std::FILE* output_ = nullptr;
  std::string output_text_;
};

/// Tells the process that started this one, and waits until that ends it.
inline void answer_and_wait(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
  ::pause();
}

inline std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace quern::conformance
