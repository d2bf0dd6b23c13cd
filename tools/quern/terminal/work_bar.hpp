// SPDX-License-Identifier: Apache-2.0
// Shows a single long piece of work on the last line of a terminal.
#pragma once

#include <quern/progress.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "terminal/progress.hpp"

namespace quern::cli {

/// Shows work that takes longer than half a second: on a terminal as a bar, otherwise, if the user wants
/// that, as one line a second. Thread-safe.
class WorkBar {
 public:
  explicit WorkBar(ProgressWish wish);
  ~WorkBar();
  WorkBar(const WorkBar&) = delete;
  WorkBar& operator=(const WorkBar&) = delete;

  /// Returns a handler for Session::set_progress; it is empty if nothing is to be shown. The bar must outlive
  /// it.
  ProgressHandler handler();

 private:
  struct Piece {
    ProgressStage stage;
    std::string name;
    std::uint64_t done;
    std::uint64_t total;
    std::chrono::steady_clock::time_point begin;
  };
  void take(const quern::Progress& progress);
  void draw_until_ended();
  void draw();
  void clear();

  const bool on_terminal_;
  const bool shown_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Piece> piece_;  ///< the latest that is not finished
  bool drawn_ = false;
  bool ended_ = false;
  std::chrono::steady_clock::time_point last_line_;
  std::thread drawing_;  ///< shows the time also while NVRTC is silent
};

/// "compile x.cu: 1.2 s", "compile kernel k, 12,000 instructions of PTX: 1.2 s", or, of copies, "[=====>   ]
/// 512/1024 MiB, copy to the device".
std::string work_text(const quern::Progress& progress, double seconds, std::size_t width);

}  // namespace quern::cli
