// SPDX-License-Identifier: Apache-2.0
#include "terminal/work_bar.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace quern::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPatience{500};
constexpr std::chrono::milliseconds kTick{100};
constexpr std::chrono::seconds kBetweenLines{1};

/// "12,000".
std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, ",");
  return digits;
}

}  // namespace

std::string work_text(const quern::Progress& progress, double seconds, std::size_t width) {
  const bool copy =
      progress.stage == ProgressStage::copy_to_device || progress.stage == ProgressStage::copy_to_host;
  if (copy)
    return progress_text(progress.done >> 20, progress.total >> 20,
                         fmt::format("MiB, {}", to_string(progress.stage)), width);
  const std::string what =
      progress.stage == ProgressStage::generate
          ? fmt::format("compile kernel {}, {} instructions of PTX", progress.name, grouped(progress.total))
          : fmt::format("{} {}", to_string(progress.stage), progress.name);
  std::string text = fmt::format("{}: {:.1f} s", what, seconds);
  if (text.size() >= width) text.resize(width > 0 ? width - 1 : 0);
  return text;
}

WorkBar::WorkBar(ProgressWish wish)
    : on_terminal_(draws_on_terminal()),
      shown_(wish == ProgressWish::always || (wish == ProgressWish::automatic && on_terminal_)) {}

WorkBar::~WorkBar() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  if (drawing_.joinable()) drawing_.join();
  clear();
}

ProgressHandler WorkBar::handler() {
  if (!shown_) return {};
  return [this](const quern::Progress& progress) {
    take(progress);
    return true;
  };
}

void WorkBar::take(const quern::Progress& progress) {
  const std::lock_guard lock(mutex_);
  if (progress.finished) {
    piece_.reset();
    clear();
    return;
  }
  const bool same = piece_ && piece_->stage == progress.stage && piece_->name == progress.name;
  piece_ = {progress.stage, std::string(progress.name), progress.done, progress.total,
            same ? piece_->begin : Clock::now()};
  if (!drawing_.joinable()) drawing_ = std::thread([this] { draw_until_ended(); });
}

void WorkBar::draw_until_ended() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kTick, [this] { return ended_; })) draw();
}

void WorkBar::draw() {
  if (!piece_ || Clock::now() - piece_->begin < kPatience) return;
  const std::chrono::duration<double> age = Clock::now() - piece_->begin;
  const quern::Progress progress{piece_->stage, piece_->name, piece_->done, piece_->total};
  if (on_terminal_) {
    std::fputs(("\r\x1b[K" + work_text(progress, age.count(), terminal_width())).c_str(), stderr);
    std::fflush(stderr);
    drawn_ = true;
  } else if (Clock::now() - last_line_ >= kBetweenLines) {
    last_line_ = Clock::now();
    std::fputs((work_text(progress, age.count(), SIZE_MAX) + "\n").c_str(), stderr);
  }
}

void WorkBar::clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace quern::cli
