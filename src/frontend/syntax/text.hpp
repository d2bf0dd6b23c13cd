// SPDX-License-Identifier: Apache-2.0
// The author's text, source ranges in it, and diagnostics about them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quern/diagnostic.hpp"

namespace quern::frontend {

/// A range of the source text: byte offsets; `end` is one past the last byte.
struct Place {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

inline Place join(Place first, Place last) { return {first.begin, last.end}; }

/// Source text with its lines. It refers to `text`, which must outlive it.
class SourceText {
 public:
  SourceText(std::string_view text, std::string file_name);

  std::string_view text() const noexcept { return text_; }
  std::string_view at(Place place) const noexcept {
    return text_.substr(place.begin, place.end - place.begin);
  }
  const std::string& file_name() const noexcept { return file_name_; }
  /// Lines count from 1.
  std::uint32_t line_of(std::uint32_t offset) const noexcept;
  std::string_view line_text(std::uint32_t line) const noexcept;
  /// Columns count characters, so that a caret is under the right one.
  Span span(Place place) const;

 private:
  std::string_view text_;
  std::string file_name_;
  std::vector<std::uint32_t> starts_;
};

/// Collects diagnostics about one source. Each place and message is kept once, and at most `kMost`
/// diagnostics.
class Report {
 public:
  static constexpr std::size_t kMost = 100;
  static constexpr std::size_t kMostNotes = 10;  ///< for each diagnostic

  explicit Report(const SourceText& source) : source_(&source) {}

  void error(Place place, std::string_view code, std::string message, std::string hint = {});
  /// Reports an error of the whole file that no single line causes.
  void error_of_file(std::string_view code, std::string message, std::string hint = {});
  void warning(Place place, std::string_view code, std::string message, std::string hint = {});
  /// Adds a note to the last diagnostic, unless it has `kMostNotes` already.
  void note(Place place, std::string message);

  bool failed() const noexcept { return errors_ > 0; }
  /// The number of errors, including those that are not kept.
  std::size_t errors() const noexcept { return errors_; }
  bool full() const noexcept { return diagnostics_.size() >= kMost; }
  const SourceText& source() const noexcept { return *source_; }
  const Diagnostics& diagnostics() const noexcept { return diagnostics_; }
  /// Adds the diagnostics of another report on the same source.
  void take_over(const Diagnostics& said);
  /// The diagnostics in source order.
  Diagnostics take();

 private:
  void add(Severity severity, Place place, std::string_view code, std::string message, std::string hint);

  const SourceText* source_;
  Diagnostics diagnostics_;
  std::size_t errors_ = 0;
  bool last_kept_ = false;
};

/// The word of `candidates` that is most similar to `name`, or empty.
std::string_view closest(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace quern::frontend
