// SPDX-License-Identifier: Apache-2.0
// The terminal on stdout, for a command that draws on all of it.
#pragma once

#include <termios.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace quern::cli {

struct ScreenSize {
  std::size_t width = 80;
  std::size_t height = 24;
  friend bool operator==(const ScreenSize&, const ScreenSize&) = default;
};

/// True if stdout is a terminal that understands cursor movements.
bool stdout_is_screen();

/// Shows a separate screen during its lifetime, and then restores the terminal. Thread-compatible.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// The terminal's size at this moment.
  ScreenSize size() const;
  /// Replaces the contents of the screen in one write. Lines beyond its size are not shown. Throws
  /// OutputError.
  void draw(const std::vector<std::string>& lines);
  /// Waits for a key for that time. Returns it, or '\0'.
  char key(std::chrono::milliseconds timeout);

 private:
  std::optional<termios> before_;  // of stdin, if that is a terminal
  bool keys_ended_ = false;
};

}  // namespace quern::cli
