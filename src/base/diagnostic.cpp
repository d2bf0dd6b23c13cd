// SPDX-License-Identifier: Apache-2.0
#include "quern/diagnostic.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/columns.hpp"
#include "base/printable.hpp"

namespace quern {
namespace {

std::string place(const Span& span) {
  if (!span.known()) return span.file.empty() ? std::string() : span.file + ": ";
  if (span.column == 0) return fmt::format("{}:{}: ", span.file, span.line);
  return fmt::format("{}:{}:{}: ", span.file, span.line, span.column);
}

// The caret line keeps the source's tabs so that it lines up in any terminal.
std::string caret_line(const Diagnostic& diagnostic) {
  const std::size_t column = diagnostic.span.column;
  const std::size_t size = base::count_characters(diagnostic.source_line);
  if (column == 0 || column > size + 1) return {};
  std::string line;
  for (std::size_t at = 0; line.size() < column - 1; ++at) {
    const char c = at < diagnostic.source_line.size() ? diagnostic.source_line[at] : ' ';
    if (base::count_characters({&c, 1}) != 0) line += c == '\t' ? '\t' : ' ';
  }
  const std::size_t end = std::min<std::size_t>(diagnostic.span.end_column, size + 1);
  line += '^';
  if (end > column + 1) line.append(end - column - 1, '~');
  return line;
}

}  // namespace

bool has_error(const Diagnostics& diagnostics) noexcept {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& d) { return d.severity == Severity::error; });
}

std::string_view to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::note:
      return "note";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
  }
  return "error";
}

std::string to_string(const Diagnostic& diagnostic) {
  // Sources and other machines decide what texts hold.
  std::string text =
      fmt::format("{}{}: {}\n", place(diagnostic.span), to_string(diagnostic.severity), diagnostic.message);
  if (!diagnostic.source_line.empty()) {
    text += fmt::format("    {}\n", diagnostic.source_line);
    if (const std::string caret = caret_line(diagnostic); !caret.empty())
      text += fmt::format("    {}\n", caret);
  }
  for (const Note& note : diagnostic.notes)
    text += fmt::format("{}note: {}\n", place(note.span), note.message);
  if (!diagnostic.hint.empty()) text += fmt::format("hint: {}\n", diagnostic.hint);
  return base::printable(text);
}

std::string to_string(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) text += to_string(diagnostic);
  return text;
}

}  // namespace quern
