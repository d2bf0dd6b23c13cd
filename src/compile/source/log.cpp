// SPDX-License-Identifier: Apache-2.0
#include "compile/source/log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <vector>

#include "base/columns.hpp"

namespace quern::compile {
namespace {

using std::string_view;

struct SeverityWord {
  string_view text;
  Severity severity;
};
// The longer words first: "catastrophic error" also ends in "error".
constexpr SeverityWord kSeverities[] = {
    {"catastrophic error", Severity::error},
    {"internal error", Severity::error},
    {"command-line error", Severity::error},
    {"error", Severity::error},
    {"fatal", Severity::error},
    {"warning", Severity::warning},
    {"remark", Severity::note},
    {"note", Severity::note},
    {"info", Severity::note},
};

struct Header {
  Span span;
  Severity severity = Severity::error;
  string_view number;  // "177" of "warning #177-D"
  string_view message;
  string_view tool;  // "nvrtc", "ptxas", or empty
};

std::vector<string_view> lines_of(string_view text) {
  std::vector<string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(end == string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

string_view trim(string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

std::optional<std::uint32_t> number(string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Reads `error: ...`, `warning #177-D: ...`, `error   : ...` into `header`.
bool read_severity(string_view rest, Header& header) {
  for (const SeverityWord& word : kSeverities) {
    if (!rest.starts_with(word.text)) continue;
    string_view after = trim(rest.substr(word.text.size()));
    if (after.starts_with('#')) {
      const std::size_t colon = after.find(':');
      if (colon == string_view::npos) return false;
      header.number = after.substr(1, std::min(colon, after.find('-')) - 1);
      after.remove_prefix(colon);
    }
    if (!after.starts_with(':')) return false;
    header.severity = word.severity;
    header.message = trim(after.substr(1));
    return true;
  }
  return false;
}

// `ptxas error   : ...` and `ptxas application ptx input, line 42; error   : ...`
std::optional<Header> read_ptxas(string_view line) {
  constexpr string_view kPtxas = "ptxas ", kInput = "application ptx input, line ";
  if (!line.starts_with(kPtxas)) return std::nullopt;
  Header header;
  header.tool = "ptxas";
  line.remove_prefix(kPtxas.size());
  if (line.starts_with(kInput)) {
    const std::size_t semicolon = line.find(';');
    if (semicolon == string_view::npos) return std::nullopt;
    header.span.file = "<generated PTX>";
    header.span.line = number(line.substr(kInput.size(), semicolon - kInput.size())).value_or(0);
    line = trim(line.substr(semicolon + 1));
  }
  if (!read_severity(line, header)) return std::nullopt;
  return header;
}

std::optional<Header> read_tool(string_view line, string_view file_name) {
  constexpr string_view kNvrtc = "nvrtc: ", kEnd = "At end of source: ";
  Header header;
  if (line.starts_with(kNvrtc)) {
    header.tool = "nvrtc";
    if (read_severity(line.substr(kNvrtc.size()), header)) return header;
  }
  if (line.starts_with(kEnd)) {
    header.span.file = file_name;
    if (read_severity(line.substr(kEnd.size()), header)) return header;
  }
  return read_ptxas(line);
}

std::optional<Header> read_header(string_view line, string_view file_name) {
  if (line.empty() || line.front() == ' ' || line.front() == '\t') return std::nullopt;
  if (std::optional<Header> tool = read_tool(line, file_name)) return tool;
  // `file(LINE): severity...`; the file name may hold parentheses and colons of its own.
  for (std::size_t at = line.find("): "); at != string_view::npos; at = line.find("): ", at + 1)) {
    const std::size_t open = line.rfind('(', at);
    if (open == string_view::npos || open == 0) continue;
    const std::optional<std::uint32_t> line_number = number(line.substr(open + 1, at - open - 1));
    Header header;
    if (!line_number || !read_severity(line.substr(at + 3), header)) continue;
    header.span.file = line.substr(0, open);
    header.span.line = *line_number;
    return header;
  }
  return std::nullopt;
}

bool is_caret_line(string_view line) {
  const string_view mark = trim(line);
  return line.size() > 2 && mark == "^";
}

bool is_noise(string_view line) {
  if (line.starts_with("Compilation terminated") ||
      line.starts_with("Remark: The warnings can be suppressed"))
    return true;
  return line.find(" detected in the compilation of ") != string_view::npos;
}

// The source position in `... at line 7 of "other.h"`.
Span place_at_end(string_view text, const Span& current) {
  constexpr string_view kAt = " at line ";
  const std::size_t at = text.rfind(kAt);
  if (at == string_view::npos) return {};
  string_view rest = text.substr(at + kAt.size());
  Span span;
  span.file = current.file;
  const std::size_t of = rest.find(" of \"");
  if (of != string_view::npos && rest.ends_with('"')) {
    span.file = rest.substr(of + 5, rest.size() - of - 6);
    rest = rest.substr(0, of);
  }
  span.line = number(rest).value_or(0);
  return span.line != 0 ? span : Span{};
}

/// Errors of the process's limits, not of the source: NVRTC 13.0's texts.
constexpr string_view kOutOfMemory[] = {"out of memory", "memory exhausted", "Memory allocation failure"};

bool is_out_of_memory(const Header& header) {
  return header.severity == Severity::error &&
         std::ranges::find(kOutOfMemory, trim(header.message)) != std::end(kOutOfMemory);
}

std::string code_of(const Header& header) {
  if (is_out_of_memory(header)) return "nvrtc-failed";
  if (header.tool == "ptxas") return "ptxas";
  if (header.tool == "nvrtc") return "nvrtc-option";
  if (!header.number.empty()) return fmt::format("cuda-{}", header.number);
  return header.severity == Severity::warning ? "cuda-warning" : "cuda-error";
}

class LogReader {
 public:
  explicit LogReader(string_view file_name) : file_name_(file_name) {}

  Diagnostics read(string_view log) {
    const std::vector<string_view> lines = lines_of(log);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const bool caret_follows =
          i + 1 < lines.size() && is_caret_line(lines[i + 1]) && lines[i].starts_with("  ");
      if (std::optional<Header> header = read_header(lines[i], file_name_))
        begin(*header);
      else if (caret_follows)
        source(lines[i], lines[i + 1]), ++i;
      else if (!trim(lines[i]).empty() && !is_noise(lines[i]))
        continuation(trim(lines[i]));
    }
    end_chain();
    return std::move(diagnostics_);
  }

 private:
  void begin(const Header& header) {
    end_chain();
    in_note_ = header.severity == Severity::note && !diagnostics_.empty();
    if (in_note_) {
      diagnostics_.back().notes.push_back({header.span, std::string(header.message)});
      return;
    }
    Diagnostic diagnostic;
    diagnostic.severity = header.severity;
    diagnostic.code = code_of(header);
    if (is_out_of_memory(header))
      diagnostic.hint =
          "the compiler needs more memory than this process may have: raise the limit (ulimit -v, the "
          "container's memory), or divide the source";
    diagnostic.span = header.span;
    diagnostic.message = header.message;
    if (!header.tool.empty()) diagnostic.message = fmt::format("{}: {}", header.tool, header.message);
    diagnostics_.push_back(std::move(diagnostic));
  }

  // NVRTC puts two spaces before the source line and before the caret line.
  void source(string_view text, string_view caret) {
    if (diagnostics_.empty()) return;
    text.remove_prefix(2);
    Span& span = in_note_ ? diagnostics_.back().notes.back().span : diagnostics_.back().span;
    span.column = static_cast<std::uint32_t>(caret.find('^') - 1);
    base::cover_word(span, text);
    if (!in_note_) diagnostics_.back().source_line = text;
  }

  // "argument types are: (int)" belongs to the message; a chain of instantiations becomes notes with source
  // positions.
  void continuation(string_view text) {
    if (diagnostics_.empty()) {
      diagnostics_.push_back({Severity::note, "cuda-log", {}, std::string(text), {}, "", ""});
    } else if (text.starts_with("detected during")) {
      in_chain_ = true;
      link(trim(text.substr(std::string_view("detected during").size())));
    } else if (in_chain_) {
      link(text);
    } else if (text.find(" types are: ") != string_view::npos || text.starts_with("object type is: ")) {
      diagnostics_.back().message += fmt::format("; {}", text);
    } else {
      diagnostics_.back().notes.push_back({{}, std::string(text)});
    }
  }

  // One link of an instantiation chain, which NVRTC may break over several lines; its source position ends
  // it.
  void link(string_view text) {
    if (text == ":") return;
    if (!link_.empty()) link_ += ' ';
    link_ += text;
    const Span place = place_at_end(link_, diagnostics_.back().span);
    if (!place.known()) return;
    link_.resize(link_.rfind(" at line "));
    diagnostics_.back().notes.push_back({place, "in " + link_});
    link_.clear();
  }

  void end_chain() {
    if (!link_.empty()) diagnostics_.back().notes.push_back({{}, "in " + link_});
    link_.clear();
    in_chain_ = false;
  }

  string_view file_name_;
  Diagnostics diagnostics_;
  std::string link_;  // of an instantiation chain, as read up to here
  bool in_chain_ = false;
  bool in_note_ = false;
};

}  // namespace

Diagnostics parse_log(string_view log, string_view file_name) { return LogReader(file_name).read(log); }

}  // namespace quern::compile
