// SPDX-License-Identifier: Apache-2.0
#include "watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <optional>
#include <thread>

#include "command.hpp"
#include "terminal/interrupt.hpp"
#include "terminal/output.hpp"
#include "terminal/screen.hpp"
#include "top_view.hpp"

namespace quern::cli {
namespace {

using Clock = std::chrono::steady_clock;

// interval for checking keys, the terminal's size and signals
constexpr std::chrono::milliseconds kTick{100};
constexpr std::size_t kPlainWidth = 160;

double unix_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class Watch {
 public:
  Watch(const std::vector<Watched>& servers, const WatchSettings& settings)
      : servers_(servers), settings_(settings), documents_(servers.size()) {
    for (const Watched& server : servers) frame_.servers.push_back({server.label, {}, {}, ""});
    frame_.note = settings.note;
  }

  WatchEnd run() {
    keep_interrupts();
    if (!settings_.json && stdout_is_screen()) screen_.emplace();
    if (screen_ && frame_.note.empty()) frame_.note = "q or Ctrl-C ends the view";
    show();
    for (std::uint64_t number = 1; goes_on(); ++number) {
      const Clock::time_point begin = Clock::now();
      read_all();
      if (!goes_on()) break;  // the answers are not wanted any more
      print();
      if (number == settings_.count) break;
      wait_until(begin + std::chrono::duration_cast<Clock::duration>(
                             std::chrono::duration<double>(settings_.interval_s)));
    }
    WatchEnd end;
    end.answered = std::any_of(frame_.servers.begin(), frame_.servers.end(),
                               [](const ServerRow& row) { return row.now && row.problem.empty(); });
    end.signal = interrupted();
    end.by_user = quit_ || (screen_ && end.signal == SIGINT);
    return end;
  }

 private:
  bool goes_on() const { return !quit_ && interrupted() == 0 && (!settings_.goes_on || settings_.goes_on()); }

  /// Queries all servers at the same time, each on a thread, so that one that does not answer does not delay
  /// the others.
  void read_all() {
    std::vector<std::future<Expected<std::string>>> answers;
    for (const Watched& server : servers_)
      answers.push_back(
          std::async(std::launch::async, [&] { return server.read([this] { return goes_on(); }); }));
    while (std::any_of(answers.begin(), answers.end(),
                       [&](auto& each) { return each.wait_for(tick()) != std::future_status::ready; })) {
    }
    for (std::size_t i = 0; i < answers.size(); ++i) take(answers[i].get(), i);
    frame_.now_s = unix_time_s();
  }

  /// Handles keys and changes of the terminal's size while it waits for answers.
  std::chrono::milliseconds tick() {
    attend(std::chrono::milliseconds(0));
    return kTick / 5;
  }

  void take(const Expected<std::string>& answer, std::size_t index) {
    ServerRow& row = frame_.servers[index];
    documents_[index].clear();
    Expected<Reading> now = answer ? read_reading(*answer) : Expected<Reading>(answer.errors());
    if (!now) {
      const Diagnostic& reason = now.errors().front();
      if (reason.code == "usage") throw Error(ErrorCode::usage, reason.message + "\nhint: " + reason.hint);
      const std::string prefix = "compile server " + row.label + ": ";  // the row contains it already
      row.problem = reason.message.substr(reason.message.starts_with(prefix) ? prefix.size() : 0);
      row.rates.reset();
      return;
    }
    documents_[index] = *answer;
    row.problem.clear();
    row.rates = row.now ? rates_between(*row.now, *now) : std::nullopt;
    row.now = *std::move(now);
  }

  void print() {
    if (settings_.json)
      print_document(document() + "\n");
    else if (screen_)
      show();
    else
      print_block();
  }

  std::string document() const {
    Json servers = Json::array();
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      const ServerRow& row = frame_.servers[i];
      servers.push_back({{"server", row.label}});
      Json& each = servers.back();
      if (!row.problem.empty()) {
        each["error"] = row.problem;
        continue;
      }
      each["requests_per_s"] = row.rates ? Json(row.rates->requests) : Json(nullptr);
      each["stats"] = Json::parse(documents_[i]);
    }
    return Json{{"time_s", frame_.now_s}, {"servers", std::move(servers)}}.dump(
        -1, ' ', false, Json::error_handler_t::replace);
  }

  void print_block() {
    frame_.width = kPlainWidth;
    std::string text;
    for (std::string& line : top_lines(frame_)) {
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    print_text(text + "\n");
    flush_output();
  }

  void show() {
    if (!screen_) return;
    size_ = screen_->size();
    frame_.width = size_.width;
    frame_.height = size_.height;
    if (frame_.now_s == 0) frame_.now_s = unix_time_s();
    screen_->draw(top_lines(frame_));
  }

  void attend(std::chrono::milliseconds timeout) {
    if (!screen_) return std::this_thread::sleep_for(timeout);
    const char key = screen_->key(timeout);
    quit_ = quit_ || key == 'q' || key == 'Q';
    if (screen_->size() != size_) show();
  }

  void wait_until(Clock::time_point end) {
    while (goes_on()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
      if (left.count() <= 0) return;
      attend(std::min(left, kTick));
    }
  }

  const std::vector<Watched>& servers_;
  const WatchSettings& settings_;
  std::vector<std::string> documents_;  // of this time, as they came; empty: none
  TopFrame frame_;
  std::optional<Screen> screen_;
  ScreenSize size_;
  std::atomic<bool> quit_ = false;
};

}  // namespace

WatchEnd watch(const std::vector<Watched>& servers, const WatchSettings& settings) {
  return Watch(servers, settings).run();
}

}  // namespace quern::cli
