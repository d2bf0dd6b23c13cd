// SPDX-License-Identifier: Apache-2.0
#include "ptx/parse/report.hpp"

#include <algorithm>
#include <array>

namespace quern::ptx {
namespace {

// Longer lines and words come from generators; messages do not quote them.
constexpr std::size_t kLongestLine = 300;
constexpr std::size_t kLongestWord = 40;

// The number of edits that change one short word into the other. An edit inserts, deletes or replaces a
// letter, or swaps two neighbours.
std::size_t distance(std::string_view a, std::string_view b) {
  using Row = std::array<std::size_t, kLongestWord + 1>;
  Row before{};
  Row above{};
  Row row{};
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = above;
    above = row;
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({row[j - 1] + 1, above[j] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Report::line_around(std::string_view token) const {
  const std::size_t at = static_cast<std::size_t>(token.data() - text_.data());
  const std::size_t before = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
  const std::size_t start = before == std::string_view::npos ? 0 : before + 1;
  std::size_t end = std::min(text_.find('\n', at), text_.size());
  if (end > start && text_[end - 1] == '\r') --end;
  if (end - start > kLongestLine) return {};
  return std::string(text_.substr(start, end - start));
}

void Report::error(std::string_view code, TextPosition at, std::string message, std::string hint) {
  if (full() || (at.line != 0 && at.line == last_.line && at.column == last_.column)) return;
  last_ = at;
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.span = Span{std::string(file_), at.line, at.column, 0};
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  errors_.push_back(std::move(diagnostic));
}

void Report::error(std::string_view code, const Token& token, std::string message, std::string hint) {
  const std::size_t before = errors_.size();
  error(code, token.position, std::move(message), std::move(hint));
  if (errors_.size() == before) return;
  const std::size_t first_line = std::min(token.text.find('\n'), token.text.size());
  errors_.back().span.end_column =
      token.position.column + static_cast<std::uint32_t>(std::min(first_line, kLongestLine));
  errors_.back().source_line = line_around(token.text);
}

void NearestWord::offer(std::string_view candidate) {
  if (word_.size() > kLongestWord || candidate.size() > kLongestWord) return;
  const std::size_t found = distance(word_, candidate);
  if (found < distance_ && found < std::max<std::size_t>(word_.size(), 2)) {
    distance_ = found;
    best_ = candidate;
  }
}

std::string NearestWord::hint(std::string_view prefix) const {
  if (best_.empty()) return {};
  return "did you mean '" + std::string(prefix) + std::string(best_) + "'?";
}

}  // namespace quern::ptx
