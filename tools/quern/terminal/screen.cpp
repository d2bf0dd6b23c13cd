// SPDX-License-Identifier: Apache-2.0
#include "terminal/screen.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "terminal/output.hpp"

namespace quern::cli {
namespace {

// Switches to the alternate screen, hides the cursor, and disables automatic wrapping; and back (xterm's
// control sequences).
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
constexpr std::string_view kLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kClearLine = "\x1b[K";
constexpr std::string_view kClearBelow = "\x1b[J";

}  // namespace

bool stdout_is_screen() {
  const char* const kind = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) != 0 && kind != nullptr && std::string_view(kind) != "dumb";
}

Screen::Screen() {
  termios state{};
  if (::tcgetattr(STDIN_FILENO, &state) == 0) {
    before_ = state;
    state.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    state.c_cc[VSUSP] = _POSIX_VDISABLE;  // a stopped program would leave its screen visible
    ::tcsetattr(STDIN_FILENO, TCSANOW, &state);
  }
  print_text(kEnter);
  flush_output();
}

Screen::~Screen() {
  if (before_) ::tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
  std::fwrite(kLeave.data(), 1, kLeave.size(), stdout);
  std::fflush(stdout);
}

ScreenSize Screen::size() const {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

void Screen::draw(const std::vector<std::string>& lines) {
  const std::size_t height = size().height;
  std::string text(kHome);
  for (std::size_t i = 0; i < lines.size() && i < height; ++i) {
    if (i != 0) text += "\r\n";
    text += lines[i];
    text += kClearLine;
  }
  text += kClearBelow;
  print_text(text);
  flush_output();
}

char Screen::key(std::chrono::milliseconds timeout) {
  pollfd ready{STDIN_FILENO, POLLIN, 0};
  if (!before_ || keys_ended_) {
    std::this_thread::sleep_for(timeout);
    return '\0';
  }
  char key = '\0';
  if (::poll(&ready, 1, static_cast<int>(timeout.count())) <= 0) return '\0';
  keys_ended_ = ::read(STDIN_FILENO, &key, 1) != 1;
  return key;
}

}  // namespace quern::cli
