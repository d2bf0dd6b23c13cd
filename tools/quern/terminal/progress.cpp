// SPDX-License-Identifier: Apache-2.0
#include "terminal/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <quern/error.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace quern::cli {
namespace {

constexpr std::chrono::seconds kTimeout{1};
constexpr std::size_t kBarWidth = 24;

}  // namespace

ProgressWish settled(ProgressWish wish, bool quiet, bool json) {
  if (!quiet && !json) return wish;
  if (wish == ProgressWish::always)
    throw Error(ErrorCode::usage, fmt::format("--progress does not go with {}\nhint: leave one of them out",
                                              json ? "--json" : "--quiet"));
  return ProgressWish::never;
}

bool draws_on_terminal() {
  const char* const terminal = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string progress_text(std::size_t done, std::size_t total, const std::string& what, std::size_t width) {
  const std::size_t filled = total == 0 ? kBarWidth : kBarWidth * std::min(done, total) / total;
  const std::string tip = filled < kBarWidth ? ">" : "";
  std::string text = fmt::format("[{}{}{}] {}/{} {}", std::string(filled, '='), tip,
                                 std::string(kBarWidth - filled - tip.size(), ' '), done, total, what);
  if (text.size() >= width) text.resize(width > 0 ? width - 1 : 0);
  return text;
}

Progress::Progress(std::size_t total, ProgressWish wish)
    : total_(total), shown_(wish != ProgressWish::never && draws_on_terminal()) {}

Progress::~Progress() {
  const std::lock_guard lock(mutex_);
  clear();
}

void Progress::clear() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

void Progress::draw() {
  if (!shown_ || std::chrono::steady_clock::now() - begin_ < kTimeout) return;
  std::fputs(("\r\x1b[K" + progress_text(done_, total_, what_, terminal_width())).c_str(), stderr);
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::done(const std::string& what, const std::function<void()>& print) {
  const std::lock_guard lock(mutex_);
  ++done_;
  what_ = what;
  if (print) {
    clear();
    print();
    std::fflush(stdout);
  }
  draw();
}

}  // namespace quern::cli
