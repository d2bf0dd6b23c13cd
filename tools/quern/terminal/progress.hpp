// SPDX-License-Identifier: Apache-2.0
// A progress bar on the last line of a terminal, for work that takes longer than a second.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace quern::cli {

/// --progress, --no-progress, or neither, which shows progress if stderr is a terminal.
enum class ProgressWish : std::uint8_t { automatic, always, never };

/// Returns `wish`, or `never` for a command with --quiet or --json. Throws Error(usage) for `always` then.
ProgressWish settled(ProgressWish wish, bool quiet, bool json);

/// Returns true if stderr is a terminal that can clear a line.
bool draws_on_terminal();
std::size_t terminal_width();

/// Draws on stderr if that is a terminal; otherwise draws nothing. Thread-safe.
class Progress {
 public:
  explicit Progress(std::size_t total, ProgressWish wish = ProgressWish::automatic);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Records that one part of `total` is complete. `print` writes its lines to stdout while the bar is
  /// hidden.
  void done(const std::string& what, const std::function<void()>& print = {});

 private:
  void clear();
  void draw();

  const std::size_t total_;
  const bool shown_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::size_t done_ = 0;
  std::string what_;
  bool drawn_ = false;
};

/// "[=====>    ] 12/25 name", in at most `width` columns.
std::string progress_text(std::size_t done, std::size_t total, const std::string& what, std::size_t width);

}  // namespace quern::cli
