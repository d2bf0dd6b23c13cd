// SPDX-License-Identifier: Apache-2.0
#include "frontend/syntax/text.hpp"

#include <algorithm>
#include <tuple>

#include "base/columns.hpp"

namespace quern::frontend {
namespace {

// The number of edits that turn one word into the other; swapping neighbours counts as one edit. Stops
// counting after `most`.
std::size_t distance(std::string_view a, std::string_view b, std::size_t most) {
  if (a.size() > b.size() + most || b.size() > a.size() + most) return most + 1;
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

}  // namespace

SourceText::SourceText(std::string_view text, std::string file_name)
    : text_(text), file_name_(std::move(file_name)), starts_{0} {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') starts_.push_back(static_cast<std::uint32_t>(i + 1));
}

std::uint32_t SourceText::line_of(std::uint32_t offset) const noexcept {
  return static_cast<std::uint32_t>(std::upper_bound(starts_.begin(), starts_.end(), offset) -
                                    starts_.begin());
}

std::string_view SourceText::line_text(std::uint32_t line) const noexcept {
  if (line == 0 || line > starts_.size()) return {};
  std::string_view rest = text_.substr(starts_[line - 1]);
  rest = rest.substr(0, rest.find('\n'));
  if (rest.ends_with('\r')) rest.remove_suffix(1);
  return rest;
}

Span SourceText::span(Place place) const {
  Span span;
  span.file = file_name_;
  span.line = line_of(place.begin);
  const std::string_view line = line_text(span.line);
  const std::uint32_t start = starts_[span.line - 1];
  const std::size_t from = std::min<std::size_t>(place.begin - start, line.size());
  const std::size_t to = std::clamp<std::size_t>(std::max(place.end, place.begin) - start, from, line.size());
  span.column = 1 + base::count_characters(line.substr(0, from));
  span.end_column = span.column + std::max(1u, base::count_characters(line.substr(from, to - from)));
  return span;
}

void Report::error(Place place, std::string_view code, std::string message, std::string hint) {
  add(Severity::error, place, code, std::move(message), std::move(hint));
}

void Report::error_of_file(std::string_view code, std::string message, std::string hint) {
  error({}, code, std::move(message), std::move(hint));
  if (!last_kept_) return;
  diagnostics_.back().span = {};
  diagnostics_.back().source_line = {};
  diagnostics_.back().span.file = source_->file_name();
}

void Report::warning(Place place, std::string_view code, std::string message, std::string hint) {
  add(Severity::warning, place, code, std::move(message), std::move(hint));
}

void Report::note(Place place, std::string message) {
  if (!last_kept_ || diagnostics_.back().notes.size() >= kMostNotes) return;
  diagnostics_.back().notes.push_back({source_->span(place), std::move(message)});
}

void Report::add(Severity severity, Place place, std::string_view code, std::string message,
                 std::string hint) {
  last_kept_ = false;
  if (severity == Severity::error) ++errors_;
  if (full()) return;
  Diagnostic diagnostic;
  diagnostic.severity = severity;
  diagnostic.code = code;
  diagnostic.span = source_->span(place);
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  for (const Diagnostic& other : diagnostics_)
    if (other.span == diagnostic.span && other.message == diagnostic.message) return;
  diagnostic.source_line = source_->line_text(diagnostic.span.line);
  diagnostics_.push_back(std::move(diagnostic));
  last_kept_ = true;
}

void Report::take_over(const Diagnostics& said) {
  for (const Diagnostic& each : said) {
    if (each.severity == Severity::error) ++errors_;
    if (!full()) diagnostics_.push_back(each);
  }
  last_kept_ = false;
}

Diagnostics Report::take() {
  std::vector<std::size_t> order(diagnostics_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    const Span &one = diagnostics_[a].span, &other = diagnostics_[b].span;
    return std::tie(one.line, one.column, a) < std::tie(other.line, other.column, b);
  });
  Diagnostics sorted;
  for (const std::size_t i : order) sorted.push_back(std::move(diagnostics_[i]));
  diagnostics_.clear();
  last_kept_ = false;
  return sorted;
}

std::string_view closest(std::string_view name, const std::vector<std::string_view>& candidates) {
  if (name.size() < 3) return {};  // every name is similar to a single letter
  const std::size_t most = name.size() <= 3 ? 1 : name.size() <= 7 ? 2 : 3;
  std::string_view best;
  std::size_t least = most + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t edits = candidate == name ? least : distance(name, candidate, most);
    if (edits < least) best = candidate, least = edits;
  }
  return best;
}

}  // namespace quern::frontend
