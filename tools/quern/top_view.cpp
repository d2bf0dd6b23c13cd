// SPDX-License-Identifier: Apache-2.0
#include "top_view.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

namespace quern::cli {
namespace {

constexpr std::size_t kBarCells = 24;
constexpr std::size_t kLeastLabelCells = 16;
constexpr std::size_t kFixedCells = 62;  // width of a row in the table of servers without the label
constexpr char32_t kWrong = U'?';

/// Decodes the character at `at` and moves `at` after it; kWrong for bytes that are not UTF-8.
char32_t next_character(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at++);
  if (first < 0x80) return first;
  const int more = first >= 0xF0 && first < 0xF5 ? 3 : first >= 0xE0 ? 2 : first >= 0xC2 ? 1 : 0;
  if (more == 0 || first >= 0xF5) return kWrong;
  char32_t value = first & (0x3Fu >> more);
  for (int i = 0; i < more; ++i) {
    if (at == text.size() || (byte(at) & 0xC0) != 0x80) return kWrong;
    value = value << 6 | (byte(at++) & 0x3Fu);
  }
  const bool overlong = (more == 2 && value < 0x800) || (more == 3 && value < 0x10000);
  return overlong || (value >= 0xD800 && value < 0xE000) || value > 0x10FFFF ? kWrong : value;
}

/// Controls of the terminal, line ends, and characters that are invisible or change the direction of text.
bool is_unsafe(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || c == 0x61C || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF ||
         (c >= 0xFFF0 && c <= 0xFFFB) || c >= 0xE0000;
}

std::size_t cells_of(char32_t c) {
  if ((c >= 0x300 && c < 0x370) || (c >= 0xFE00 && c < 0xFE10) || (c >= 0x20D0 && c < 0x2100)) return 0;
  return c >= 0x1100 && !(c >= 0x1200 && c < 0x2E80) ? 2 : 1;
}

/// Applies printable(), and pads with blanks.
std::string cell(std::string_view text, std::size_t cells) {
  std::string shown = printable(text, cells);
  std::size_t used = 0;
  for (std::size_t at = 0; at < shown.size();) used += cells_of(next_character(shown, at));
  return shown + std::string(cells - std::min(cells, used), ' ');
}

std::string bar(double share) {
  const auto filled = static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * kBarCells));
  return "[" + std::string(filled, '#') + std::string(kBarCells - filled, '.') + "]";
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string bytes_text(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::clamp(seconds, 0.0, 1e12));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} d {} h", whole / 86400, whole % 86400 / 3600);
}

std::string clock_text(double unix_s) {
  const auto time = static_cast<std::time_t>(std::clamp(unix_s, 0.0, 1e11));
  return fmt::format("{:%H:%M:%S}", fmt::localtime(time));
}

std::string rate_text(const std::optional<Rates>& rates, double Rates::* which) {
  return rates ? fmt::format("{:.1f}", (*rates).*which) : "-";
}

std::string row_of(const ServerRow& row, std::size_t label_cells) {
  const std::string label = cell(row.label, label_cells);
  if (!row.problem.empty()) return label + "  " + row.problem;
  if (!row.now) return label + "  ...";
  const Reading& now = *row.now;
  return fmt::format("{}  {} {:>9} {:>9}  {:>11}  {:>9}  {:>8}", label, cell(now.state, 8),
                     rate_text(row.rates, &Rates::requests), rate_text(row.rates, &Rates::failed),
                     fmt::format("{} of {}", now.busy, now.workers),
                     fmt::format("{}/{}", now.queue, now.queue_limit), now.connections);
}

void add_table(const TopFrame& frame, const ServerRow& sum, std::vector<std::string>& lines) {
  const std::size_t room = std::max(frame.width, kFixedCells + kLeastLabelCells) - kFixedCells;
  std::size_t longest = kLeastLabelCells;
  for (const ServerRow& row : frame.servers) longest = std::max(longest, row.label.size());
  const std::size_t cells = std::min(room, longest);
  lines.push_back(fmt::format("{}  {} {:>9} {:>9}  {:>11}  {:>9}  {:>8}", cell("server", cells),
                              cell("state", 8), "request/s", "failed/s", "workers", "queue", "clients"));
  for (const ServerRow& row : frame.servers) lines.push_back(row_of(row, cells));
  if (frame.servers.size() < 2 || !sum.now) return;
  ServerRow all = sum;
  all.label = "sum";
  lines.push_back(row_of(all, cells));
}

void add_tiers(const ServerRow& sum, std::vector<std::string>& lines) {
  const Reading& now = *sum.now;
  std::vector<std::pair<std::string, std::uint64_t>> tiers = now.hits;
  tiers.emplace_back("compiled", now.compiled);
  std::uint64_t total = 0;
  for (const auto& tier : tiers) total += tier.second;
  lines.push_back(fmt::format("{:<10} {:<26} {:>7} {:>10} {:>15}", "results", "share since the start", "",
                              "per second", "total"));
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    const auto& [name, value] = tiers[i];
    const double share = total == 0 ? 0 : static_cast<double>(value) / static_cast<double>(total);
    const double* rate = nullptr;
    if (sum.rates) rate = i < sum.rates->hits.size() ? &sum.rates->hits[i].second : &sum.rates->compiled;
    lines.push_back(fmt::format("  {} {} {:>5.1f} % {:>10} {:>15}", cell(name, 8), bar(share), share * 100,
                                rate != nullptr ? fmt::format("{:.1f}", *rate) : "-", grouped(value)));
  }
}

void add_slowest(const TopFrame& frame, const Reading& now, std::vector<std::string>& lines) {
  if (now.slowest.empty()) return;
  const bool several = frame.servers.size() > 1;
  lines.emplace_back();
  lines.push_back(fmt::format("{:>9}  {:>6}  {:<8}  {:<8}  {:<32}  {:<16}{}", "slowest", "status", "ended",
                              "language", "name", "request", several ? "  server" : ""));
  for (const SlowRow& row : now.slowest)
    lines.push_back(fmt::format("{:>6.0f} ms  {:>6}  {:<8}  {}  {}  {}{}", row.ms, row.status,
                                clock_text(row.time_s), cell(row.language, 8), cell(row.name, 32),
                                cell(row.request_id, 16), several ? "  " + row.server : ""));
}

std::string title(const TopFrame& frame) {
  std::string text = "quern top   " + clock_text(frame.now_s);
  const ServerRow& first = frame.servers.front();
  if (frame.servers.size() == 1 && first.now && first.problem.empty())
    text += fmt::format("   up {}, NVRTC {}", duration_text(first.now->uptime_s), first.now->nvrtc);
  return text;
}

void add_facts(const Reading& now, std::vector<std::string>& lines) {
  lines.push_back(fmt::format("{} compile requests answered, {} of them failed; {} workers restarted",
                              grouped(now.requests), grouped(now.failed), grouped(now.restarts)));
  lines.push_back(fmt::format("memory: results {}, artifacts {}", bytes_text(now.cache_bytes),
                              bytes_text(now.artifact_bytes)));
}

}  // namespace

std::string printable(std::string_view text, std::size_t cells) {
  std::string shown;
  std::size_t used = 0, fits = 0;  // `fits`: bytes of `shown` that leave room for "..."
  const std::size_t dots = std::min<std::size_t>(3, cells);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t character = next_character(text, at);
    const bool replaced = character == kWrong || is_unsafe(character);
    const std::size_t more = replaced ? 1 : cells_of(character);
    if (used + more > cells) return shown.substr(0, fits) + std::string(dots, '.');
    used += more;
    shown += replaced ? "?" : text.substr(begin, at - begin);
    if (used + dots <= cells) fits = shown.size();
  }
  return shown;
}

std::vector<std::string> top_lines(const TopFrame& frame) {
  const ServerRow sum = sum_of(frame.servers);
  std::vector<std::string> lines = {title(frame), ""};
  add_table(frame, sum, lines);
  if (sum.now) {
    lines.emplace_back();
    add_tiers(sum, lines);
    lines.emplace_back();
    add_facts(*sum.now, lines);
    add_slowest(frame, *sum.now, lines);
  }
  const std::size_t last = frame.note.empty() ? 0 : 2;
  lines.resize(std::min(lines.size(), frame.height - std::min(frame.height, last)));
  if (last != 0 && frame.height > last) lines.insert(lines.end(), {"", frame.note});
  for (std::string& line : lines) line = printable(line, frame.width);
  return lines;
}

}  // namespace quern::cli
